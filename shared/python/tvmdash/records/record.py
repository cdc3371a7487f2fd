"""A night's measurements in the record format of apache/tvm#4304, and the series of each number.

https://github.com/apache/tvm/issues/4304 names the columns. `schemas/data_v1.json` is the contract of data.json.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common.json_schema import Schema
from tvmdash.errors import DashboardError
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineIdentity
from tvmdash.records.description import FACT, select_identity
from tvmdash.records.functions import FunctionNumber, hash_functions, read_functions
from tvmdash.records.metrics import (
    FOREIGN,
    LARGEST_ERROR,
    MAY_BE_EXACT,
    METRICS,
    RATIOS,
    RESERVED,
    RUN_TIME,
    VALUE_RATIO,
    Declarations,
    Declared,
    Direction,
    Kind,
    Metric,
    declared_in,
    read_own,
)
from tvmdash.records.migrations import NEWEST, migrate

SCHEMA_VERSION = NEWEST
SCHEMAS = Path(__file__).parents[1] / "schemas"

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
"""Columns that identify the measured thing; never when, and never by which version. See `Record.labels`."""


_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode
"""As json.dumps with these options, which makes an encoder for every call; IDs are made of its text for ever."""


@dataclass(frozen=True)
class Record:
    """One measured point of one night; times in ms, `timestamp` ISO 8601 in UTC.

    execution_elapsed_ms_mean: None where another tool measured what is no time.
    """

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
    execution_elapsed_ms_mean: float | None
    execution_elapsed_ms_std: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Record:
        return cls(**value)

    @property
    def labels(self) -> dict[str, Any]:
        """Return the identity: the columns of IDENTITY, without descriptive entries."""
        return select_identity({name: getattr(self, name) for name in IDENTITY}, self.additional_info)

    def only_identity(self) -> Record:
        """Return the record without descriptive entries."""
        info = {name: item for name, item in self.additional_info.items() if name != FACT}
        return replace(self, additional_info=info, **self.labels)

    def metrics(self) -> Iterator[tuple[Metric, float]]:
        """Yield the metrics that this record carries, with their values."""
        for metric in (*METRICS, *read_own(self.additional_info)):
            if metric is LARGEST_ERROR and self.additional_info.get("tolerance") == 0:
                continue  # an answer that must be exact has no error, or the point has failed
            value: Any = getattr(self, metric.place[0])
            for part in metric.place[1:]:
                value = value.get(part) if isinstance(value, dict) else None
            if _is_number(value):
                yield metric, float(value)


@dataclass(frozen=True)
class Failure:
    """A point that could not be measured, or whose answer was wrong."""

    workload: str
    values: Mapping[str, Any]
    error: str


@dataclass(frozen=True)
class SeriesKey:
    """Identity of a series: an experiment, a metric, and what was measured as `labels`.

    id_labels, id_experiment: what the ID is made of, where the series began under other labels or names.
    """

    experiment: str
    metric: str
    labels: Mapping[str, Any]
    id_labels: Mapping[str, Any] | None = field(default=None, compare=False)
    id_experiment: str = field(default="", compare=False)

    @classmethod
    def of(cls, experiment: str, metric: str, labels: Mapping[str, Any], home: MachineIdentity | None) -> SeriesKey:
        """Return the series in a home with that machine; None: the data is of no home, or of another."""
        if home is None:
            return cls(experiment, metric, labels)
        return cls(experiment, metric, labels, home.labels_of_id(labels), home.experiment_of_id(experiment))

    @functools.cached_property
    def id(self) -> str:
        """Return sixteen hex digits that name the series for ever."""
        labels = self.labels if self.id_labels is None else self.id_labels
        text = _encode([self.id_experiment or self.experiment, self.metric, labels])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class PointValue:
    """Tonight's value of one series; `low` and `high` bound it with 95 % confidence where known.

    `code` is the hash of the compiled module that was timed, or of the `functions` that an exact number is the sum of;
    `content` that of all that ran while it was timed, where they are known. alike: of an exact number, how many
    processes gave this very value, 1 where it is declared exact; 0 where they differ, None where that is not known.
    reference: what it is on the reference TVM the same night. logs: of a ratio, the natural logarithm of each pair's;
    layout: the number of the layout that both sides were linked in, 0 where they were as they come.
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
    alike: int | None = None
    tolerance: float = 0.0
    content: str | None = None
    reference: float | None = None
    logs: tuple[float, ...] = ()
    layout: int = 0
    functions: Mapping[str, FunctionNumber] = field(default_factory=dict)


