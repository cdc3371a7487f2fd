"""The one thing that is read from object files: how much of one is loaded."""

from __future__ import annotations

import struct

from tvmdash.errors import DashboardError

_ALLOCATED = 0x2


def loaded_bytes(file: bytes) -> int:
    """Bytes that an ELF64 little-endian object file occupies in memory: code, tables, data; no symbols, no relocations.

    `size` prints the same number as `dec`. Format: System V ABI, chapter 4.
    """
    if file[:6] != b"\x7fELF\x02\x01":
        raise DashboardError(f"an object file begins with {file[:6]!r}, which is not ELF64, little-endian.")
    table = struct.unpack_from("<Q", file, 0x28)[0]
    entry_size, count = struct.unpack_from("<HH", file, 0x3A)
    if count == 0:
        count = struct.unpack_from("<Q", file, table + 0x20)[0]
    total = 0
    for index in range(count):
        flags, size = _section(file, table + index * entry_size)
        total += size if flags & _ALLOCATED else 0
    return total


def _section(file: bytes, offset: int) -> tuple[int, int]:
    flags: int = struct.unpack_from("<Q", file, offset + 0x08)[0]
    size: int = struct.unpack_from("<Q", file, offset + 0x20)[0]
    return flags, size
