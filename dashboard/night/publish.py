"""Take what a stage left into the home: checked, completed with the night's identity, swapped in whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dashboard.night.context import Context, Workspace, read_reference
from dashboard.plan.job import Job
from tvmdash import common, config_util, dashboard_info, records
from tvmdash.common.files.trees import Bounds
from tvmdash.dashboard_info import stages
from tvmdash.dashboard_info.stages import Stage
from tvmdash.errors import DashboardError
from tvmdash.records import NightData, metrics
from tvmdash.records.metrics import Declared
from tvmdash.text import elide, format_list

_MOST = Bounds(depth=50, entries=50_000, size_bytes=2 << 30)
"""The limits of graphs and a summary, which are copied every night, shown and archived. Ours are 3 MB."""


def publish(context: Context, job: Job, stage: Stage, folder: Path) -> int:
    """Publish what `stage` left in `folder`; how many points in it failed.

    DashboardError where it is not what it must be.
    """
    if stage.report and (folder / stage.report).exists():
        _check_report(folder / stage.report)
    if stage.name == "analyze":
        return _publish_data(context, job, folder / "data.json")
    if stage.name == "visualize":
        _publish_folder(context, folder, context.home.graph(job.name))
    elif stage.name == "summarize":
        _publish_folder(context, folder, context.home.summary(job.name))
    return 0


def _publish_data(context: Context, job: Job, path: Path) -> int:
    try:
        value = common.read_json(path)
        records.check_data(value)
    except DashboardError as error:
        raise error.at(path.name) from error
    if context.partial and "records" not in value:
        raise DashboardError(f"{path.name}: its run was interrupted, and results of incomplete runs are not published.")
    declared = add_declared(job, value)
    if "records" in value:
        value, declared = {**value, "records": [_declare(record, declared) for record in value["records"]]}, {}
    artifact = context.artifact(job)
    own_hash = value.get("tvm_hash")
    default_hash = (artifact.commit or artifact.version) if artifact else ""
    whole = {
        **value,
        **({config_util.METRICS: declared} if declared else {}),
        "timestamp": context.stamp,
        "tvm_hash": own_hash if own_hash and isinstance(own_hash, str) else default_hash,
        "night": _identity(context, job),
    }
    data_file = context.home.data_file(job.name, context.stamp)
    data_file.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(data_file, whole)
    return len(value.get("failures", ())) if "records" in value else 0


def add_declared(job: Job, value: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the declarations of metrics in the experiment's fields.json with those in its data.json."""
    own = metrics.declared_in(value)
    config_util.check_metrics(own, "data.json")
    given = config_util.read_metrics(job.folder / config_util.FIELDS_FILE)
    if given and config_util.METRICS in value and not own:
        raise DashboardError(
            "data.json: $.metrics: contains measurements, but fields.json declares metrics. Rename this field in "
            "data.json."
        )
    return {**given, **own}


def _declare(record: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Put the declarations of the experiment's own numbers into the record, to go wherever it goes."""
    info = record["additional_info"]
    own = {**declared, **common.object_in(info, metrics.OWN)}
    config_util.check_metrics(own, "data.json")
    for name in own:
        place = f"metrics of fields.json, data.json or a point: {name!r}"
        if name in metrics.RESERVED:
            raise DashboardError(f"{place}: records have a number of this name already. Choose another one.")
        if name.startswith("$") or "*" in name:
            raise DashboardError(
                f"{place}: names of a record's numbers have no $ and *. Use the name in additional_info."
            )
    return {**record, "additional_info": {**info, metrics.OWN: own}} if own else dict(record)


def describe_unmeasured(context: Context, job: Job) -> str:
    """Describe declared metrics that were not measured; empty where all were, or the run was ended."""
    path = context.home.data_file(job.name, context.stamp)
    if context.partial or not path.is_file():
        return ""
    return _describe_unmeasured(records.read_data(path, job.name))


def count_pairs(context: Context, job: Job) -> tuple[int, float]:
    """Count the pairs of processes beside the reference, and the seconds of their samples where the data have them.

    Of all that a pair measures it counts once.
    """
    path = context.home.data_file(job.name, context.stamp)
    if not path.is_file():
        return 0, 0.0
    points: dict[str, int] = {}
    data = records.read_data(path, job.name)
    for value in data.values():
        if value.key.metric in metrics.RATIOS:
            point = json.dumps(value.key.labels, sort_keys=True)
            points[point] = max(points.get(point, 0), value.samples or 0)
    timed_s = sum(record.additional_info.get("paired", {}).get("timed_s", 0.0) for record in data.records)
    return sum(points.values()), timed_s


def _identity(context: Context, job: Job) -> dict[str, Any]:
    """Return the fields that identify this measurement for repeating it."""
    workspace = context.workspace(job)
    artifact, reference, paired = context.artifact(job), read_reference(workspace.reference), _read_ratios(workspace)
    return {
        "stamp": context.stamp,
        "experiment": job.name,
        "machine": context.plan.config.env_name,
        **({"variant": job.variant} if job.variant else {}),
        **({"partial": True} if context.partial else {}),
        "fingerprint": workspace.read_fingerprint(),
        "config": dict(job.config),
        "seed": context.plan.seed,
        "repository": dict(context.repository),
        "artifact": artifact.identity() if artifact else None,
        **({"reference": reference} if reference else {}),
        **({"paired": paired} if paired else {}),
    }


def _read_ratios(workspace: Workspace) -> dict[str, Any]:
    """Read the ratios of the pairs of runs; empty where the experiment was measured alone."""
    is_beside = workspace.reference.is_file() and workspace.ratios.is_file()
    return dict(common.read_json(workspace.ratios)) if is_beside else {}


def _check_report(path: Path) -> None:
    try:
        dashboard_info.check_summary(common.read_json(path, max_bytes=1 << 20))
    except DashboardError as error:
        raise error.at(path.name) from error


def _publish_folder(context: Context, folder: Path, destination: Path) -> None:
    with common.folder_beside(destination) as new:
        common.copy_tree(folder, new, _MOST, lambda entry: entry.name == stages.STATUS_FILE)
        common.write_text(new / dashboard_info.STAMP_FILE, context.stamp + "\n", durable=False)


_NAMED, _LONGEST_NAME = 8, 80


def describe_own(experiment: str, declared: Mapping[str, Declared], data: NightData | None) -> Iterator[str]:
    """Describe what is declared and, where a night's data are known, what does not match it."""
    declared = {**declared, **(data.declared if data else {})}
    if declared:
        yield f"{experiment} declares {_format_names([f'{name} ({own})' for name, own in declared.items()])}."
    if data is None:
        return
    yield from filter(None, [_describe_unmeasured(data)])
    if data.undeclared:
        names = _format_names(data.undeclared)
        lacking = "are no series" if data.records else "have neither a unit nor a better direction"
        yield f"{experiment}: numbers that nothing declares, so that they {lacking}: {names}."


def _describe_unmeasured(data: NightData) -> str:
    """Describe declared metrics of which no number has come; empty where all have."""
    if not data.unmeasured:
        return ""
    place = "of that name in additional_info (by details, check, after or derive)" if data.records else "there"
    return (
        f"{data.experiment} declares {_format_names(data.unmeasured)}, but measured no such number. Leave a "
        f"number {place}, or remove the declaration from metrics."
    )


def _format_names(names: Sequence[str]) -> str:
    return format_list([elide(name, _LONGEST_NAME) if at < _NAMED else name for at, name in enumerate(names)], _NAMED)
