"""The telemetry subsystem: the machine during each run, and a word where it may have disturbed it."""

from __future__ import annotations

import os
import re
import sqlite3
import statistics
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import judgement
from judgement import Limits

from tvmdash import config_util
from tvmdash.check_prerequisites import Need, needs_setting
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import Home, Night, pages
from tvmdash.dashboard_info.pages import PAGE_FILE, Graph, OutlierTrial, TelemetryPage, TelemetryRun
from tvmdash.errors import DashboardError
from tvmdash.experiment.paired.pairs import is_of_reference
from tvmdash.machine import telemetry as telemetry_data
from tvmdash.machine.telemetry import SECONDS, Telemetry
from tvmdash.measure.capture import Trial, read_trials
from tvmdash.plot_util import files as plot_files
from tvmdash.plot_util.courses import Course, Panel, Span, Track, format_course
from tvmdash.series.naming import label_of
from tvmdash.subsys_templates import Report, Subsystem

_SAFE = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class DisturbedRun:
    """One experiment's run of tonight. `unknown` says why its outlying samples are not known."""

    telemetry: Telemetry
    abnormal: tuple[str, ...]
    outliers: tuple[OutlierTrial, ...]
    unknown: str
    course: Course

    @property
    def name(self) -> str:
        return _SAFE.sub("_", self.telemetry.experiment)[:80]


@dataclass(frozen=True, kw_only=True)
class TelemetryConfig(Limits, JobConfig):
    """Made from fields.json by tests/make_config_classes.py."""


class TelemetrySubsystem(Subsystem[TelemetryConfig]):
    """Draws each run of tonight; tells what was abnormal, and nothing where all was well."""

    def needs(self, config: TelemetryConfig) -> Sequence[Need]:
        return (needs_setting("telemetry_rate", above=0),)

    def work(self, config: TelemetryConfig, output: Path, home: Home, tonight: Night) -> Report | None:
        runs, faults = read_runs(home, tonight, config)
        plot_files.draw_changed({run.name: run.course for run in runs}, output / "graphs")
        pages.write(output / PAGE_FILE, page(tonight.stamp, runs, faults))
        return report(runs, faults)


def read_runs(home: Home, tonight: Night, limits: Limits) -> tuple[list[DisturbedRun], list[str]]:
    """Read tonight's runs that were recorded; name those that cannot be read."""
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


def _run(home: Home, telemetry: Telemetry, limits: Limits) -> DisturbedRun:
    slow: tuple[OutlierTrial, ...] = ()
    unknown = ""
    try:
        slow = find(home, telemetry.experiment, telemetry.stamp, telemetry.begun_unix_s)
    except DashboardError as error:
        unknown = str(error)
    sentences = tuple(judgement.abnormal(telemetry, limits))
    return DisturbedRun(telemetry, sentences, slow, unknown, course(telemetry, slow))


def page(stamp: str, runs: Sequence[DisturbedRun], faults: Sequence[str]) -> TelemetryPage:
    """Collect what the website shows; paths are relative to the output folder."""
    return TelemetryPage(stamp, tuple(map(_on_page, runs)), tuple(faults))


def _on_page(run: DisturbedRun) -> TelemetryRun:
    shown = run.outliers[:MAX_TOLD]
    return TelemetryRun(
        experiment=run.telemetry.experiment,
        readings=len(run.telemetry.seconds),
        abnormal=run.abnormal,
        ranges=ranges(run.telemetry),
        outliers=shown,
        outliers_in_all=len(run.outliers),
        graph=Graph(f"graphs/{run.name}.svg", format_course(run.course)),
        rate_per_s=run.telemetry.rate_per_s,
        cost=run.telemetry.cost,
        outliers_unknown=run.unknown or None,
    )


def report(runs: Sequence[DisturbedRun], faults: Sequence[str]) -> Report | None:
    """Write a line for each run with something abnormal; None where there is none."""
    disturbed = [run for run in runs if run.abnormal]
    if not disturbed and not faults:
        return None
    lines = [f"{run.telemetry.experiment}: {' '.join(run.abnormal)}{_with_outliers(run)}" for run in disturbed]
    verb = "was" if len(disturbed) == 1 else "were"
    title = f"Telemetry: {len(disturbed)} of {len(runs)} runs {verb} possibly disturbed"
    return Report(title, "\n".join([*lines, *faults])[:4000])


def _with_outliers(run: DisturbedRun) -> str:
    count = len(run.outliers)
    return f" {count} trial{'s have' if count > 1 else ' has'} outlying samples." if count else ""


_MAX_CORES = 4
_LEAST_STOLEN = 0.01


def course(run: Telemetry, outliers: Sequence[OutlierTrial]) -> Course:
    """Draw temperatures, clocks, load and memory of the run, with the trials shaded that have outlying samples."""
    cores = {f"core {name}": column for name, column in run.named("cpu_mhz").items()}
    spread = {name: run.column(f"cpu_mhz_{name}") for name in ("max", "median", "min")}
    panels = (
        _panel("°C", {**run.named("temperature_c"), **_of_gpus(run, "gpu_temperature_c")}),
        _panel(
            "MHz",
            cores if 0 < len(cores) <= _MAX_CORES else {f"core clock, {name}": item for name, item in spread.items()},
        ),
        _panel("cores", _load(run)),
        _panel("GPU MHz", _of_gpus(run, "gpu_mhz")),
        _panel("GPU %", _of_gpus(run, "gpu_percent")),
        _panel("GPU W", _of_gpus(run, "gpu_power_w")),
        _panel("slowed", _of_throttled_gpus(run)),
        _panel("GB", {"memory available": _in_gb(run.column("memory_available_bytes")), **_gpu_memory(run)}),
    )
    spans = tuple(
        Span(item.begin_s, item.end_s, f"{item.label}: {item.times:.1f}x")
        for item in sorted(outliers[:MAX_TOLD], key=lambda item: item.begin_s)
    )
    title = f"{run.experiment}, night {run.stamp}: the machine during the run"
    return Course(title, tuple(run.seconds), tuple(panel for panel in panels if panel.tracks), spans)


