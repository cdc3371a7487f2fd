"""Which of a row's references lead nowhere: the bits of the column `missing`."""

from __future__ import annotations

import enum


class Missing(enum.IntFlag):
    """What a row refers to that is not there. RocPD's views leave such a row out where they join it."""

    EVENT = 1
    PROCESS = 2
    THREAD = 4
    NAME = 8
    AGENT = 16
    SOURCE = 32
    REGION = 64
    QUEUE = 128
    TRACK = 256
    COUNTER = 512
    NODE = 1024
    SAMPLE = 2048


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
