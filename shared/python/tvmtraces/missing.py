"""Which of a row's references lead nowhere: the bits of the column `missing`."""

from __future__ import annotations

import enum


class Missing(enum.IntFlag):
    """What a row refers to that is not there. RocPD's views leave such a row out where they join it."""

    EVENT = enum.auto()
    PROCESS = enum.auto()
    THREAD = enum.auto()
    NAME = enum.auto()
    AGENT = enum.auto()
    SOURCE = enum.auto()
    REGION = enum.auto()
    QUEUE = enum.auto()
    TRACK = enum.auto()
    COUNTER = enum.auto()
    NODE = enum.auto()
    SAMPLE = enum.auto()


WORDS = {
    Missing.EVENT: "event",
    Missing.PROCESS: "process",
    Missing.THREAD: "thread",
    Missing.NAME: "name",
    Missing.AGENT: "agent",
    Missing.SOURCE: "source agent",
    Missing.REGION: "name of the region",
    Missing.QUEUE: "process of the queue",
    Missing.TRACK: "track",
    Missing.COUNTER: "counter",
    Missing.NODE: "node",
    Missing.SAMPLE: "sample",
}
"""For people."""
