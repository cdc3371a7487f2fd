"""A night's results as one Markdown page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from dashboard.report.results import ExperimentResult, NightResults
from dashboard.report.tables import (
    FAILED,
    escape,
    format_common_values,
    format_failed_point,
    format_folded,
    format_leaves,
    format_table,
    format_tables,
    name_points,
)
from tvmdash.common import format_moment
from tvmdash.dashboard_info import COMPLETE, Night
from tvmdash.experiment import engine_text
from tvmdash.text import format_bytes, format_duration, format_list

_REASON, _NAMED, _WARNINGS = 300, 4, 6


def format_page(results: NightResults) -> str:
    """Format the page, beginning with what it is and how it is made again."""
    lines = [*_format_head(results), *_format_overview(results)]
    for result in results.experiments:
        lines += ["", *_format_experiment(result)]
    return "\n".join(lines) + "\n"


def _format_head(results: NightResults) -> Iterator[str]:
    night = results.night
    yield "# Results of one night"
    yield ""
    yield (
        "Every number that one night of this dashboard measured, failures included. The page is made from the home's"
        " files by the command below and not edited by hand. Run a night of your own and the command prints yours, on"
        " the terminal without `--output`, of the newest night without a stamp."
    )
    yield ""
    yield f"    python3 -m dashboard results HOME {escape(night.stamp)} --output results.md"
    yield ""
    yield (
        "Times are medians over several processes where there was time for several; in brackets stands the 95 %"
        " interval of the median, and a time without one has too few samples for it."
        f" `{FAILED}`: the point gave no answer or a wrong one; the reason is below its table."
        " What makes a number doubtful stands there too."
        " docs/explanation/measuring.md says how a point is measured, docs/reference/experiments.md what each"
        " experiment asks."
    )
    yield ""
    yield from format_table(["", ""], [[name, text] for name, text in _list_facts(results) if text], words=2)


def _list_facts(results: NightResults) -> Iterator[tuple[str, str]]:
    night = results.night
    state = "" if night.state == COMPLETE else f", {night.state}"
    yield "night", f"{format_moment(night.stamp)}{state}, {format_duration(night.elapsed_s)} in all"
    for result in results.experiments:
        if result.machine:
            yield "machine", format_machine(result.machine)
            break
    yield "TVM", "; ".join(escape(_format_artifact(artifact, night)) for artifact in night.artifacts)
    yield "engines", escape(_format_engines(results.experiments))
    yield "dashboard", escape(_format_dashboard(night.repository))
    yield "seed", escape(str(night.seed)) if night.seed is not None else ""
    for note in night.notes:
        yield "note", escape(note)


def _format_dashboard(repository: Mapping[str, object]) -> str:
    parts = [str(repository.get("version") or ""), str(repository.get("commit") or "")[:12]]
    return " ".join(filter(None, parts)) + (" with changes of its own" if repository.get("dirty") else "")


def format_machine(machine: Mapping[str, object]) -> str:
    memory = machine.get("memory_bytes")
    facts = [
        str(machine.get("cpu_model") or machine.get("hw_model") or ""),
        f"{machine['cores']} cores" if machine.get("cores") else "",
        f"{format_bytes(memory)} of memory" if isinstance(memory, (int, float)) else "",
        "a virtual machine" if machine.get("virtual_machine") else "",
        f"governor {machine['governor']}" if machine.get("governor") else "",
        *(str(machine.get(name) or "") for name in ("system", "distribution", "libc")),
        f"Python {machine['python']}" if machine.get("python") else "",
    ]
    return escape(", ".join(word for word in facts if word))


def _format_artifact(artifact: Mapping[str, object], night: Night) -> str:
    commit, against = artifact.get("commit"), night.describe_references(artifact)
    parts = [str(artifact.get("version", "of unknown version")), f"commit {commit}" if commit else ""]
    return ", ".join(filter(None, (*parts, against and f"measured {against}")))


def _format_engines(experiments: Sequence[ExperimentResult]) -> str:
    versions: dict[str, set[str]] = {}
    for result in experiments:
        for record in result.data.records if result.data else ():
            versions.setdefault(record.engine, set()).add(record.engine_version)
    return ", ".join(
        f"{name} {' and '.join(sorted(versions_of_engine))}".strip()
        for name, versions_of_engine in sorted(versions.items())
    )


def _format_overview(results: NightResults) -> Iterator[str]:
    yield ""
    yield "## The experiments"
    yield ""
    if not results.experiments:
        yield "No experiment ran on this night."
        return
    yield from format_table(
        ["experiment", "setup", "run", "altogether", "points", FAILED], [*map(_format_row, results.experiments)]
    )
    yield ""
    if not results.watched:
        yield (
            "The telemetry subsystem did not check this night; only the warnings below show whether other programs "
            "disturbed it."
        )
        return
    sentences = [
        f"- {escape(result.job.name)}: {escape(result.disturbed)}" for result in results.experiments if result.disturbed
    ]
    yield ("Machine problems found by telemetry:" if sentences else "Telemetry found no problem with the machine.")
    yield from ["", *sentences] if sentences else []


def _format_row(result: ExperimentResult) -> list[str]:
    spent = {step.stage: step.elapsed_s for step in result.job.steps}
    times = [format_duration(spent[stage]) if spent.get(stage) else "" for stage in ("setup", "run")]
    counts = (
        [str(len(result.data.records) or len(result.data.leaves)), str(len(result.data.failures))]
        if result.data
        else ["none", ""]
    )
    name = escape(result.job.name)
    return [f"[{name}](#{_format_anchor(result)})", *times, format_duration(result.job.elapsed_s), *counts]


def _format_anchor(result: ExperimentResult) -> str:
    """Make the anchor that GitHub gives the heading."""
    return re.sub(r"[^\w-]", "", result.job.name.lower().replace(" ", "-"))


def _format_experiment(result: ExperimentResult) -> Iterator[str]:
    yield f"## {escape(result.job.name)}"
    yield ""
    sentences = [
        word if word[-1] in ".?!" else f"{word}." for word in (result.job.title, result.job.description) if word
    ]
    yield f"*{escape(' '.join(sentences) or result.job.name)}*"
    yield ""
    if result.data is None:
        yield f"No numbers. {escape(result.fault)}"
        return
    yield from _format_config(result)
    if result.disturbed:
        yield f"- Telemetry: {escape(result.disturbed)}"
    for line in _format_reference_engines(result):
        yield f"- {escape(line)}"
    yield from format_tables(name_points(result.data))
    yield from format_leaves(result.data)
    yield from _format_failures(result)
    yield from _format_warnings(result)
    if result.summary:
        lines = [line.removeprefix("- ") for line in result.summary.splitlines()]
        yield from ["", *format_folded("Its own summary", [f"- {escape(line)}" for line in lines if line.strip()])]


def _format_config(result: ExperimentResult) -> Iterator[str]:
    if result.changed is None:
        yield "- Its config is unknown."
    elif result.changed:
        fields = ", ".join(f"{name} {_format_brief(value)}" for name, value in result.changed.items())
        yield f"- Config, size {escape(result.size)}, but: {escape(fields)}"
    else:
        yield f"- Config: the defaults of size {escape(result.size)}"
    same = format_common_values(result.data) if result.data else ""
    if same:
        yield f"- Everywhere: {escape(same)}"


def _format_brief(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, (str, int, float)) for item in value):
        return " ".join(map(str, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _format_reference_engines(result: ExperimentResult) -> list[str]:
    """TVM against each other engine, where there are several."""
    points = result.data.values() if result.data else ()
    return engine_text.describe((p.key.labels, p.value) for p in points if p.key.metric == "run_time" and p.value > 0)


def _format_failures(result: ExperimentResult) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for failure in result.data.failures if result.data else ():
        groups.setdefault(" ".join(failure.error.split()), []).append(format_failed_point(failure))
    if not groups:
        return
    yield from ["", "Failed:", ""]
    for reason, places in groups.items():
        text = escape(reason.rstrip("."), _REASON)
        yield f"- {_format_count_of_points(len(places))}: {text}. Which: {escape(format_list(places, _NAMED))}"


def _format_warnings(result: ExperimentResult) -> Iterator[str]:
    """List the doubts of records, most frequent first; those of a kind, where it is known, are one."""
    groups: dict[str, list[str]] = {}
    for record in result.data.records if result.data else ():
        texts = [str(doubt) for doubt in record.additional_info.get("doubts", ())]
        kinds = [str(kind) for kind in record.additional_info.get("doubt_kinds", ())]
        for doubt, kind in zip(texts, kinds if len(kinds) == len(texts) else texts, strict=True):
            groups.setdefault(kind, []).append(doubt)
    if not groups:
        return
    yield from ["", f"Doubts, of {_format_count_of_points(len(result.data.records) if result.data else 0)}:", ""]
    most = sorted(groups.values(), key=len, reverse=True)
    for doubts in most[:_WARNINGS]:
        yield f"- {_format_count_of_points(len(doubts))}: {escape(doubts[0])}" + (
            " (or alike)" if len(set(doubts)) > 1 else ""
        )
    if len(most) > _WARNINGS:
        yield f"- and {len(most) - _WARNINGS} more of other kinds"


def _format_count_of_points(count: int) -> str:
    return f"{count} point{'' if count == 1 else 's'}"
