"""Why an incident came: operators and passes of the last good night against those of the first bad one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tvmdash import common
from tvmdash.common import structured
from tvmdash.dashboard_info import DEPENDENCIES
from tvmdash.errors import DashboardError
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from tvmdash.records.metrics import COMPILE_TIME, RUN_TIME
from tvmdash.series import naming
from tvmdash.text import format_list
from tvmdash.trials.receipt import Receipt, ReceiptRecord, place_of

if TYPE_CHECKING:  # it brings numpy, which most publishes do without
    from tvmdash.judge.operators import OperatorChange, OperatorSide

_MOST_PARTS, _DIGITS_MS = 12, 6
_MOST_ASKED, _MOST_NAMED = 3, 3
_ALL = 1.005
"""Beyond it, a share is no part of the whole: others made up for it."""
_MOST_OFF = math.log(1.5)
"""One profiled run says where the time goes while its sum moved as the series, within this."""


@dataclass(frozen=True)
class DifferencePart:
    """An operator or a pass: its time on both sides in ms (None: not there), and its share of the whole difference.

    low_ms, high_ms: the difference with 95 % confidence, None where few processes were profiled. words: how it stands.
    """

    name: str
    good_ms: float | None
    bad_ms: float | None
    share: float | None
    low_ms: float | None
    high_ms: float | None
    processes: tuple[int, int]
    words: str

    @property
    def difference_ms(self) -> float:
        return (self.bad_ms or 0.0) - (self.good_ms or 0.0)


@dataclass(frozen=True)
class EnvironmentDifference:
    """Of one series; parts: those that differ most first; others: how many more there are. kind: operators or passes.

    unexplained_ms: what the parts leave of the change of the whole, which was timed without a profiler; None of passes.

    renumbered: the compiler numbered its functions otherwise; parts go by what these compute.
    """

    name: str
    kind: str
    parts: tuple[DifferencePart, ...]
    others: int
    good_ms: float
    bad_ms: float
    renumbered: bool
    unexplained_ms: float | None = None

    @property
    def change(self) -> float:
        """The change of the sums, as a fraction."""
        return self.bad_ms / self.good_ms - 1 if self.good_ms else 0.0

    def contradicts(self, effect: float) -> bool:
        """Return True where the sums moved otherwise than the series, by `effect`: its profile was disturbed."""
        both = 1 + self.change, 1 + effect
        return min(both) > 0 and abs(math.log(both[0] / both[1])) > _MOST_OFF

    @property
    def explains(self) -> float | None:
        """The first part's share of the difference, where it is one part of the whole."""
        first = self.parts[0] if self.parts else None
        return first.share if first is not None and first.share is not None and 0 < first.share < _ALL else None


@dataclass(frozen=True)
class ComparedNight:
    """An experiment's night on the site; a fault says why there is nothing of it."""

    stamp: str
    receipt: Receipt | None
    fault: str
    trace: str

    def record_of(self, series: str, metric: str) -> ReceiptRecord | None:
        """The record of which the number with this key is a part."""
        records = self.receipt.records if self.receipt else ()
        return next((record for record in records if record.series.get(metric) == series), None)


def read_night(site: Path, experiment: str, stamp: str) -> ComparedNight:
    """The receipt of the night in the site that is being made, and its trace's place where there is one."""
    name = place_of(experiment, stamp)
    path = site / f"{name}.json"
    if not path.is_file():
        return ComparedNight(stamp, None, "the site has no receipt of it any more", "")
    try:
        value = dict(common.read_json(path))
        value.pop("schema_version", None)
        receipt = structured.from_json(Receipt, value, path)
    except DashboardError as error:
        return ComparedNight(stamp, None, str(error), "")
    trace = f"{name}.perfetto-trace"
    return ComparedNight(stamp, receipt, "", trace if (site / trace).is_file() else "")


def compare_records(name: str, metric: str, good: ReceiptRecord, bad: ReceiptRecord) -> EnvironmentDifference | None:
    """Compare two measurements of a point; None where either was not profiled."""
    from tvmdash.judge.operators import compare_operators

    kind = "passes" if metric == COMPILE_TIME else "operators"
    sides = [_list_passes(record) if kind == "passes" else _list_operators(record) for record in (good, bad)]
    if not all(side.operators for side in sides):
        return None
    compared = compare_operators(*sides)
    good_ms, bad_ms = (sum(map(median, side.operators.values())) for side in sides)
    whole = bad_ms - good_ms
    parts = [_make_part(change, whole) for change in compared.changes]
    parts.sort(key=lambda part: -part.difference_ms if whole >= 0 else part.difference_ms)
    renumbered = kind == "operators" and compared.renumbered
    return EnvironmentDifference(
        name, kind, _farthest(parts), max(0, len(parts) - _MOST_PARTS), good_ms, bad_ms, renumbered=renumbered,
        unexplained_ms=None if compared.unexplained_ms is None else round(compared.unexplained_ms, _DIGITS_MS),
    )  # fmt: skip


