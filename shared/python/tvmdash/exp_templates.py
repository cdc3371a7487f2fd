"""What an experiment's author writes against: axes, config fields, points, how to prepare one. The rest is here.

A subclass is one short Python file; its shell stages are three lines that call `main` with the stage's name. Points of
one group are measured in a process of their own: a crash costs the group's unfinished points, and says so.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tvmdash import analysis_util, common, config_util, machine, series_plots, summary_util
from tvmdash.capture import Capture, OperatorSpan, Trial, read_trials
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.experiment_info import Axis, EngineFacts, History, Point, Prepared
from tvmdash.plot_specs import Plot
from tvmdash.records import SCHEMA_VERSION, Failure
from tvmdash.stages import pipeline, read_status, run_stage
from tvmdash.trial_util import Timing, time_workload

__all__ = ["Axis", "EngineFacts", "Experiment", "History", "OperatorSpan", "Point", "Prepared"]
_log = logging.getLogger("experiment")
_PLAN_FILE, _ENDED_FILE = "plan.json", "ended.json"


class Experiment:
    """An experiment on records. Subclasses give `axes`, `points`, `prepare`, `engine_facts`."""

    axes: tuple[Axis, ...] = ()

    def points(self, config: Mapping[str, Any]) -> list[Point]:
        """Every point that this config asks for."""
        raise NotImplementedError

    def prepare(self, point: Point, config: Mapping[str, Any], seed: int) -> Prepared:
        """Build the point's workload, ready to be timed; `seed` is for its weights and inputs."""
        raise NotImplementedError

    def engine_facts(self) -> EngineFacts:
        """What the running engine says of itself, read in the measuring process."""
        raise NotImplementedError

    def environment(self, config: Mapping[str, Any]) -> dict[str, str]:
        """Environment variables of the measuring processes."""
        threads = str(config["threads"])
        return {"TVM_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}

    def plots(self, history: History) -> Mapping[str, Plot]:
        """The graphs by file name without its ending."""
        return series_plots.default_plots(history)

    def summary(self, history: History) -> summary_util.Summary:
        """Tonight in words."""
        return series_plots.default_summary(history)

    @property
    def folder(self) -> Path:
        """Where the experiment's files lie."""
        return Path(inspect.getfile(type(self))).parent

    @property
    def name(self) -> str:
        """The experiment's name: its config folder's in a night, else its own folder's."""
        return os.environ.get("TVMDASH_JOB") or self.folder.resolve().name

    def load_config(self, folder: Path) -> dict[str, Any]:
        """The checked config with defaults."""
        fields = {**config_util.EXPERIMENT_FIELDS, **config_util.read_fields(self.folder / config_util.FIELDS_FILE)}
        return config_util.read_config(folder / config_util.CONFIG_FILE, fields)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Do the stage that the arguments name (`run CONFIG DESTINATION` and so on); the exit status for it."""
        verb, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
        paths = [Path(argument) for argument in rest]
        if verb == "measure":
            return run_stage(lambda: self._measure(paths[0], paths[1], rest[2]), paths[1])
        stages: dict[str, Callable[..., str]] = {
            "run": self._run,
            "analyze": self._analyze,
            "visualize": self._visualize,
            "summarize": self._summarize,
        }
        wanted = {stage.name: stage.arguments for stage in pipeline("experiment").stages if stage.name in stages}
        if len(paths) != len(wanted.get(verb, ())) or verb not in wanted:
            for name, folders in wanted.items():
                sys.stderr.write(f"usage: {name} {' '.join(folders).upper()}\n")
            return 2
        return run_stage(lambda: stages[verb](*paths), paths[-1])

    def _run(self, config_dir: Path, raw: Path) -> str:
        config = self.load_config(config_dir)
        seed = int(os.environ.get("TVMDASH_SEED", "0"))
        points = self.points(config)
        order = random.Random(seed)
        groups = sorted({point.group for point in points})
        order.shuffle(groups)
        common.write_json(
            raw / _PLAN_FILE, {"points": [self._identity(point) for point in points], "groups": groups, "seed": seed}
        )
        ended = {}
        for number, group in enumerate(groups):
            folder = raw / f"process_{number}"
            folder.mkdir()
            ended[group] = self._run_group(config_dir, folder, group, config)
        common.write_json(raw / _ENDED_FILE, {group: words for group, words in ended.items() if words})
        return _told(list(read_trials(raw)), len(points), ended)

    def _run_group(self, config_dir: Path, folder: Path, group: str, config: Mapping[str, Any]) -> str | None:
        """Measure the points of one group in a process of their own; words where it was not to its end."""
        argv = [sys.executable, inspect.getfile(type(self)), "measure", str(config_dir), str(folder), group]
        code = subprocess.run(argv, env={**os.environ, **self.environment(config)}, check=False).returncode
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        try:
            status = read_status(folder)
        except DashboardError as error:
            return f"its process exited with {code}. {error}"
        return None if status.success else status.message

    def _measure(self, config_dir: Path, folder: Path, group: str) -> str:
        """The body of a measuring process."""
        config = self.load_config(config_dir)
        plan = common.read_json(folder.parent / _PLAN_FILE)
        points = [point for point in self.points(config) if point.group == group]
        random.Random(plan["seed"]).shuffle(points)
        facts = {"machine": machine.facts(), "env_name": machine.env_name(), "engine": asdict(self.engine_facts())}
        with Capture(folder, facts) as capture:
            for number, point in enumerate(points, start=1):
                _log.info("%s %s (%d of %d)", point.workload, dict(point.values), number, len(points))
                self._trial(capture, point, config)
        return f"{len(points)} points"

    def _trial(self, capture: Capture, point: Point, config: Mapping[str, Any]) -> None:
        trial = capture.begin(self._identity(point))
        before = machine.load()
        try:
            prepared = self.prepare(point, config, config["data_seed"])
            checked = dict(prepared.check()) if prepared.check else {}
            timing = Timing.from_config(config)
            samples = time_workload(prepared.timer, timing)
            operators = prepared.profile() if prepared.profile else ()
        # Whatever an engine cannot do is a result about this point; the others go on.
        except Exception as error:  # noqa: BLE001
            _log.warning("%s %s failed", point.workload, dict(point.values), exc_info=True)
            capture.end(trial, error=f"{type(error).__name__}: {error}"[:2000])
            return
        execution = {**asdict(timing), "number": samples[0].number, "repeat": len(samples)}
        loads = {"load_before": before, "load_after": machine.load(), "execution_config": execution}
        passes = [(name, round(ms * 1e6)) for name, ms in prepared.passes_ms]
        facts = {**prepared.info(), **checked, **loads}
        capture.end(trial, samples=samples, facts=facts, passes=passes, operators=operators)

    def _identity(self, point: Point) -> dict[str, Any]:
        """The point as raw data holds it: its axis values sorted into the record's columns."""
        columns: dict[str, dict[str, Any]] = {column: {} for column in Axis.COLUMNS}
        for axis in self.axes:
            if axis.name in point.values:
                columns[axis.column][axis.name] = point.values[axis.name]
        return {
            "workload": point.workload,
            "values": dict(point.values),
            "group": point.group,
            "engine": point.engine,
            "target": point.target,
            "columns": columns,
        }

    def _analyze(self, config_dir: Path, raw: Path, analysis: Path) -> str:
        trials = _in_planned_order(raw, list(read_trials(raw)))
        records, failures = analysis_util.reduce(trials)
        failures += _never_begun(raw, trials)
        if not trials:
            raise DashboardError(f"{raw}: no trial was captured; the run stage's log says why.")
        first = trials[0].process
        value = {
            "schema_version": SCHEMA_VERSION,
            "tvm_hash": first["engine"]["tvm_hash"],
            "environment": first,
            "records": [record.to_json() for record in records],
            "failures": [asdict(failure) for failure in failures],
        }
        common.write_json(analysis / "data.json", value)
        return f"{len(records)} records, {len(failures)} failures"

    def _history(self, data: Path) -> History:
        home = Home.of_data_dir(data)
        return series_plots.read_history(self.name, self.axes, data, home.store_file if home else None)

    def _visualize(self, config_dir: Path, data: Path, destination: Path) -> str:
        from tvmdash import plot_util  # the renderer costs a second of imports; the other stages do without it

        plots = self.plots(self._history(data))
        for name, plot in plots.items():
            plot_util.draw(plot, destination / f"{name}.svg")
        return f"{len(plots)} graphs"

    def _summarize(self, config_dir: Path, data: Path, destination: Path) -> str:
        summary = self.summary(self._history(data))
        common.write_json(destination / "summary.json", summary.to_json())
        return "summary written"


def _told(trials: Sequence[Trial], planned: int, ended: Mapping[str, str | None]) -> str:
    """How many points were measured and why others were not; DashboardError where none was."""
    good = {json.dumps(trial.point, sort_keys=True) for trial in trials if not trial.error}
    reasons = [trial.error for trial in trials if trial.error] + [words for words in ended.values() if words]
    if not good:
        raise DashboardError(
            f"None of {planned} points could be measured: {next(iter(reasons), 'there are no points')}"
        )
    words = f"{len(good)} of {planned} points measured"
    return words + (f"; the first failure: {reasons[0]}" if reasons else "")


def _in_planned_order(raw: Path, trials: list[Trial]) -> list[Trial]:
    """The trials as the author listed their points: they were measured in a random order."""
    planned = common.read_json(raw / _PLAN_FILE)["points"]
    place = {json.dumps(point, sort_keys=True): number for number, point in enumerate(planned)}
    return sorted(trials, key=lambda trial: place.get(json.dumps(trial.point, sort_keys=True), len(place)))


def _never_begun(raw: Path, trials: Sequence[Trial]) -> list[Failure]:
    """The planned points that no process came to, with the reason where it is known."""
    plan = common.read_json(raw / _PLAN_FILE)
    ended = common.read_json(raw / _ENDED_FILE) if (raw / _ENDED_FILE).exists() else {}
    begun = {json.dumps(trial.point, sort_keys=True) for trial in trials}
    missing = [point for point in plan["points"] if json.dumps(point, sort_keys=True) not in begun]
    return [
        Failure(
            point["workload"], point["values"], f"not begun: {ended.get(point['group'], 'the run was ended before')}"
        )
        for point in missing
    ]
