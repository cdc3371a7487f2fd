"""The interface for authors of experiments: axes, engines, points, and how to prepare one.

A subclass is one short Python file. fields.json says which config fields are axes; the stage scripts are links to
shared/bash/stage.sh, which calls `main` with the stage's name.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic

from tvmdash import common, config_util, summary_util
from tvmdash.config_util import Config
from tvmdash.config_util.fields import Field
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.dashboard_info.stages import pipeline, run_stage
from tvmdash.experiment import engine_store, results
from tvmdash.experiment import plots as series_plots
from tvmdash.experiment.config import ExperimentConfig, MeasuringConfig
from tvmdash.experiment.engines import Engine, EngineFacts
from tvmdash.experiment.info import Axis, Clock, History, Point, Prepared
from tvmdash.experiment.measure import measure
from tvmdash.experiment.on_devices import list_engines
from tvmdash.experiment.points import Combination, axes_of, combinations
from tvmdash.experiment.processes import MEASURE
from tvmdash.experiment.run import run
from tvmdash.machine.devices import CPU
from tvmdash.measure.capture import OperatorSpan
from tvmdash.plot_util.specs import Plot
from tvmdash.records import Record
from tvmdash.records.metrics import Declared

__all__ = [
    "Axis",
    "Declared",
    "Engine",
    "EngineFacts",
    "Experiment",
    "ExperimentConfig",
    "History",
    "OperatorSpan",
    "Point",
    "Prepared",
    "Record",
]


class Experiment(Generic[Config]):
    """An experiment on records: subclasses define `engines` and `prepare`; axes and points follow from fields.json."""

    engines: tuple[Engine, ...] = ()
    workload: str = ""
    """The workload of all points, `domain.name`, where no axis varies it; by default `experiment.NAME`."""
    inputs_engine: str = ""
    """The engine that `make_inputs` needs, where it needs one."""
    compiles_ahead: bool = False
    """True where `prepare` gives `relax_util.compile_module` functions: a point's first process then compiles for all.

    It is then called in a process that only compiles, too: what else takes long in it goes through `prebuilt.keep`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        config_util.resolve_annotations(cls)

    @functools.cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Return the axes of the points: the fields of fields.json that have an `axis`."""
        return axes_of(self._own_fields)

    def points(self, config: Config) -> list[Point]:
        """Return every point that this config asks for: the product of the axes, on each engine if none is an axis."""
        engines = [engine.name for engine in self.engines if not engine.device]
        return [
            _point(self, combination, engine, config)
            for combination in combinations(self._own_fields, config_util.values_of(config))
            for engine in ([combination.engine] if combination.engine else engines)
        ]

    def packages(self, config: Config) -> Sequence[Engine]:
        """Return engines to install for this config besides those that its points run on, as a frontend's package."""
        return ()

    def target(self, point: Point, config: Config) -> Mapping[str, Any] | str:
        """Return the target in the point's record: a name, or TVM's target as a mapping."""
        return "cpu"

    def prepare(self, point: Point, config: Config, seed: int) -> Prepared:
        """Build the point's workload, ready to be timed; `seed` is for its weights and inputs."""
        raise NotImplementedError

    def environment(self, point: Point, config: Config) -> dict[str, str]:
        """Return the environment of the processes that measure the point: its `threads`, else the config's."""
        threads = str({**config_util.values_of(config), **point.values}["threads"])
        names = ("TVM_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        # else TVM binds its threads, the first to core 0, whatever cores the night has; its rivals bind none
        return {**dict.fromkeys(names, threads), "TVM_BIND_THREADS": "0"}

    def is_paired(self, point: Point, config: Config) -> bool:
        """Return True where a reference TVM can run the point; False for what only tonight's can, as a tuned point."""
        return not point.once

    def runs_on_devices(self, point: Point, config: Config) -> bool:
        """Return True where the point can run on devices besides the CPU; asked where fields.json includes `device`."""
        return next(engine.pairable for engine in self.engines if engine.name == point.engine)

    def clock(self, point: Point, config: Config) -> Clock:
        """Return the clock of the comparison with the reference: the thread's CPU time where the point has one thread.

        What runs elsewhere, in other threads or on a device, is compared by the wall clock.
        """
        if point.device != CPU:
            return "wall"
        return "cpu" if str(self.environment(point, config).get("TVM_NUM_THREADS")) == "1" else "wall"

    def make_inputs(self, config: Config, folder: Path, seed: int) -> None:
        """Write into `folder` what the engines share (weights, inputs, reference answers).

        `setup` calls it, in a process of its own that sees the packages of `inputs_engine`; `self.inputs` is the folder
        afterwards. It stays until the experiment's files or config change.
        """

    def derive(self, records: Sequence[Record]) -> Sequence[Mapping[str, Any]]:
        """Return, for each record, facts for its `additional_info` that follow from tonight's times, such as rates."""
        return [{} for _ in records]

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Return the graphs by file name without its ending."""
        return series_plots.default_plots(history)

    def summary(self, history: History) -> summary_util.Summary:
        """Return tonight's summary in words."""
        return series_plots.default_summary(history)

    def leave_files(self, data: Path, destination: Path) -> None:
        """Write files for the website beside the graphs, made of the data files in `data`."""

    @property
    def folder(self) -> Path:
        return Path(inspect.getfile(type(self))).parent

    @property
    def inputs(self) -> Path:
        """Return the folder that `make_inputs` filled."""
        return engine_store.inputs_folder(self.folder / "setup")

    @property
    def name(self) -> str:
        """Return the experiment's name: its config folder's in a night, else its own folder's."""
        return os.environ.get("TVMDASH_JOB") or self.folder.resolve().name

    def load_config(self, folder: Path) -> Config:
        """Return the checked config with the defaults of its size: the class's dataclass, else a mapping."""
        return self._typed(self._read_config(folder))

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the stage that the arguments name (`run CONFIG DESTINATION` and so on) and return its exit status."""
        verb, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
        paths = [Path(argument) for argument in rest]
        stages: dict[str, Callable[..., str]] = {
            "setup": self._setup,
            "run": self._run,
            "analyze": self._analyze,
            "visualize": self._visualize,
            "summarize": self._summarize,
        }
        inner: dict[str, Callable[..., str]] = {MEASURE: self._measure, engine_store.INPUTS: self._inputs}
        wanted = {stage.name: stage.arguments for stage in pipeline("experiment").stages if stage.name in stages}
        wanted |= dict.fromkeys(inner, ("config", "destination"))
        if len(paths) != len(wanted.get(verb, ())) or verb not in wanted:
            for name in stages:
                sys.stderr.write(f"usage: {name} {' '.join(wanted[name]).upper()}\n")
            return 2
        return run_stage(lambda: {**stages, **inner}[verb](*paths), paths[-1])

    @property
    def _fields_file(self) -> Path:
        return self.folder / config_util.FIELDS_FILE

    @functools.cached_property
    def _own_fields(self) -> dict[str, Field]:
        return config_util.read_fields(self._fields_file)

    @property
    def _fields(self) -> dict[str, Field]:
        return {**config_util.EXPERIMENT_FIELDS, **self._own_fields}

    def _read_config(self, folder: Path) -> dict[str, Any]:
        return config_util.read_config(folder / config_util.CONFIG_FILE, self._fields)

    def _typed(self, values: dict[str, Any]) -> Config:
        typed: Config = config_util.structure(type(self), values, self._fields, self._fields_file)
        return typed

    def _measuring(self, values: dict[str, Any]) -> MeasuringConfig:
        return config_util.make(MeasuringConfig, values, self._fields, self._fields_file)

    @property
    def _script(self) -> Path:
        return Path(inspect.getfile(type(self)))

    def _setup(self, config_dir: Path, destination: Path) -> str:
        makes_inputs = type(self).make_inputs is not Experiment.make_inputs
        engines = list_engines(self, self.load_config(config_dir))
        script = self._script if makes_inputs else None
        return engine_store.setup(engines, self.inputs_engine, config_dir, script, destination)

    def _inputs(self, config_dir: Path, folder: Path) -> str:
        values = self._read_config(config_dir)
        self.make_inputs(self._typed(values), folder, self._measuring(values).data_seed)
        return "inputs made"

    def _run(self, config_dir: Path, raw: Path) -> str:
        values = self._read_config(config_dir)
        return run(self, self._typed(values), self._measuring(values), config_dir, self._script, raw)

    def _measure(self, config_dir: Path, folder: Path) -> str:
        values = self._read_config(config_dir)
        return measure(self, self._typed(values), self._measuring(values), folder)

    def _analyze(self, config_dir: Path, raw: Path, analysis: Path) -> str:
        value = results.results(raw, self._measuring(self._read_config(config_dir)).precision)
        derived = self.derive([Record.from_json(record).only_identity() for record in value["records"]])
        for record, facts in zip(value["records"], derived, strict=True):
            record["additional_info"].update(facts)
        common.write_json(analysis / "data.json", value)
        return f"{len(value['records'])} records, {len(value['failures'])} failures"

    def _history(self, data: Path) -> History:
        home = Home.of_data_dir(data)
        return series_plots.read_history(self.name, self.axes, data, home.store_file if home else None)

    def _visualize(self, config_dir: Path, data: Path, destination: Path) -> str:
        from tvmdash import plot_util  # the renderer costs a second of imports; the other stages do without it

        plots = self.plots(self._history(data))
        self.leave_files(data, destination)
        for name, plot in plots.items():
            plot_util.draw(plot, destination / f"{name}.svg")
        return f"{len(plots)} graphs"

    def _summarize(self, config_dir: Path, data: Path, destination: Path) -> str:
        summary = self.summary(self._history(data))
        common.write_json(destination / "summary.json", summary.to_json())
        return "summary written"


def _point(experiment: Experiment[Config], combination: Combination, engine: str, config: Config) -> Point:
    workload = combination.workload or experiment.workload or f"experiment.{experiment_of(experiment.name)}"
    bare = Point(workload, combination.values, group="", target="", engine=engine)
    target = experiment.target(bare, config)
    text = target if isinstance(target, str) else json.dumps(target, sort_keys=True)
    return replace(bare, group=bare.name, target=text)