@dataclass(frozen=True)
class Build:
    """The artifact's key and the fingerprint of code and config that an experiment measured on a night.

    reference: the key of the artifact that was measured beside it; reference_version: its version. None where the data
    file does not say: imported, or added by hand.
    """

    artifact: str | None = None
    fingerprint: str | None = None
    reference: str | None = None
    reference_version: str | None = None


@dataclass(frozen=True)
class NightData:
    """One data_<stamp>.json: `records` of ours, or the numeric leaves of a foreign experiment in `leaves`.

    declarations: what the foreign experiment says of them. env_name: of the machine that they are of, empty where it is
    unknown. home: what the home in which it lies keeps of names; of imported data without its machine.
    """

    experiment: str
    stamp: str
    tvm_hash: str
    records: tuple[Record, ...]
    failures: tuple[Failure, ...]
    leaves: Mapping[str, float]
    declarations: Mapping[str, Any] = field(default_factory=dict)
    machine: str = ""
    """The measuring machine in words, equal for nights of the same machine in the same state."""
    env_name: str = ""
    ratios: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Ratios of foreign numbers to the reference's, by path."""
    home: MachineIdentity | None = None
    is_imported: bool = False
    build: Build = Build()
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The night's facts about the machine."""

    def values(self) -> Iterator[PointValue]:
        """Yield every series' value of this night."""
        for record in self.records:
            labels = record.labels
            info = record.additional_info
            for metric, value in record.metrics():
                key = SeriesKey.of(self.experiment, metric.name, labels, self.home)
                if metric.name == RUN_TIME:
                    more = _timed(record, info)
                elif metric.name in RATIOS:
                    more = _compared(info["paired"]["ratios"][RATIOS[metric.name]])
                else:
                    alike = _count(info.get("alike", {}).get(metric.place[-1]))
                    functions = read_functions(info, metric.place[-1])
                    more = {
                        "alike": alike,
                        "reference": _on_reference(info, metric),
                        "functions": functions,
                        "code": hash_functions(functions),
                    }
                yield PointValue(
                    key,
                    metric.unit,
                    metric.direction,
                    value,
                    kind=metric.kind,
                    title=metric.title,
                    tolerance=metric.tolerance,
                    **more,
                )
        declarations = Declarations(self.declarations)
        for path, value in self.leaves.items():
            key, declaration = self.key_of_leaf(path), declarations.of(path)
            alike = self._alike(path) if declaration.kind in MAY_BE_EXACT else None
            yield PointValue(
                key,
                declaration.unit,
                declaration.direction,
                value,
                kind=declaration.kind,
                title=declaration.name,
                alike=alike,
                tolerance=declaration.tolerance,
            )
            if path in self.ratios:
                yield self._ratio_of_leaf(path, declaration)

    @property
    def declared(self) -> dict[str, Declared]:
        """Return the declarations of the experiment's own numbers, by name."""
        of_records = (metric for record in self.records for metric in read_own(record.additional_info))
        own = {m.name: Declared(m.title, m.unit, m.direction, m.kind, m.tolerance) for m in of_records}
        return {**own, **dict(Declarations(self.declarations))}

    @property
    def unmeasured(self) -> list[str]:
        """Return the names that are declared without a measured number."""
        declarations = Declarations(self.declarations)
        found = {metric.name for record in self.records for metric, _ in record.metrics()}
        found |= {name for path in self.leaves if (name := declarations.find(path))}
        return [name for name in self.declared if name not in found] if self.records or self.leaves else []

    @property
    def undeclared(self) -> list[str]:
        """Return the experiment's own numbers without a declaration.

        In a record they are no series, and among a foreign experiment's, series of which neither way is better.
        """
        declarations, declared = Declarations(self.declarations), self.declared
        numbers = {
            name: None
            for record in self.records
            for name, value in record.additional_info.items()
            if _is_number(value) and name not in declared and name not in _names_of_every_record()
        }
        return [*numbers, *(path for path in self.leaves if declarations.find(path) is None)]

    def _ratio_of_leaf(self, path: str, declaration: Declared) -> PointValue:
        """Return the ratio of the number at `path` to the reference's, measured in turn."""
        compared = self.ratios[path]
        point = PointValue(
            replace(self.key_of_leaf(path), metric=VALUE_RATIO), "", declaration.direction, compared["ratio"]
        )
        return replace(point, **_compared(compared), kind="ratio", title=declaration.name)

    def _alike(self, path: str) -> int:
        """Return how often the foreign number was measured, list items being repetitions; 0 where they differ."""
        name = path.rpartition("[")[0] if path.endswith("]") else ""
        values = [value for other, value in self.leaves.items() if name and other.rpartition("[")[0] == name]
        return 0 if len(set(values)) > 1 else max(1, len(values))

    def key_of_leaf(self, path: str) -> SeriesKey:
        """Return the series of the number at that JSON path."""
        labels = {identity.PATH: path}
        if self.env_name:
            labels[identity.ENV_NAME] = self.env_name
        return SeriesKey.of(self.experiment, FOREIGN.name, labels, self.home)


