"""`results`: what one night measured, read from the home's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dashboard.plan.job import CodeFolders
from tvmdash import common, config_util, records
from tvmdash.config_util.fields import NIGHTLY
from tvmdash.dashboard_info import Home, JobResult, Night
from tvmdash.dashboard_info.pages import read_telemetry
from tvmdash.dashboard_info.stages import pipeline
from tvmdash.errors import DashboardError
from tvmdash.records import NightData

_UNSHOWN = ("active", "title", "description", "notify", "priority", "timeouts", "size")
"""Config fields that change nothing about what is measured."""


@dataclass(frozen=True)
class ExperimentResult:
    """One experiment of the night. No data: `fault` says why. `disturbed`: telemetry's words about the run.

    summary: the experiment's own words, where they are still those of this night.
    changed: the config's values beside the defaults of its size; None where the config is not known.
    """

    job: JobResult
    data: NightData | None = None
    fault: str = ""
    machine: Mapping[str, Any] = field(default_factory=dict)
    size: str = ""
    changed: Mapping[str, Any] | None = None
    disturbed: str = ""
    summary: str = ""


@dataclass(frozen=True)
class NightResults:
    """One night. watched: telemetry judged it; without, nothing is known of disturbances."""

    night: Night
    experiments: tuple[ExperimentResult, ...]
    watched: bool


def read(home: Home, stamp: str | None, code: CodeFolders) -> NightResults:
    """Read the night `stamp`, or the newest; DashboardError where there is none."""
    if not home.root.is_dir():
        raise DashboardError(f"{home.root}: no such folder.")
    stamps = home.night_stamps()
    if not stamps:
        raise DashboardError(f"{home.root}: no night has run yet. Run one with ./run_dashboard.sh {home.root}")
    if stamp is not None and stamp not in stamps:
        last = ", ".join(stamps[:-6:-1])
        raise DashboardError(f"{home.root}: no night {stamp}. The last nights are: {last}.")
    night = home.read_night(stamp or stamps[-1])
    telemetry = read_telemetry(home, night.stamp)
    disturbed = telemetry.find_abnormal() if telemetry else {}
    jobs = night.experiments
    experiments = [_read_experiment(home, night.stamp, job, code, disturbed.get(job.name, "")) for job in jobs]
    return NightResults(night, tuple(sorted(experiments, key=lambda result: result.job.name)), telemetry is not None)


def _read_experiment(home: Home, stamp: str, job: JobResult, code: CodeFolders, disturbed: str) -> ExperimentResult:
    path = home.data_file(job.name, stamp)
    failure = job.first_failure
    try:
        if not path.is_file():
            return ExperimentResult(
                job, fault=f"{failure.stage}: {failure.message}" if failure else "The experiment wrote no data."
            )
        data = records.read_data(path, job.name)
        value = common.read_json(path)
    except DashboardError as error:
        return ExperimentResult(job, fault=str(error))
    config = common.object_in(common.object_in(value, "night"), "config")
    machine = common.object_in(common.object_in(value, "environment"), "machine")
    size = str(config.get("size", NIGHTLY))
    changed = _find_changed(job.name, config, size, code) if config else None
    return ExperimentResult(job, data, "", machine, size, changed, disturbed, _read_summary(home, stamp, job.name))


def _read_summary(home: Home, stamp: str, name: str) -> str:
    if home.stamp_of(home.summary(name)) != stamp:
        return ""
    summary = home.read_summary(name)
    return summary[1] if summary else ""


def _find_changed(name: str, config: Mapping[str, Any], size: str, code: CodeFolders) -> dict[str, Any]:
    """Find the config values that differ from the defaults that the experiment's fields have now."""
    own = config_util.read_fields(code.of(pipeline("experiment"), name) / config_util.FIELDS_FILE)
    fields = {**config_util.EXPERIMENT_FIELDS, **own}
    defaults = {name: field.default_of(size) for name, field in fields.items()}
    return {
        name: value
        for name, value in config.items()
        if name not in _UNSHOWN and (name not in defaults or defaults[name] != value)
    }
