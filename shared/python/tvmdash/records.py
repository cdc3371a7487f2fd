"""What a night measured, in the record format of apache/tvm#4304, and which series each number belongs to.

https://github.com/apache/tvm/issues/4304 names the columns. `schemas/data_v1.json` is the contract of data.json.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmdash import common, data_migrations
from tvmdash.errors import DashboardError
from tvmdash.metrics import FOREIGN, METRICS, Declarations, Direction, Kind, Metric, declared_in

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

SCHEMA_VERSION = data_migrations.NEWEST
SCHEMAS = Path(__file__).parent / "schemas"

IDENTITY = (
    "workload",
    "workload_args",
    "engine",
    "engine_config",
    "target",
    "build_config",
    "runtime_config",
    "env_name",
    "hw_model",
)
"""The columns that say what was measured; never when, and never by which version."""


@dataclass(frozen=True)
class Record:
    """One measured point of one night; times in ms, `timestamp` ISO 8601 in UTC."""

    timestamp: str
    schema_version: int
    additional_info: Mapping[str, Any]
    workload: str
    workload_args: Mapping[str, Any]
    engine: str
    engine_version: str
    engine_config: Mapping[str, Any]
    target: str
    build_config: Mapping[str, Any]
    env_name: str
    hw_model: str
    runtime_config: Mapping[str, Any]
    execution_config: Mapping[str, Any]
    execution_elapsed_ms_mean: float
    execution_elapsed_ms_std: float

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Record:
        """The record in a checked JSON object."""
        return cls(**value)

    def metrics(self) -> Iterator[tuple[Metric, float]]:
        """The metrics that this record carries, with their values."""
        for metric in METRICS:
            value: Any = getattr(self, metric.place[0])
            for part in metric.place[1:]:
                value = value.get(part)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                yield metric, float(value)


@dataclass(frozen=True)
class Failure:
    """A point that could not be measured, or whose answer was wrong."""

    workload: str
    values: Mapping[str, Any]
    error: str


@dataclass(frozen=True)
class SeriesKey:
    """Identity of a series: an experiment, a metric, and what was measured as `labels`."""

    experiment: str
    metric: str
    labels: Mapping[str, Any]

    @functools.cached_property
    def id(self) -> str:
        """Sixteen hex digits that name the series for ever."""
        text = json.dumps([self.experiment, self.metric, self.labels], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class PointValue:
    """Tonight's value of one series; `low` and `high` bound it with 95 % confidence where known.

    `code` is the hash of the compiled module that was timed, where it is known.
    """

    key: SeriesKey
    unit: str
    direction: Direction
    value: float
    std: float | None = None
    low: float | None = None
    high: float | None = None
    samples: int | None = None
    code: str | None = None
    kind: Kind = "time"
    title: str = ""


@dataclass(frozen=True)
class NightData:
    """One data_<stamp>.json: `records` of ours, or the numeric leaves of a foreign experiment in `leaves`.

    declarations: what the foreign experiment says of them.
    """

    experiment: str
    stamp: str
    tvm_hash: str
    records: tuple[Record, ...]
    failures: tuple[Failure, ...]
    leaves: Mapping[str, float]
    declarations: Mapping[str, Any] = field(default_factory=dict)
    machine: str = ""
    """What measured, in words: two nights of the same machine in the same state say the same."""

    def values(self) -> Iterator[PointValue]:
        """Every series' value of this night."""
        for record in self.records:
            labels = {column: getattr(record, column) for column in IDENTITY}
            info = record.additional_info
            for metric, value in record.metrics():
                timed = metric.name == "run_time"
                yield PointValue(
                    SeriesKey(self.experiment, metric.name, labels),
                    metric.unit,
                    metric.direction,
                    value,
                    std=record.execution_elapsed_ms_std if timed else None,
                    low=info.get("execution_elapsed_ms_low") if timed else None,
                    high=info.get("execution_elapsed_ms_high") if timed else None,
                    samples=info.get("samples") if timed else None,
                    code=info.get("module_hash") if timed else None,
                    kind=metric.kind,
                )
        declarations = Declarations(self.declarations)
        for path, value in self.leaves.items():
            key, one = SeriesKey(self.experiment, FOREIGN.name, {"path": path}), declarations.of(path)
            yield PointValue(key, one.unit, one.direction, value, kind=one.kind, title=one.name)


