"""Columns of one table of an SQLite database, taken out of its pages by numpy: six times faster than row by row.

https://www.sqlite.org/fileformat2.html, of which this is the part that a table of short rows needs. What is rare
(values on overflow pages, columns added after the rows, UTF-16) or broken raises `Unusual`; then ask SQLite itself.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tvmtraces.batches import NULL_INT, Column, Texts
from tvmtraces.tables import INT, REAL, TEXT

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Bytes = NDArray[numpy.uint8]
    Ints = NDArray[numpy.int64]

_LEAF, _INTERIOR = 13, 5
_AT_ONCE_BYTES = 1 << 20
_MOST_LEVELS = 20
_WIDTHS = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
"""Bytes of a value by its serial type: NULL, integers, a double, 0, 1; from 12 on blobs and texts."""
_REAL, _ZERO, _FIRST_TEXT = 7, 8, 12
_PAD = 16


class Unusual(Exception):
    """What this reader leaves to SQLite."""


@dataclass(frozen=True)
class Asked:
    """Columns by their places in a row, and the SQL type that each is wanted as; `key` is the row's id."""

    places: tuple[int, ...]
    kinds: tuple[str, ...]
    key: int | None = None


class Pages:
    """An opened database file; a context."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        header = os.pread(self._file, 100, 0)
        if len(header) < 100:
            raise Unusual("no header")
        size = struct.unpack_from(">H", header, 16)[0]
        self.size = 1 << 16 if size == 1 else int(size)
        self.usable, self.utf8 = self.size - header[20], header[59] == 1
        if self.size < 512 or self.usable < 480:
            raise Unusual("an impossible size of pages")
        self.count = os.fstat(self._file).st_size // self.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    def read(self, root: int, asked: Asked, low: int, high: int) -> Iterator[tuple[Ints, list[Column]]]:
        """The ids from `low` to `high` of a table's rows, in their order, with the columns; some at once."""
        leaves = self._find_leaves(root, low, high)
        step = max(1, _AT_ONCE_BYTES // self.size)
        for first in range(0, len(leaves), step):
            yield _decode(self._join(leaves[first : first + step]), self, asked, low, high)

    def _page(self, number: int) -> bytes:
        if not 1 < number <= self.count:
            raise Unusual(f"page {number} is not there")
        return os.pread(self._file, self.size, (number - 1) * self.size)

    def _find_leaves(self, root: int, low: int, high: int) -> Ints:
        """The leaves that may hold ids from `low` to `high`, in order; all of them are of one level."""
        import numpy

        level: Ints = numpy.array([root], dtype=numpy.int64)
        for _ in range(_MOST_LEVELS):
            if self._page(int(level[0]))[0] == _LEAF:
                return level
            found = [self._list_children(int(number), low, high) for number in level.tolist()]
            level = numpy.concatenate(found)
            if not len(level):
                return level
            if len(level) > self.count:
                raise Unusual("pages are referred to twice")
        raise Unusual("too many levels")

    def _list_children(self, number: int, low: int, high: int) -> Ints:
        import numpy

        content = self._page(number)
        if content[0] != _INTERIOR:
            raise Unusual(f"page {number} is of another kind")
        cells = int.from_bytes(content[3:5], "big")
        if 12 + 2 * cells > self.size:
            raise Unusual(f"page {number} is broken")
        page = numpy.frombuffer(content + bytes(_PAD), dtype=numpy.uint8)
        at = numpy.frombuffer(content, dtype=">u2", count=cells, offset=12).astype(numpy.int64)
        if cells and int(at.max()) + 4 > self.size:
            raise Unusual(f"page {number} is broken")
        children: Ints = numpy.append(_take(page, at, 4), int.from_bytes(content[8:12], "big"))
        last, _ = _read_varints(page, at + 4)
        chosen = numpy.ones(cells + 1, dtype=bool)
        chosen[:-1] &= last >= low  # a child holds ids up to this one
        chosen[1:] &= last < high
        found: Ints = children[chosen]
        return found

    def _join(self, numbers: Ints) -> Bytes:
        """Some pages behind each other; those that lie so in the file are read at once."""
        import numpy

        if int(numbers.min()) < 2 or int(numbers.max()) > self.count:
            raise Unusual("a page is not there")
        runs = numpy.split(numbers, numpy.flatnonzero(numpy.diff(numbers) != 1) + 1)
        parts = [os.pread(self._file, len(run) * self.size, (int(run[0]) - 1) * self.size) for run in runs]
        joined = b"".join(parts)
        if len(joined) != len(numbers) * self.size:
            raise Unusual("the file ends early")
        return numpy.frombuffer(joined + bytes(_PAD), dtype=numpy.uint8)


def _take(pages: Bytes, at: Ints, width: int) -> Ints:
    """The whole numbers of `width` bytes that begin there, with their signs where they have 8."""
    import numpy

    windows = numpy.lib.stride_tricks.sliding_window_view(pages, 8)[at]
    numbers: Ints = windows.view(">i8").ravel().astype(numpy.int64)
    return numbers if width == 8 else (numbers >> (64 - 8 * width)) & ((1 << 8 * width) - 1)


def _read_varints(pages: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """The varints that begin there, and how long they are; none of 9 bytes."""
    import numpy

    head = pages[at]
    values, lengths = (head & 127).astype(numpy.int64), numpy.ones(len(at), dtype=numpy.int64)
    more = numpy.flatnonzero(head > 127)
    for length in range(1, 9):
        if not len(more):
            return values, lengths
        head = pages[at[more] + length]
        values[more] = (values[more] << 7) | (head & 127)
        lengths[more] = length + 1
        more = more[head > 127]
    raise Unusual("a number of 9 bytes")


def _decode(pages: Bytes, of: Pages, asked: Asked, low: int, high: int) -> tuple[Ints, list[Column]]:
    """The rows in some leaves."""
    cells, limits = _find_cells(pages, of.size)
    payload, length = _read_varints(pages, cells)
    at = cells + length
    ids, length = _read_varints(pages, at)
    at = at + length
    if (ids[1:] <= ids[:-1]).any():
        raise Unusual("rows out of order")
    ends = at + _count_local(payload, of.usable)
    if (ends > limits).any():
        raise Unusual("a row that leaves its page")
    if len(ids) and (int(ids[0]) < low or int(ids[-1]) > high):
        inside = (ids >= low) & (ids <= high)
        ids, at, ends = ids[inside], at[inside], ends[inside]
    headers, length = _read_varints(pages, at)
    found = _walk(pages, at + length, at + headers, ends, asked, of)
    if asked.key is not None:
        found[asked.key] = ids
    return ids, [found[place] for place in asked.places]


def _find_cells(pages: Bytes, size: int) -> tuple[Ints, Ints]:
    """Where each row begins, and where its page ends."""
    import numpy

    table = pages[: len(pages) - _PAD].reshape(-1, size)
    counts = (table[:, 3].astype(numpy.int64) << 8) | table[:, 4]
    if (table[:, 0] != _LEAF).any() or (8 + 2 * counts > size).any():
        raise Unusual("a page that is no leaf")
    starts = numpy.repeat(numpy.arange(len(table), dtype=numpy.int64) * size, counts)
    position = numpy.arange(len(starts), dtype=numpy.int64) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    pointer = starts + 8 + 2 * position
    offsets = (pages[pointer].astype(numpy.int64) << 8) | pages[pointer + 1]
    if len(offsets) and int(offsets.max()) >= size:
        raise Unusual("a row outside of its page")
    return starts + offsets, starts + size


def _count_local(payload: Ints, usable: int) -> Ints:
    """How much of each row lies in its page."""
    import numpy

    most = usable - 35
    if not len(payload) or int(payload.max()) <= most:
        return payload
    least = (usable - 12) * 32 // 255 - 23
    rest = least + (payload - least) % (usable - 4)
    return numpy.where(payload <= most, payload, numpy.where(rest <= most, rest, least))


def _walk(pages: Bytes, types_at: Ints, values_at: Ints, ends: Ints, asked: Asked, of: Pages) -> dict[int, Column]:
    """The asked columns: each column's type stands in the header, its value behind that of the column before it."""
    import numpy

    lengths = numpy.array([_count_bytes(kind) for kind in range(128)], dtype=numpy.int64)
    wanted = dict(zip(asked.places, asked.kinds, strict=True))
    first_values, found = values_at, {}
    for place in range(max(asked.places, default=-1) + 1):
        if (types_at >= first_values).any() or (len(types_at) and int(types_at.max()) >= len(pages) - _PAD):
            raise Unusual("a row with fewer columns")
        types: Ints = pages[types_at].astype(numpy.int64)
        if (types > 127).any():
            types, length = _read_varints(pages, types_at)
            types_at = types_at + length
            width = numpy.where(types < 128, lengths[types & 127], (types - _FIRST_TEXT) >> 1)
        else:
            types_at, width = types_at + 1, lengths[types]
        after = values_at + width
        if place in wanted and place != asked.key:
            if (after > ends).any():
                raise Unusual("a value on another page")
            if wanted[place] == TEXT and not of.utf8:
                raise Unusual("texts in UTF-16")
            found[place] = _READERS[wanted[place]](pages, types, values_at, width)
        values_at = after
    return found


def _count_bytes(kind: int) -> int:
    return _WIDTHS[kind] if kind < len(_WIDTHS) else max(0, (kind - _FIRST_TEXT) >> 1)


def _group(types: Ints) -> list[tuple[int, Any]]:
    """The types that occur, each with its rows."""
    import numpy

    if not len(types):
        return []
    if (types == types[0]).all():
        return [(int(types[0]), slice(None))]
    if int(types.max()) > 127:
        raise Unusual("a long text among numbers")
    kinds = numpy.flatnonzero(numpy.bincount(types)).tolist()
    return [(kind, numpy.flatnonzero(types == kind)) for kind in kinds]


def _read_ints(pages: Bytes, types: Ints, at: Ints, _width: Ints) -> Ints:
    import numpy

    values = numpy.empty(len(types), dtype=numpy.int64)
    for kind, rows in _group(types):
        if kind == 0:
            values[rows] = NULL_INT
        elif kind in (_ZERO, _ZERO + 1):
            values[rows] = kind - _ZERO
        elif kind == 1:
            values[rows] = pages[at[rows]].view(numpy.int8)
        elif kind < _REAL:
            width = _WIDTHS[kind]
            windows = numpy.lib.stride_tricks.sliding_window_view(pages, 8)[at[rows]]
            values[rows] = windows.view(">i8").ravel() >> (64 - 8 * width)
        else:
            raise Unusual("a value that is no whole number")
    return values


def _read_reals(pages: Bytes, types: Ints, at: Ints, width: Ints) -> NDArray[numpy.float64]:
    import numpy

    if (types >= len(_WIDTHS)).any():
        raise Unusual("a value that is no number")
    real = types == _REAL
    whole = _read_ints(pages, numpy.where(real, 0, types), at, width)
    values = numpy.where(types == 0, numpy.nan, whole.astype(numpy.float64))
    windows = numpy.lib.stride_tricks.sliding_window_view(pages, 8)[at[real]]
    values[real] = windows.view(">f8").ravel()
    return values


def _read_texts(pages: Bytes, types: Ints, at: Ints, width: Ints) -> Texts:
    import numpy

    null = types == 0
    if (~null & ((types < _FIRST_TEXT) | (types % 2 == 0))).any():
        raise Unusual("a value that is no text")
    try:
        if len(types) and not null.any() and int(width.max()) == int(width.min()) <= 8:
            words = numpy.lib.stride_tricks.sliding_window_view(pages, 8)[at][:, : int(width[0])]
            return _count_distinct(numpy.ascontiguousarray(words), int(width[0]))
        content, known = pages.tobytes(), dict[bytes, int]()
        spans = zip(null.tolist(), at.tolist(), (at + width).tolist(), strict=True)
        codes = [-1 if no else known.setdefault(content[begin:end], len(known)) for no, begin, end in spans]
        return Texts(numpy.array(codes, dtype=numpy.int64), [text.decode() for text in known])
    except UnicodeDecodeError as error:
        raise Unusual("a text that is not UTF-8") from error


def _count_distinct(words: Bytes, width: int) -> Texts:
    """Texts of one width, of at most 8 bytes, of which there are few different ones."""
    import numpy

    if (words == words[0]).all():
        return Texts(numpy.zeros(len(words), dtype=numpy.int64), [words[0].tobytes().decode()])
    pool, codes = numpy.unique(words.view(f"V{width}").ravel(), return_inverse=True)
    return Texts(codes.astype(numpy.int64), [word.tobytes().decode() for word in pool])


_READERS = {INT: _read_ints, REAL: _read_reals, TEXT: _read_texts}
