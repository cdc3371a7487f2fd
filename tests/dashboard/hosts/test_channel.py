"""The conversation of a night with a worker: what is said arrives, and every other thing is named."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator

import pytest

from dashboard.hosts.channel import Channel, ChannelError
from dashboard.hosts.messages import Beat, Begin, Hello, Offer


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
     '{"kind": "Offer", "bytes": 0, "id": 5, "stamp": ""}', '{"kind": "Offer", "bytes": 0}', "\udcff"],
)  # fmt: skip
def test_what_is_no_message_is_named(line: str, ends: tuple[Channel, Channel]) -> None:
    here, _ = ends
    os.write(ends[1]._writer, line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(ChannelError, match="box"):
        here.receive(10)


def test_a_line_without_end_fills_no_memory(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    stop = threading.Event()

    def flood() -> None:
        try:
            while not stop.is_set():
                there._write(b"x" * 65536)
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


def test_speaking_to_nobody_is_an_error(ends: tuple[Channel, Channel]) -> None:
    here, there = ends
    os.close(there._reader)
    with pytest.raises(ChannelError, match="box: connection lost: Broken pipe"):
        here.send(Offer("x", "20261123T031500Z"))


def test_a_file_that_has_become_shorter_is_an_error(ends: tuple[Channel, Channel]) -> None:
    with pytest.raises(ChannelError, match="file was truncated while it was sent; 5 of 10 bytes are missing"):
        ends[0].send(Beat(), io.BytesIO(b"short"), 10)
