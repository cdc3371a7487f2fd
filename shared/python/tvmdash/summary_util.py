"""Results in words: quantities, changes, ratios, and the summary that an experiment leaves for people.

All text is plain; whoever shows it (a page, Slack) escapes it.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tvmdash.common import Json
from tvmdash.common.json_schema import Schema
from tvmdash.errors import DashboardError
from tvmdash.judge.means import Ratio, geometric_mean_ratio
from tvmdash.text import TIME_UNITS, elide, format_bytes, format_duration, format_list, format_quantity

__all__ = [
    "SUMMARY_SCHEMA",
    "Failure",
    "Measured",
    "Ratio",
    "Section",
    "SectionKind",
    "Summary",
    "default_summary",
    "format_bytes",
    "format_duration",
    "format_list",
    "format_percent_change",
    "format_quantity",
    "format_ratio",
    "geometric_mean_ratio",
    "parse_summary",
]

TITLE_LENGTH, VALUE_LENGTH = 200, 4000
_WIDEST = 1e4
"""An interval of ratios with ends further apart is not shown: it excludes nothing."""
SUMMARY_SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "summary.json of an experiment",
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": TITLE_LENGTH},
        "value": {"type": "string", "maxLength": VALUE_LENGTH},
        "sections": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string"},
                    "lines": {"type": "array", "items": {"type": "string"}},
                    "numbers": {"type": "object", "additionalProperties": {"type": "number"}},
                    "names": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["kind", "lines"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["title", "value"],
    "additionalProperties": False,
}
_LISTED = 5


class SectionKind(enum.StrEnum):
    """Topics of a summary's sections."""

    FAILED = "failed"
    MEASURED = "measured"
    CHANGES = "changes"
    ENGINES = "engines"
    EXTREMES = "extremes"
    OTHER = "other"


