"""Protobuf's wire format: what Perfetto's messages need of it, for single values and for columns of them.

https://protobuf.dev/programming-guides/encoding/. A varint may be longer than it needs to be, so that those of a column
are all of one width and a message per row is a row of a matrix of bytes.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Ints = NDArray[numpy.int64]
    Bytes = NDArray[numpy.uint8]

VARINT, FIXED_64, LENGTH = 0, 1, 2


def varint(value: int) -> bytes:
    """`value`, not negative, in as few bytes as it takes."""
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def padded(value: int, width: int) -> bytes:
    """`value` as a varint of `width` bytes."""
    parts = [value >> 7 * index & 127 | 128 for index in range(width)]
    parts[-1] &= 127
    return bytes(parts)


def tag(number: int, kind: int) -> bytes:
    """The key of field `number`."""
    return varint(number << 3 | kind)


def whole(number: int, value: int) -> bytes:
    """Field `number` with a whole number that is not negative; a negative one as its 64-bit complement."""
    return tag(number, VARINT) + varint(value & (1 << 64) - 1)


def real(number: int, value: float) -> bytes:
    """Field `number` with a double."""
    return tag(number, FIXED_64) + struct.pack("<d", value)


def fixed(number: int, value: int) -> bytes:
    """Field `number` with a fixed64."""
    return tag(number, FIXED_64) + struct.pack("<Q", value)


def message(number: int, *parts: bytes) -> bytes:
    """Field `number` with a message of these fields."""
    body = b"".join(parts)
    return tag(number, LENGTH) + varint(len(body)) + body


def text(number: int, value: str) -> bytes:
    """Field `number` with a text."""
    return message(number, value.encode())


class Rows:
    """Messages of one layout, a row each: a template whose varints are filled in by columns."""

    def __init__(self, template: bytes, count: int) -> None:
        import numpy

        self.bytes: Bytes = numpy.empty((count, len(template)), dtype=numpy.uint8)
        self.bytes[:] = numpy.frombuffer(template, dtype=numpy.uint8)

    def fill(self, column: int, width: int, values: Ints) -> None:
        """Write a column as varints of `width` bytes at `place`."""
        import numpy

        rest = values.astype(numpy.uint64)
        for offset in range(width):
            mark = 128 if offset < width - 1 else 0
            self.bytes[:, column + offset] = (rest & numpy.uint64(127)).astype(numpy.uint8) | numpy.uint8(mark)
            rest >>= numpy.uint64(7)

    def copy(self, column: int, values: NDArray[numpy.float64]) -> None:
        """Write a column of doubles at `place`."""
        import numpy

        wide = numpy.ascontiguousarray(values, dtype="<f8").view(numpy.uint8).reshape(-1, 8)
        self.bytes[:, column : column + 8] = wide