def read_data(path: Path, experiment: str, *, checked: bool = False) -> NightData:
    """The night in a data_<stamp>.json of any version; DashboardError names file, place and value of what is wrong.

    checked: it was, when the store took it in; that takes 0.4 ms a record, and all else 0.07.
    """
    value = common.read_json(path)
    try:
        value = data_migrations.migrate(value)
        if not checked:
            check_data(value)
        return _parse(value, experiment, path.stem.removeprefix("data_"))
    except DashboardError as error:
        raise DashboardError(f"{path}: {error}") from error


def values_of(value: common.Json, experiment: str, stamp: str) -> Iterator[PointValue]:
    """Every series' value in what a data file of any version holds; DashboardError where it is none."""
    value = data_migrations.migrate(value)
    check_data(value)
    yield from _parse(value, experiment, stamp).values()


def data_stamps(folder: Path) -> list[str]:
    """The stamps of the data_<stamp>.json files in `folder`, oldest first."""
    if not folder.is_dir():
        return []
    names = (path.name[5:-5] for path in folder.glob("data_*.json"))
    return sorted(name for name in names if common.is_stamp(name))


def check_data(value: common.Json) -> None:
    """Raise DashboardError where `value` is not what a data.json may hold."""
    if not isinstance(value, dict):
        raise DashboardError(
            f"$: {type(value).__name__} is not an object. Write {{...}} with records or numbers in it."
        )
    if "records" not in value:
        return
    version = value.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise DashboardError(f"$.schema_version: {version} is newer than {SCHEMA_VERSION}. Update the dashboard.")
    error = next(_validator().iter_errors(value), None)
    if error is not None:
        raise DashboardError(f"{error.json_path}: {error.message[:300]}.")


@functools.cache
def _validator() -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(common.read_json(SCHEMAS / "data_v1.json"))


def _parse(value: dict[str, Any], experiment: str, stamp: str) -> NightData:
    ours = "records" in value
    return NightData(
        experiment=experiment,
        stamp=stamp,
        tvm_hash=str(value.get("tvm_hash", "")),
        records=tuple(Record.from_json(item) for item in value["records"]) if ours else (),
        failures=tuple(Failure(**item) for item in value.get("failures", ())) if ours else (),
        leaves={} if ours else dict(numeric_leaves(value)),
        declarations={} if ours else declared_in(value),
        machine=_machine(value.get("environment")),
    )


_MACHINE_FACTS = {
    "host": "{}", "hw_model": "{}", "system": "{}", "distribution": "{}", "libc": "{}", "python": "Python {}",
    "cpu_microcode": "microcode {}", "governor": "governor {}",
}  # fmt: skip


def _machine(environment: common.Json) -> str:
    machine = environment.get("machine") if isinstance(environment, dict) else None
    if not isinstance(machine, dict):
        return ""
    return ", ".join(form.format(machine[name]) for name, form in _MACHINE_FACTS.items() if machine.get(name))


NOT_MEASURED = frozenset({"timestamp", "tvm_hash", "night", "schema_version"})
"""What the dashboard itself adds to a foreign data.json."""


def numeric_leaves(value: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Each number in nested objects and lists with its JSON path, as in `$.gpu.O3.mean`."""
    declares = {"metrics"} if declared_in(value) else set()
    for key, item in value.items():
        if key not in NOT_MEASURED | declares:
            yield from _leaves(item, f"$.{key}")


def _leaves(value: common.Json, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, (int, float)):
        number = float(value)
        if math.isfinite(number):
            yield place, number
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}.{key}")
    else:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{place}[{index}]")
