"""The telemetry subsystem: what the machine did during each run, and a word where it may have disturbed it."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import courses
import judgement
import outliers
from judgement import Limits
from outliers import Outlier

from tvmdash import common, structured
from tvmdash.check_prerequisites import Need, needs_setting
from tvmdash.config_util import JobConfig
from tvmdash.contracts.scores import Graph
from tvmdash.contracts.telemetry import PAGE_FILE, SCHEMA_VERSION, OutlierTrial, TelemetryPage, TelemetryRun
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.machine import telemetry as telemetry_data
from tvmdash.machine.telemetry import Telemetry
from tvmdash.plot_util import files as plot_files
from tvmdash.plot_util.courses import Course, format_course
from tvmdash.subsys_templates import Report, Subsystem

_SAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Run:
    """One experiment's run of tonight. `unknown` says why its outlying samples are not known."""

    telemetry: Telemetry
    abnormal: tuple[str, ...]
    outliers: tuple[Outlier, ...]
    unknown: str
    course: Course

    @property
    def name(self) -> str:
        """Of its picture."""
        return _SAFE.sub("_", self.telemetry.experiment)[:80]


@dataclass(frozen=True, kw_only=True)
class TelemetryConfig(Limits, JobConfig):
    """As fields.json describes it."""


class TelemetrySubsystem(Subsystem[TelemetryConfig]):
    """Draws each run of tonight; tells what was abnormal, and nothing where all was well."""

    def needs(self, config: TelemetryConfig) -> Sequence[Need]:
        return (needs_setting("telemetry_rate", above=0),)

    def work(self, config: TelemetryConfig, output: Path, home: Home, tonight: Night) -> Report | None:
        runs, faults = read_runs(home, tonight, config)
        plot_files.draw_changed({run.name: run.course for run in runs}, output / "graphs")
        written = structured.to_json(page(tonight.stamp, runs, faults))
        common.write_json(output / PAGE_FILE, {"schema_version": SCHEMA_VERSION, **written})
        return report(runs, faults)


def read_runs(home: Home, tonight: Night, limits: Limits) -> tuple[list[Run], list[str]]:
    """Tonight's runs that were recorded, and what of them cannot be read."""
    runs, faults = [], []
    for job in tonight.experiments:
        path = telemetry_data.file(home.root, job.name, tonight.stamp)
        if not path.is_file():
            continue
        try:
            runs.append(_run(home, telemetry_data.read(path), limits))
        except DashboardError as error:
            faults.append(str(error))
    return runs, faults


def _run(home: Home, telemetry: Telemetry, limits: Limits) -> Run:
    slow: tuple[Outlier, ...] = ()
    unknown = ""
    try:
        slow = outliers.find(home, telemetry.experiment, telemetry.stamp, telemetry.begun_unix_s)
    except DashboardError as error:
        unknown = str(error)
    sentences = tuple(judgement.abnormal(telemetry, limits))
    return Run(telemetry, sentences, slow, unknown, courses.course(telemetry, slow))


def page(stamp: str, runs: Sequence[Run], faults: Sequence[str]) -> TelemetryPage:
    """What the website shows; paths are relative to the output folder."""
    return TelemetryPage(stamp, tuple(map(_on_page, runs)), tuple(faults))


def _on_page(run: Run) -> TelemetryRun:
    shown = run.outliers[: outliers.MAX_TOLD]
    return TelemetryRun(
        experiment=run.telemetry.experiment,
        readings=len(run.telemetry.seconds),
        abnormal=run.abnormal,
        ranges=courses.ranges(run.telemetry),
        outliers=tuple(OutlierTrial(times=item.times, **asdict(item)) for item in shown),
        outliers_in_all=len(run.outliers),
        graph=Graph(f"graphs/{run.name}.svg", format_course(run.course)),
        rate_per_s=run.telemetry.rate_per_s,
        cost=run.telemetry.cost,
        outliers_unknown=run.unknown or None,
    )


def report(runs: Sequence[Run], faults: Sequence[str]) -> Report | None:
    """A line for each run with something abnormal; None where there is none."""
    disturbed = [run for run in runs if run.abnormal]
    if not disturbed and not faults:
        return None
    lines = [f"{run.telemetry.experiment}: {' '.join(run.abnormal)}{_with_outliers(run)}" for run in disturbed]
    verb = "was" if len(disturbed) == 1 else "were"
    title = f"Telemetry: {len(disturbed)} of {len(runs)} runs {verb} possibly disturbed"
    return Report(title, "\n".join([*lines, *faults])[:4000])


def _with_outliers(run: Run) -> str:
    count = len(run.outliers)
    return f" {count} trial{'s have' if count > 1 else ' has'} outlying samples." if count else ""


if __name__ == "__main__":
    sys.exit(TelemetrySubsystem().main())