def read_data(path: Path, experiment: str, *, home: MachineIdentity | None = None) -> NightData:
    """Read a data_<stamp>.json of any version; DashboardError names file, place and value of a fault.

    home: the machine of the home that it is of; where it is not given, of the home in which it lies.
    """
    home = home or identity.of_folder(path.parent)
    value = common.read_json(path)
    try:
        value = migrate(value)
        check_data(value)
        return night_of(value, experiment, path.stem.removeprefix("data_"), home)
    except DashboardError as error:
        raise DashboardError(f"{path}: {error}") from error


def values_of(value: common.Json, experiment: str, stamp: str) -> Iterator[PointValue]:
    """Yield every series' value in the content of a data file of any version; DashboardError where it is none."""
    value = migrate(value)
    check_data(value)
    yield from night_of(value, experiment, stamp, None).values()


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
    error = next(iter(_schema().errors(value)), None)
    if error is not None:
        raise DashboardError(f"{error.json_path}: {error.message[:300]}.")


@functools.cache
def _schema() -> Schema:
    return Schema(common.read_json(SCHEMAS / "data_v1.json"))


@functools.cache
def _names_of_every_record() -> frozenset[str]:
    """Return the library's own names in a record's additional_info."""
    info = common.read_json(SCHEMAS / "data_v1.json")["$defs"]["record"]["properties"]["additional_info"]
    return frozenset(info["properties"]) | RESERVED