def _load(run: Telemetry) -> dict[str, list[float | None]]:
    stolen = run.column("stolen_cores")
    known = {
        "kept busy by the run": run.column("busy_cores.own"),
        "kept busy by others": run.column("busy_cores.others"),
        "load average, 1 min": run.column("load_1_min"),
    }
    shown = {"taken by the hypervisor": stolen} if any((value or 0.0) > _LEAST_STOLEN for value in stolen) else {}
    return {**known, **shown}


def _of_gpus(run: Telemetry, prefix: str) -> dict[str, list[float | None]]:
    return {f"GPU {number}": column for number, column in run.named(prefix).items()}


def _of_throttled_gpus(run: Telemetry) -> dict[str, list[float | None]]:
    """Return 1 where something slowed a GPU down, of what ever did."""
    return {
        f"GPU {number}, by {by}": column
        for name, column in run.named("gpu_throttled").items()
        for number, _, by in (name.partition(" "),)
        if any(column)
    }


def _gpu_memory(run: Telemetry) -> dict[str, list[float | None]]:
    used = _of_gpus(run, "gpu_memory_used_bytes")
    return {f"{name}, memory in use": _in_gb(column) for name, column in used.items()}


def _in_gb(column: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else value / 1e9 for value in column]


def _panel(unit: str, columns: Mapping[str, Sequence[float | None]]) -> Panel:
    there = {name: column for name, column in columns.items() if any(value is not None for value in column)}
    return Panel(unit, tuple(Track(name, tuple(column)) for name, column in there.items()))


def ranges(run: Telemetry) -> dict[str, tuple[float, float, float]]:
    """Return the least, median and greatest of each column."""
    known = {name: [value for value in column if value is not None] for name, column in run.columns.items()}
    return {
        name: (min(values), statistics.median(values), max(values))
        for name, values in known.items()
        if values and name != SECONDS
    }


MAX_TOLD = 12
_FEWEST_SAMPLES = 6
_DEVIATIONS = 5.0
_LEAST_EXCESS = 1.10
_MAX_BYTES = 2 << 30
_MAD_TO_STD = 1.4826


def find(home: Home, experiment: str, stamp: str, begun_unix_s: float) -> tuple[OutlierTrial, ...]:
    """Find the trials with outlying samples, the worst first; DashboardError says why that cannot be known."""
    file = _raw_folder(home) / experiment / f"raw_{stamp}.zip"
    if not file.is_file():
        raise DashboardError(f"The raw measurements of {experiment} are not kept ({file}).")
    try:
        with zipfile.ZipFile(file) as archive, tempfile.TemporaryDirectory() as folder:
            wanted = [item for item in archive.infolist() if Path(item.filename).match("raw_*.db*")]
            if sum(item.file_size for item in wanted) > _MAX_BYTES:
                raise DashboardError(f"{file}: too large to inspect.")
            archive.extractall(folder, wanted)
            trials = [trial for trial in read_trials(Path(folder)) if not is_of_reference(trial)]
            return find_outliers(trials, begun_unix_s)
    except (zipfile.BadZipFile, OSError, sqlite3.Error) as error:
        raise DashboardError(f"{file}: cannot be read: {error}.") from error


def _raw_folder(home: Home) -> Path:
    config = config_util.read_config(home.config_file, config_util.HOME_FIELDS)
    return Path(os.path.normpath(home.root / os.path.expanduser(config["tmp_data_dir"]))) / "raw"


def find_outliers(trials: Iterable[Trial], begun_unix_s: float) -> tuple[OutlierTrial, ...]:
    """Find the trials with samples over 5 (robust) standard deviations and 10 % above their median, the worst first."""
    slow = [outlier for trial in trials if (outlier := _outlier(trial, begun_unix_s)) is not None]
    return tuple(sorted(slow, key=lambda outlier: -outlier.times))


def _outlier(trial: Trial, begun_unix_s: float) -> OutlierTrial | None:
    samples = [sample.ms for sample in trial.samples]
    if len(samples) < _FEWEST_SAMPLES:
        return None
    median = statistics.median(samples)
    spread = statistics.median([abs(sample - median) for sample in samples]) * _MAD_TO_STD
    limit = max(median + _DEVIATIONS * spread, median * _LEAST_EXCESS)
    far = [sample for sample in samples if sample > limit]
    if not far:
        return None
    begin, end = (moment / 1e9 - begun_unix_s for moment in (trial.started_ns, trial.ended_ns))
    label = label_of(trial.point["workload"], trial.point["values"])
    return OutlierTrial(label, max(far) / median, max(0.0, begin), max(0.0, end), len(far), max(far), median)


if __name__ == "__main__":
    sys.exit(TelemetrySubsystem().main())
