"""Object files: their size in memory, the sizes of their functions, and their compilers."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tvmdash.errors import DashboardError

_ELF64 = b"\x7fELF\x02\x01"
"""First bytes of an ELF64 little-endian file."""
_ALLOCATED = 0x2
_SYMBOLS, _FUNCTION, _SYMBOL_BYTES = 2, 2, 24


def loaded_bytes(file: bytes) -> int:
    """Return the bytes that an ELF64 little-endian file takes in memory: code, tables, data; no symbols or relocations.

    `size` prints the same number as `dec`. Format: System V ABI, chapter 4.
    """
    return sum(section.size for section in _sections(file) if section.flags & _ALLOCATED)


def function_sizes(file: bytes) -> dict[str, int]:
    """Return the bytes of machine code of each function defined in an ELF64 little-endian file, by its symbol."""
    sections, sizes = list(_sections(file)), dict[str, int]()
    for table in sections:
        if table.kind != _SYMBOLS:
            continue
        names = sections[table.link].offset
        for at in range(table.offset, table.offset + table.size, _SYMBOL_BYTES):
            name, info, _other, section, _value, size = struct.unpack_from("<IBBHQQ", file, at)
            # section 0: declared here, defined in another file
            if info & 0xF == _FUNCTION and section:
                begin = names + name
                sizes[file[begin : file.index(b"\0", begin)].decode()] = size
    return sizes


def read_comment(path: Path) -> tuple[str, ...]:
    """Return the compilers that an ELF64 little-endian file says it was made by, in its own order."""
    # mapped, as a compiler library has 250 MB
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        named = dict(_named_sections(content)) if content[:6] == _ELF64 else {}
        section = named.get(b".comment")
        raw = content[section.offset : section.offset + section.size] if section else b""
    return tuple(part.decode(errors="replace") for part in raw.split(b"\0") if part)


def _named_sections(file: bytes | mmap.mmap) -> Iterator[tuple[bytes, _Section]]:
    sections = list(_sections(file))
    names = sections[struct.unpack_from("<H", file, 0x3E)[0]].offset if sections else 0
    for section in sections:
        yield file[names + section.name : file.find(b"\0", names + section.name)], section


@dataclass(frozen=True)
class _Section:
    name: int
    kind: int
    flags: int
    offset: int
    size: int
    link: int


def _sections(file: bytes | mmap.mmap) -> Iterator[_Section]:
    if file[:6] != _ELF64:
        raise DashboardError(f"an object file begins with {file[:6]!r}, which is not ELF64, little-endian.")
    table = struct.unpack_from("<Q", file, 0x28)[0]
    entry_size, count = struct.unpack_from("<HH", file, 0x3A)
    # more sections than the header can count: the size of the first one tells (System V ABI, chapter 4)
    if count == 0:
        count = struct.unpack_from("<Q", file, table + 0x20)[0]
    for at in range(table, table + count * entry_size, entry_size):
        name, kind, flags, _address, offset, size, link = struct.unpack_from("<IIQQQQI", file, at)
        yield _Section(name, kind, flags, offset, size, link)
