"""The conversation of a night with a worker: what is said arrives, and every other thing is named."""

from __future__ import annotations

import io
import json
import math
import os
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from dashboard.hosts.messages import (
    MOST_BYTES,
    Acknowledge,
    Beat,
    Begin,
    Channel,
    ChannelError,
    Ended,
    Hello,
    Holds,
    Offer,
    Refused,
    Tvm,
)
from tests import fuzzing
from tests.fuzzing import cases, the_same_each_time
from tvmdash.common import structured

HASH = "0" * 64
STAMP = "20261123T031500Z"
MESSAGES = (
    Hello(1, "n", "cpu", "3.11", "cp311", "x86_64", 1.5, 10), Begin(STAMP, "box", 7, 60.0, rebuild=True), Beat(),
    Ended("why", interrupted=True), Holds(3), Offer(HASH, STAMP), Acknowledge(HASH), Refused("why"), Tvm("key", HASH),
)  # fmt: skip


def make_offer(size: str = "0", name: str = HASH, stamp: str = STAMP) -> str:
    return '{"kind": "Offer", "bytes": ' + f'{size}, "id": "{name}", "stamp": "{stamp}"' + "}"


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    """The two sides."""
    first, second = os.pipe(), os.pipe()
    yield Channel(first[0], second[1], "box"), Channel(second[0], first[1], "home")
    for descriptor in (*first, *second):
        try:
            os.close(descriptor)
        except OSError:
            continue


def test_messages_and_their_bytes_arrive_in_their_order(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    content = os.urandom(3_000_000)
    begin = Begin("20261123T031500Z", "box", 7, 60.0, rebuild=True, repository={"commit": "é"})

    def speak() -> None:
        there.send(Hello(1, "n", "cpu", "3.11", "cp311", "x86_64", 1.5, 10))
        there.send(begin, io.BytesIO(content), len(content))
        there.send(Beat())

    speaker = threading.Thread(target=speak)
    speaker.start()
    assert here.receive(10) == (Hello(1, "n", "cpu", "3.11", "cp311", "x86_64", 1.5, 10), 0)
    message, size = here.receive(10)
    taken = io.BytesIO()
    here.receive_bytes(size, taken, 10)
    assert (message, taken.getvalue() == content) == (begin, True)
    assert here.receive(10) == (Beat(), 0)
    speaker.join()


def test_lines_that_are_no_message_can_be_read_before(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    there.send_raw("Welcome\r", io.BytesIO(), 0)
    there.send(Beat())
    assert here.receive_line(10) == "Welcome\r"
    assert here.receive(10) == (Beat(), 0)


@pytest.mark.parametrize(
    "line",
    ["hello", "[]", "{}", '{"kind": "Rm"}', '{"kind": "Beat"}', '{"kind": "Beat", "bytes": "x"}',
     '{"kind": "Offer", "bytes": 0, "id": 5, "stamp": ""}', '{"kind": "Offer", "bytes": 0}', "\udcff",
     '{"kind": "Beat", "bytes": Infinity}', '{"kind": "Beat", "bytes": 1e999}', '{"kind": "Beat", "bytes": 0.0}',
     '{"kind": "Beat", "bytes": true}', '{"kind": "Beat", "bytes": -5}', '{"kind": "Beat", "bytes": 5}',
     '{"kind": "Beat", "bytes": %s}' % ("9" * 5000), '{"kind": ["Beat"], "bytes": 0}',
     '{"kind": "Beat", "bytes": 0, "kind": "Ready"}', '{"kind": "Beat", "bytes": 0, "x": NaN}',
     '{"kind": "Beat", "bytes": 0, "x": %s}' % ("[" * 50_000), '{"kind": "Beat", "bytes": 0, "x": "\\ud800"}',
     '{"kind": "Holds", "bytes": 0, "parcels": -1}', '{"kind": "Holds", "bytes": 0, "parcels": 1000000000}',
     make_offer(size="1000000000000000"),
     make_offer(name="../../x"),
     make_offer(stamp="../../x"),
     make_offer(stamp="20260230T031500Z")],
)  # fmt: skip
def test_what_is_no_message_is_named(line: str, ends: tuple[Channel, Channel]) -> None:
    here, _ = ends
    os.write(ends[1]._writer, line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(ChannelError, match=r"box: .* is not a valid worker message: "):
        here.receive(10)


def make_line(chance: random.Random) -> bytes:
    """What may be said in place of a message."""
    message = chance.choice(MESSAGES)
    line: Any = {"kind": type(message).__name__, "bytes": 0, **structured.to_json(message)}
    changed = fuzzing.dump(fuzzing.change(chance, line)) if chance.random() < 0.5 else b""
    return (changed or fuzzing.damage(chance, json.dumps(line).encode())).replace(b"\n", b" ")[:60_000]


@given(cases(make_line))
@the_same_each_time(200, 20_000)
def test_any_line_is_a_message_or_named(line: bytes) -> None:
    first, second = os.pipe(), os.pipe()
    os.write(first[1], line + b"\n")
    message, size, fault = None, 0, ""
    try:
        message, size = Channel(first[0], second[1], "box").receive(10)
    except ChannelError as error:
        fault = str(error)
    for descriptor in (*first, *second):
        os.close(descriptor)
    if message is None:
        assert fault.startswith("box: ")
        assert len(fault) < 1000
        assert fault.isprintable()
    else:
        assert 0 <= size <= MOST_BYTES.get(type(message), 0)
        assert json.dumps(structured.to_json(message), allow_nan=False)


def test_a_line_without_end_fills_no_memory(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    stop = threading.Event()

    def flood() -> None:
        try:
            while not stop.is_set():
                there._write(b"x" * 65536, math.inf)
        except ChannelError:
            pass

    flooding = threading.Thread(target=flood)
    flooding.start()
    with pytest.raises(ChannelError, match="received an unterminated line"):
        here.receive(10)
    stop.set()
    os.close(here._reader)
    flooding.join()


def test_silence_and_the_end_are_told_apart(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    with pytest.raises(ChannelError, match="box: no message received for"):
        here.receive(0.01)
    os.write(there._writer, b'{"kind":')
    os.close(there._writer)
    with pytest.raises(ChannelError, match="box: connection closed"):
        here.receive(10)


def test_a_side_that_does_not_read_is_not_waited_for(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(ChannelError, match="home: does not read what is sent to it"):
        ends[1].send(Offer(HASH, STAMP), io.BytesIO(bytes(1 << 20)), 1 << 20, within_s=0.1)


def test_bytes_that_come_drop_by_drop_are_not_waited_for(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.01):
            os.write(there._writer, b"x")

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        with pytest.raises(ChannelError, match="box: no message received for"):
            here.receive_bytes(1 << 20, io.BytesIO(), 60, within_s=0.2)
        with pytest.raises(ChannelError, match="box: no message received for"):
            here.receive(0.2)
    finally:
        stop.set()
        dripping.join()


def test_speaking_to_nobody_is_an_error(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    os.close(there._reader)
    with pytest.raises(ChannelError, match="box: connection lost: Broken pipe"):
        here.send(Offer(HASH, STAMP))


def test_a_file_that_has_become_shorter_is_an_error(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(ChannelError, match="file was truncated while it was sent; 5 of 10 bytes are missing"):
        ends[0].send(Beat(), io.BytesIO(b"short"), 10)
