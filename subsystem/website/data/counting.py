"""How many points each series has, counted anew only where the history is not the one that was counted last time."""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash.series.store import Count, Store


@dataclass(frozen=True)
class CountedNights:
    """The nights of one experiment in one index: their TVM and machine by stamp.

    `born` changes where the index was made anew, for then anything may be different. `upto` maps each stamp to a text
    that changes when a night up to it does.
    """

    born: str
    versions: Mapping[str, str]
    machines: Mapping[str, str]
    upto: Mapping[str, str]

    @classmethod
    def read(cls, opened: Store, experiment: str, born: str) -> CountedNights:
        versions, machines = opened.versions(experiment), opened.machines(experiment)
        return cls(born, versions, machines, dict(_running(born, versions, machines)))

    @functools.cached_property
    def stamps(self) -> tuple[str, ...]:
        """All of them, oldest first."""
        return tuple(self.upto)

    def last(self, before: str = "~") -> str:
        """The last stamp before `before`, "" where there is none."""
        index = bisect.bisect_left(self.stamps, before)
        return self.stamps[index - 1] if index else ""


def _running(born: str, versions: Mapping[str, str], machines: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    digest = hashlib.sha256(born.encode())
    for stamp, version in versions.items():
        digest.update(f"{stamp}\0{version}\0{machines.get(stamp)}\0".encode("utf-8", errors="surrogatepass"))
        yield stamp, digest.hexdigest()[:20]


def counted(
    opened: Store, experiment: str, nights: CountedNights, boundary: str, known: Mapping[str, Any]
) -> dict[int, Count]:
    """The count of each series; `known` is what `to_json` of an earlier publish gave."""
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
        if known["boundary"] == boundary and nights.upto[known["stamp"]] == known["upto"]:
            before = {int(number): Count(*_checked(count)) for number, count in known["series"].items()}
            return _sum(before, opened.counts(experiment, after=known["stamp"], before=boundary))
    return opened.counts(experiment, before=boundary)


def _checked(count: Any) -> tuple[int, int, str]:
    points, past, last_stamp = count
    return int(points), int(past), str(last_stamp)


def _sum(before: Mapping[int, Count], new: Mapping[int, Count]) -> dict[int, Count]:
    both = dict(before)
    for number, count in new.items():
        old = both.get(number, Count(0, 0, ""))
        both[number] = Count(old.points + count.points, old.past + count.past, count.last_stamp)
    return both


def to_json(nights: CountedNights, boundary: str, counts: Mapping[int, Count]) -> dict[str, Any]:
    """What the next publish needs, so that it counts only new nights."""
    last = nights.last()
    series = {str(number): [count.points, count.past, count.last_stamp] for number, count in counts.items()}
    return {"boundary": boundary, "stamp": last, "upto": nights.upto.get(last, ""), "series": series}