@dataclass(frozen=True)
class OneSidedPasses:
    """Passes that the compiler ran for a point on one night alone, in its order; `same` passes ran on both."""

    gone: tuple[str, ...]
    new: tuple[str, ...]
    same: int


def compare_passes(good: ReceiptRecord, bad: ReceiptRecord) -> OneSidedPasses | None:
    """Compare the passes; None where either night did not write them down."""
    before, after = ([name for name, _ in record.passes] for record in (good, bad))
    if not before or not after:
        return None
    gone, new = ([name for name in own if name not in other] for own, other in ((before, after), (after, before)))
    return OneSidedPasses(tuple(gone), tuple(new), len({*before} & {*after}))


def compare_dependencies(good: Receipt, bad: Receipt) -> Iterator[str]:
    """Yield the dependencies that differ, as in "LLVM 18.1.8 → 19.1.0"."""
    facts = [common.object_in(common.object_in(each.night, "artifact"), "facts") for each in (good, bad)]
    for fact, name in DEPENDENCIES.items():
        before, after = (side.get(fact) for side in facts)
        if before and after and before != after:
            yield f"{name} {before} → {after}"


def _list_operators(record: ReceiptRecord) -> OperatorSide:
    from tvmdash.judge.operators import OperatorSide

    # Older receipts name the sums over all runs alone.
    sums = {name: (total_ns / max(1, record.runs) / 1e6,) for name, _, total_ns in record.operators}
    whole = (median(record.samples_ms),) if record.samples_ms else ()
    return OperatorSide(record.operator_ms or sums, whole, record.known_operators)


def _list_passes(record: ReceiptRecord) -> OperatorSide:
    from tvmdash.judge.operators import OperatorSide

    sums: dict[str, tuple[float]] = {name: (duration_ns / 1e6,) for name, duration_ns in record.passes}
    return OperatorSide(sums)


def _make_part(change: OperatorChange, whole_ms: float) -> DifferencePart:
    share = change.change_ms / whole_ms if whole_ms else None
    interval = (change.low_ms, change.high_ms, change.processes)
    return DifferencePart(change.name, change.before_ms, change.after_ms, share, *interval, change.words)


def _farthest(parts: Sequence[DifferencePart]) -> tuple[DifferencePart, ...]:
    """Return those that differ most, whichever way, in the order that they came."""
    kept = sorted(parts, key=lambda part: -abs(part.difference_ms))[:_MOST_PARTS]
    return tuple(part for part in parts if part in kept)


def describe_why(site: Path, incident: Incident) -> str:
    """Say in one line which passes and operators differ, as in "FuseOps no longer runs; a_b became a and b".

    Of the worst series of which the site has the receipts of both nights; "" where it has none, or nothing is other.
    """
    for item in incident.worst_first[:_MOST_ASKED]:
        nights = (read_night(site, item.experiment, stamp) for stamp in (incident.after, incident.begin))
        good, bad = (night.record_of(naming.file_name_of(item.series), item.metric) for night in nights)
        if good is not None and bad is not None:
            clauses = [*_describe_passes(compare_passes(good, bad)), *_describe_operators(item, good, bad)]
            if clauses:
                return "; ".join(clauses)
    return ""


def _describe_passes(passes: OneSidedPasses | None) -> Iterator[str]:
    if passes is not None and passes.gone:
        yield f"{format_list(passes.gone, _MOST_NAMED)} no longer run{'s' if len(passes.gone) == 1 else ''}"
    if passes is not None and passes.new:
        yield f"{format_list(passes.new, _MOST_NAMED)} now run{'s' if len(passes.new) == 1 else ''} too"


def _name_computations(operators: Sequence[str]) -> list[str]:
    """Return the words of their names without numbering: a fused function is named after all that it does."""
    words = (word for name in operators for word in name.split("_"))
    return sorted(word for word in words if word != "fused" and not word.isdigit())


def _describe_operators(item: Moved, good: ReceiptRecord, bad: ReceiptRecord) -> Iterator[str]:
    """Name the operators of one side alone; where both have all, the one that most of the difference is in."""
    metric = RUN_TIME if item.metric == COMPILE_TIME else item.metric
    difference = compare_records(item.name, metric, good, bad)
    if difference is None:
        return
    gone = [part.name for part in difference.parts if part.bad_ms is None]
    new = [part.name for part in difference.parts if part.good_ms is None]
    before, after = (format_list(names, _MOST_NAMED) for names in (gone, new))
    if gone and new and _name_computations(gone) == _name_computations(new):
        yield f"{before} became {after}"
    elif gone or new:
        sides = ((gone, before, "gone"), (new, after, "new"))
        yield from (f"{text} {'is' if len(names) == 1 else 'are'} {word}" for names, text, word in sides if names)
    elif metric == item.metric and difference.explains and not difference.contradicts(item.effect):
        yield f"{difference.parts[0].name} takes {100 * difference.explains:.0f} % of the difference"