@dataclass(frozen=True)
class Section:
    """A part of a summary: its lines for people, and for programs its kind, numbers and names."""

    kind: SectionKind
    lines: tuple[str, ...]
    numbers: Mapping[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Section:
        """Parse a section of a summary.json; an unknown kind becomes OTHER."""
        kind = SectionKind(value["kind"]) if value["kind"] in set(SectionKind) else SectionKind.OTHER
        return cls(kind, tuple(value["lines"]), value.get("numbers", {}), tuple(value.get("names", ())))


@dataclass(frozen=True)
class Summary:
    """The content of summary.json: plain text for people, and the same in sections where its author wrote some.

    Whoever changes a summary changes its sections (`without`, `with_lines`); nobody searches its text.
    """

    title: str
    value: str
    sections: tuple[Section, ...] = ()

    @classmethod
    def of_sections(cls, title: str, sections: Sequence[Section]) -> Summary:
        """Return the summary whose text is the sections' lines, as many as it may hold."""
        kept = tuple(section for section in sections if section.lines)
        text = "\n".join(line for section in kept for line in section.lines)
        return cls(elide(title, TITLE_LENGTH) or "untitled", text[:VALUE_LENGTH], kept)

    def without(self, *kinds: SectionKind) -> Summary:
        """The summary without its sections of these kinds."""
        return self.of_sections(self.title, [section for section in self._parts if section.kind not in kinds])

    def with_lines(self, lines: Sequence[str], *, before: SectionKind | None = None) -> Summary:
        """The summary with these lines in front of its section of the kind `before`; without one, at its end."""
        parts = self._parts
        position = next((index for index, section in enumerate(parts) if section.kind == before), len(parts))
        more = Section(SectionKind.OTHER, tuple(lines))
        return self.of_sections(self.title, [*parts[:position], more, *parts[position:]])

    @property
    def _parts(self) -> tuple[Section, ...]:
        return self.sections or (Section(SectionKind.OTHER, (self.value,) if self.value else ()),)

    def to_json(self) -> Json:
        """The value for `common.write_json`, checked against `SUMMARY_SCHEMA`."""
        value: dict[str, Any] = {"title": self.title, "value": self.value}
        if self.sections:
            value["sections"] = [_section_to_json(section) for section in self.sections]
        parse_summary(value, "summary")
        return value


def _section_to_json(section: Section) -> dict[str, Any]:
    return {**asdict(section), "lines": list(section.lines), "names": list(section.names)}


@dataclass(frozen=True)
class Measured:
    """One point of tonight; `previous` is the last night's value, None if it had none, for an author's own lines.

    skipped: the last night had none, and `previous` is of the night before it that had one.
    """

    label: str
    value: float
    previous: float | None
    unit: str
    lower_is_better: bool = True
    workload: str = ""
    configuration: str = ""
    skipped: bool = False


@dataclass(frozen=True)
class Failure:
    """A point that could not be measured, and why; its workload and the values of its axes, for programs."""

    label: str
    reason: str
    workload: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


def parse_summary(value: Json, where: str) -> Summary:
    """The Summary in the JSON value of a summary.json; `where` names its file in errors."""
    for error in Schema(SUMMARY_SCHEMA).errors(value):
        message = elide(error.message, 200)
        limits = f"title (1 to {TITLE_LENGTH} characters) and value (at most {VALUE_LENGTH})"
        raise DashboardError(f"{where}: {error.json_path}: {message}. Use an object of two strings, {limits}.")
    return Summary(value["title"], value["value"], tuple(map(Section.from_json, value.get("sections", ()))))


def percent_change(old: float, new: float) -> float:
    """Return the change from `old` to `new` in percent of `old`; infinite from 0 to anything else."""
    if old == 0:
        return 0.0 if new == 0 else math.copysign(math.inf, new)
    return (new - old) / abs(old) * 100


def format_percent_change(old: float, new: float, unit: str = "", *, lower_is_better: bool | None = None) -> str:
    """Format a change, as in "up 12.4 % (worse), 10.8 ms to 12.1 ms"."""
    change = percent_change(old, new)
    span = f"{format_quantity(old, unit)} to {format_quantity(new, unit)}"
    if abs(change) < 0.05:
        return f"unchanged, {span}"
    judged = "" if lower_is_better is None else " (worse)" if (change > 0) == lower_is_better else " (better)"
    size = f" {_format_percent(abs(change))}" if math.isfinite(change) else " from 0"
    return f"{'up' if change > 0 else 'down'}{size}{judged}, {span}"


def _format_percent(value: float) -> str:
    return f"{value:.1f} %" if value < 99.95 else f"{value:.0f} %"


def default_summary(
    title: str,
    points: Sequence[Measured],
    failures: Sequence[Failure] = (),
    *,
    threshold_percent: float = 5.0,
    count: int | None = None,
    engines: Sequence[str] = (),
    more: Sequence[str] = (),
) -> Summary:
    """Tonight in a few lines: what failed and why, how much was measured. What changed, the night's verdict says.

    `count` is how many points there are where `points` holds several metrics of one; `engines` are lines on how the
    engines compare, `more` any others of the caller's.
    """
    measured = len(points) if count is None else count
    sections = (
        _make_failed_section(failures),
        Section(
            SectionKind.MEASURED,
            (f"{_count(measured, 'point')} measured." if points else "Nothing was measured.",),
            {"measured": measured},
        ),
        Section(SectionKind.ENGINES, tuple(engines)),
        Section(SectionKind.OTHER, tuple(more)),
        _make_extremes_section(points),
    )
    return Summary.of_sections(title, sections)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _make_failed_section(failures: Sequence[Failure]) -> Section:
    names = tuple(failure.label for failure in failures)
    lines = (_format_failed(failures),) if failures else ()
    return Section(SectionKind.FAILED, lines, {"failed": len(failures)}, names)


def _format_failed(failures: Sequence[Failure]) -> str:
    texts = [f"{elide(failure.label, 80)}: {elide(failure.reason, 160).rstrip('.')}" for failure in failures[:_LISTED]]
    rest = f"; and {len(failures) - _LISTED} more" if len(failures) > _LISTED else ""
    return f"{_count(len(failures), 'point')} failed. {'; '.join(texts)}{rest}."


def _make_extremes_section(points: Sequence[Measured]) -> Section:
    """List, for each workload measured in several configurations, the best and the worst of them."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for point in points:
        if point.workload and point.configuration:
            groups.setdefault((point.workload, point.unit), []).append(point)
    several = {key: group for key, group in groups.items() if len({p.configuration for p in group}) > 1}
    lines = [_format_extreme_line(workload, group) for (workload, _), group in list(several.items())[:_LISTED]]
    lines += [f"- and {_count(len(several) - _LISTED, 'more workload')}"] if len(several) > _LISTED else []
    return Section(SectionKind.EXTREMES, tuple(lines), {}, tuple(workload for workload, _ in several))


def _format_extreme_line(workload: str, group: Sequence[Measured]) -> str:
    best, worst = sorted(group, key=lambda p: p.value if p.lower_is_better else -p.value)[:: len(group) - 1]
    texts = [f"{elide(p.configuration, 60)} ({format_quantity(p.value, p.unit)})" for p in (best, worst)]
    labels = ("fastest", "slowest") if best.unit in TIME_UNITS and best.lower_is_better else ("best", "worst")
    return f"- {elide(workload, 60)}: {labels[0]} {texts[0]}, {labels[1]} {texts[1]}"


def format_ratio(ratio: Ratio, *, more: str = "faster", less: str = "slower") -> str:
    """Format a ratio as in "1.23x faster (1.18 to 1.29, 5 workloads)": `more` above 1, `less` (inverted) below."""
    workloads = f"{ratio.n} workload{'' if ratio.n == 1 else 's'}"
    turned = ratio.value < 1
    value = 1 / ratio.value if turned else ratio.value
    text = f"{_times(value)}x {less if turned else more}"
    if ratio.low is None or ratio.high is None:
        return f"{text} ({workloads})"
    if ratio.high > _WIDEST * ratio.low:
        return f"{text} ({workloads}, too few or too different for an interval)"
    low, high = (1 / ratio.high, 1 / ratio.low) if turned else (ratio.low, ratio.high)
    doubt = ", possibly no difference" if low <= 1 <= high else ""
    return f"{text} ({_times(low)} to {_times(high)}, {workloads}{doubt})"


def _times(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