def _is_number(value: common.Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def night_of(value: Mapping[str, Any], experiment: str, stamp: str, home: MachineIdentity | None) -> NightData:
    """Parse a checked data file of the newest version; `home` is the machine of the home it is of.

    A home's own records say its machine's name of today, imported ones what they said; renames are of both. Imported
    numbers without records can name no machine: where the import does not either, they are of the home's.
    """
    ours = "records" in value
    night = common.object_in(value, "night")
    is_imported = "imported" in night
    home = home.for_imported() if home and is_imported and ours else home
    facts = common.object_in(common.object_in(value, "environment"), "machine")
    env_name = str(night.get("machine") or (home.name if home else ""))
    return NightData(
        experiment=experiment,
        stamp=stamp,
        tvm_hash=str(value.get("tvm_hash", "")),
        records=tuple(_record(item, home) for item in value["records"]) if ours else (),
        failures=tuple(Failure(**item) for item in value.get("failures", ())) if ours else (),
        leaves={} if ours else dict(numeric_leaves(value)),
        declarations={} if ours else declared_in(value),
        machine=_machine(facts, env_name),
        env_name=env_name,
        ratios={} if ours else dict(_ratios(common.object_in(night, "paired"))),
        home=home,
        is_imported=is_imported,
        build=_build(night),
        facts=facts,
    )


def _record(value: Mapping[str, Any], home: MachineIdentity | None) -> Record:
    record = Record.from_json(value)
    if home is None:
        return record
    return replace(record, env_name=home.name_now(record.env_name), workload=home.workload_now(record.workload))


def _ratios(paired: Mapping[str, common.Json]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the ratios of a foreign experiment, measured in turn with the reference, as far as they are valid."""
    for path, compared in common.object_in(paired, "ratios").items():
        if isinstance(compared, dict) and _is_positive(compared.get("ratio")):
            logs = compared.get("log_ratios")
            if isinstance(logs, list) and logs and all(isinstance(log, float) and math.isfinite(log) for log in logs):
                yield path, compared


def _number(value: common.Json) -> float | None:
    """Return a number of any size as a float; None for anything else."""
    return float(value) if isinstance(value, (int, float)) else None


def _count(value: common.Json) -> int | None:
    """Return a count, which JSON may write as 10.0; None for anything else."""
    return int(value) if isinstance(value, (int, float)) else None


def _is_positive(value: common.Json) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value > 0


def _build(night: Mapping[str, common.Json]) -> Build:
    artifact, reference = (common.object_in(night, name) for name in ("artifact", "reference"))
    named = (artifact.get("key"), night.get("fingerprint"), reference.get("key"), reference.get("version"))
    return Build(*(name if isinstance(name, str) else None for name in named))


_MACHINE_FACTS = {
    "name": "{}", "hw_model": "{}", "system": "{}", "distribution": "{}", "libc": "{}", "python": "Python {}",
    "cpu_microcode": "microcode {}", "governor": "governor {}", "gpu_driver": "NVIDIA driver {}",
}  # fmt: skip


def _timed(record: Record, info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "std": _number(record.execution_elapsed_ms_std),
        "low": _number(info.get("execution_elapsed_ms_low")),
        "high": _number(info.get("execution_elapsed_ms_high")),
        "samples": _count(info.get("samples")),
        "code": info.get("module_hash"),
        "content": common.object_in(info, "content").get("hash"),
    }


def _on_reference(info: Mapping[str, Any], metric: Metric) -> float | None:
    """Return the number of the reference TVM, measured the same night."""
    value = info.get("paired", {}).get("reference", {}).get(metric.name)
    return float(value) if isinstance(value, (int, float)) else None


def _compared(ratio: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ratio's fields. std: of the logarithms, from one pair of processes to the next; samples: of pairs."""
    logs = [float(value) for value in ratio["log_ratios"]]
    std = statistics.stdev(logs) if len(logs) > 1 else None
    bounds = {name: _number(ratio.get(name)) for name in ("low", "high")}
    layout = _count(ratio.get("layout")) or 0
    return {"std": std, **bounds, "samples": len(logs), "logs": tuple(logs), "layout": layout}


def _machine(facts: Mapping[str, Any], name: str) -> str:
    """Describe the machine, by its home's name for it: a container has another host name each night."""
    if not facts:
        return ""
    machine = {**facts, "name": name or facts.get("host")}
    return ", ".join(form.format(machine[name]) for name, form in _MACHINE_FACTS.items() if machine.get(name))


NOT_MEASURED = frozenset({"timestamp", "tvm_hash", "night", "schema_version"})
"""Entries that the dashboard itself adds to a foreign data.json."""


def numeric_leaves(value: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield each number in nested objects and lists with its JSON path, as in `$.gpu.O3.mean`."""
    declares = {"metrics"} if declared_in(value) else set()
    for key, item in value.items():
        if key not in NOT_MEASURED | declares:
            yield from _leaves(item, f"$.{key}")


def _leaves(value: common.Json, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, (int, float)):
        number = float(value)
        if math.isfinite(number):
            yield path, number
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}")
    else:
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
