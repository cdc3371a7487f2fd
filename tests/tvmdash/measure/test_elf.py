from __future__ import annotations

import struct

import pytest

from tvmdash.errors import DashboardError
from tvmdash.measure.elf import loaded_bytes, read_comment


def object_file(sections: list[tuple[int, int]]) -> bytes:
    """An ELF64 header and a section table of (flags, size)."""
    identity, count = b"\x7fELF\x02\x01", len(sections)
    header = struct.pack("<6s10xHHIQQQIHHHHHH", identity, 1, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, count, 0)
    rows = (struct.pack("<IIQQQQIIQQ", 0, 1, flags, 0, 0, size, 0, 0, 1, 0) for flags, size in sections)
    return header + b"".join(rows)


def test_only_what_is_loaded_counts():
    assert loaded_bytes(object_file([(0, 0), (0x6, 100), (0x2, 20), (0x3, 3), (0x30, 5000), (0, 700)])) == 123


def test_a_file_that_is_not_elf_is_refused():
    with pytest.raises(DashboardError, match="not ELF64"):
        loaded_bytes(b"\xcf\xfa\xed\xfe" + b"\0" * 60)


def test_a_file_says_by_which_compilers_it_was_made(tmp_path):
    names = b"\0.comment\0"
    comment = b"\0GCC: (GNU) 14.2.1\0clang 21\0"
    header = struct.pack("<6s10xHHIQQQIHHHHHH", b"\x7fELF\x02\x01", 3, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, 2, 0)
    begin = len(header) + 2 * 64
    rows = [(0, 3, begin, len(names)), (1, 1, begin + len(names), len(comment))]
    table = b"".join(
        struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, at, size, 0, 0, 1, 0) for name, kind, at, size in rows
    )
    (tmp_path / "made.so").write_bytes(header + table + names + comment)
    assert read_comment(tmp_path / "made.so") == ("GCC: (GNU) 14.2.1", "clang 21")
    (tmp_path / "script").write_bytes(b"#!/bin/sh\n" * 20)
    assert read_comment(tmp_path / "script") == ()
