"""The packets of a Perfetto trace: the few fields of TracePacket that a trace of slices and counters needs.

Field numbers are those of perfetto's protos/perfetto/trace/. Two packets make a slice (begin, end); names are interned
once; all packets are of one sequence. Moments are nanoseconds since 1970 on the trace's clock.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvmtraces.convert.events import clean, format_json

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

    def copy(self, column: int, values: NDArray[Any]) -> None:
        """Write a column of doubles, or of integers of 64 bits, at `place`."""
        import numpy

        wide = numpy.ascontiguousarray(values, dtype=f"<{values.dtype.kind}8").view(numpy.uint8).reshape(-1, 8)
        self.bytes[:, column : column + 8] = wide


if TYPE_CHECKING:
    from tvmtraces.convert.events import Ints, Reals

_PACKET, _TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS, _TRACK, _CLOCKS = 1, 8, 10, 11, 12, 13, 60, 6
_CLEARED, _NEEDS_STATE = 1, 2
_BEGIN, _END, _COUNTER = 1, 2, 4
_REALTIME, _BOOTTIME = 1, 6
_ONE_SEQUENCE = whole(_SEQUENCE, 1) + whole(_FLAGS, _NEEDS_STATE)

TIME_WIDTH, TRACK_WIDTH, NAME_WIDTH, CATEGORY_WIDTH = 9, 4, 4, 2
MAX_TRACKS, MAX_NAMES, MAX_CATEGORIES = 1 << 7 * TRACK_WIDTH, 1 << 7 * NAME_WIDTH, 1 << 7 * CATEGORY_WIDTH


def opening(moment_ns: int) -> bytes:
    """The first packets: an empty state of interned names, and that the trace's clock is the real time."""
    # one reading for both clocks: the trace's own, the boot time, then shows the real time
    clocks = [message(1, whole(1, clock), whole(2, moment_ns)) for clock in (_BOOTTIME, _REALTIME)]
    return message(_PACKET, whole(_SEQUENCE, 1), whole(_FLAGS, _CLEARED)) + message(_PACKET, message(_CLOCKS, *clocks))


def process(uuid: int, pid: int, name: str) -> bytes:
    """A process's track."""
    described = message(3, whole(1, pid), text(6, name))
    return message(_PACKET, message(_TRACK, whole(1, uuid), text(2, name), described))


def lane(uuid: int, parent: int, name: str) -> bytes:
    """A track for slices."""
    return message(_PACKET, message(_TRACK, whole(1, uuid), text(2, name), whole(5, parent)))


def counter(uuid: int, parent: int, name: str, unit: str) -> bytes:
    """A track for a counter's values."""
    described = message(8, text(6, unit)) if unit else message(8)
    return message(_PACKET, message(_TRACK, whole(1, uuid), text(2, name), whole(5, parent), described))


def interned(names: Mapping[str, int], categories: Mapping[str, int]) -> bytes:
    """Return the definitions of interned names and categories."""
    entries = [message(1, whole(1, number), text(2, name)) for name, number in categories.items()]
    entries += [message(2, whole(1, number), text(2, name)) for name, number in names.items()]
    return message(_PACKET, _ONE_SEQUENCE, message(_INTERNED, *entries)) if entries else b""


def _event_row(event: bytes) -> tuple[bytes, int, int]:
    """A packet with an event of fixed length, and where its timestamp and its event begin."""
    head = tag(_TIMESTAMP, 0)
    body = head + bytes(TIME_WIDTH) + _ONE_SEQUENCE + message(_EVENT, event)
    packet = message(_PACKET, body)
    start = len(packet) - len(body)
    return packet, start + len(head), len(packet) - len(event)


_TRACK_FIELD, _NAME_FIELD, _CATEGORY_FIELD = tag(11, 0), tag(10, 0), tag(3, 0)


def slices(
    starts: Ints, ends: Ints, tracks: Ints, names: Ints, categories: Ints, flows: NDArray[numpy.uint64] | None = None
) -> Rows:
    """Begin and end of each slice, in one row; each with a flow, or none."""
    begin_event = (
        whole(9, _BEGIN)
        + _TRACK_FIELD
        + bytes(TRACK_WIDTH)
        + _NAME_FIELD
        + bytes(NAME_WIDTH)
        + _CATEGORY_FIELD
        + bytes(CATEGORY_WIDTH)
        + (b"" if flows is None else fixed(47, 0))
    )
    begin, begin_time, begin_event_at = _event_row(begin_event)
    end, end_time, end_event_at = _event_row(whole(9, _END) + _TRACK_FIELD + bytes(TRACK_WIDTH))
    rows = Rows(begin + end, len(starts))
    track_at = begin_event_at + 2 + 1
    name_at = track_at + TRACK_WIDTH + 1
    rows.fill(begin_time, TIME_WIDTH, starts)
    rows.fill(track_at, TRACK_WIDTH, tracks)
    rows.fill(name_at, NAME_WIDTH, names)
    rows.fill(name_at + NAME_WIDTH + 1, CATEGORY_WIDTH, categories)
    if flows is not None:
        rows.copy(len(begin) - 8, flows)
    rows.fill(len(begin) + end_time, TIME_WIDTH, ends)
    rows.fill(len(begin) + end_event_at + 2 + 1, TRACK_WIDTH, tracks)
    return rows


def counters(moments: Ints, tracks: Ints, values: Reals) -> Rows:
    """The value of a counter's track at a moment, in each row."""
    value = real(44, 0.0)
    packet, time_at, event_at = _event_row(whole(9, _COUNTER) + _TRACK_FIELD + bytes(TRACK_WIDTH) + value)
    rows = Rows(packet, len(moments))
    rows.fill(time_at, TIME_WIDTH, moments)
    rows.fill(event_at + 2 + 1, TRACK_WIDTH, tracks)
    rows.copy(len(packet) - 8, values)
    return rows


def rich_slice(
    span: tuple[int, int], numbers: tuple[int, int, int], flows: Sequence[int], details: Mapping[str, Any]
) -> bytes:
    """Begin and end of one slice that has flows or details; `numbers` are those of track, name and category."""
    track, name, category = numbers
    on_track = _TRACK_FIELD + padded(track, TRACK_WIDTH)
    begin = message(
        _EVENT,
        whole(9, _BEGIN),
        on_track,
        whole(10, name),
        whole(3, category),
        *(fixed(47, flow) for flow in flows),
        *(_detail(key, value) for key, value in details.items()),
    )
    end = message(_EVENT, whole(9, _END), on_track)
    return b"".join(
        message(_PACKET, whole(_TIMESTAMP, moment), _ONE_SEQUENCE, event)
        for moment, event in zip(span, (begin, end), strict=True)
    )


def _detail(key: str, value: object) -> bytes:
    """A debug annotation; what is neither a number nor a text is written as JSON."""
    if isinstance(value, bool):
        known = whole(2, int(value))
    elif isinstance(value, int) and -(2**63) <= value < 2**63:
        known = whole(4, value)
    elif isinstance(value, float):
        known = real(5, value)
    elif isinstance(value, str):
        known = text(6, clean(value))
    else:
        known = text(6, format_json(value))
    return message(4, text(10, clean(str(key))), known)
