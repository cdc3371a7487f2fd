"""What an importer finds: nights of an experiment, in records or in nested numbers."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dashboard.importing.source import File
from tvmdash import records
from tvmdash.errors import DashboardError
from tvmdash.measure import reduction

NO_MEDIAN = "the source has no median; the mean is used instead"
_EMPTY: Mapping[str, Any] = {"docker_tag": None, "docker_hash": None}


@dataclass(frozen=True)
class ParsedNight:
    """One night of one experiment. `content` is a data.json without what the dashboard adds.

    `part` tells the nights of one file apart; `kept` goes along in `night.imported`; `left_out` says in words what of
    the file was not taken. Nights that `joins` are one where experiment, moment and format are: their records together.
    """

    experiment: str
    moment: datetime.datetime
    tvm_hash: str
    content: Mapping[str, Any]
    part: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    joins: bool = False


@dataclass(frozen=True)
class ImportReading:
    """How the user wants a source read: the zone of stamps that name none."""

    zone: zoneinfo.ZoneInfo = field(default_factory=lambda: zoneinfo.ZoneInfo("UTC"))

    def moment(self, naive: datetime.datetime) -> datetime.datetime:
        """The UTC moment of a stamp, which is of `zone` where it names none. Of an hour that comes twice the first."""
        aware = naive if naive.tzinfo else naive.replace(tzinfo=self.zone)
        try:
            return aware.astimezone(datetime.UTC).replace(microsecond=0)
        except OverflowError as error:
            raise DashboardError(f"{naive} is not a supported date and time.") from error


@dataclass(frozen=True)
class ImportFormat:
    """A format: in words, which files are its own, the files of it that hold no results, and how one is read."""

    name: str
    about: str
    owns: Callable[[File], bool]
    read: Callable[[File, ImportReading], Iterator[ParsedNight]]


def reduce_samples(samples_ms: Sequence[float]) -> dict[str, Any]:
    """Mean and standard deviation (None of one sample) as columns, and what `additional_info` says of these samples."""
    reduction_of_samples = reduction.reduce_processes([samples_ms])
    return {
        "mean": reduction_of_samples.mean,
        "std": reduction_of_samples.std if reduction_of_samples.count > 1 else None,
        "info": {
            "execution_elapsed_ms_median": reduction_of_samples.median,
            "execution_elapsed_ms_min": reduction_of_samples.min,
            **({"execution_elapsed_ms_low": reduction_of_samples.low} if reduction_of_samples.low is not None else {}),
            **(
                {"execution_elapsed_ms_high": reduction_of_samples.high}
                if reduction_of_samples.high is not None
                else {}
            ),
            "samples": reduction_of_samples.count,
        },
    }


def describe_stated(mean_ms: float, *, std_ms: float | None = None, median_ms: float | None = None) -> dict[str, Any]:
    """As `reduce_samples`, of a source that gives no samples."""
    if median_ms is not None:
        return {"mean": mean_ms, "std": std_ms, "info": {"execution_elapsed_ms_median": median_ms}}
    return {"mean": mean_ms, "std": std_ms, "info": {"execution_elapsed_ms_median": mean_ms, "doubts": [NO_MEDIAN]}}


def record(moment: datetime.datetime, measured: Mapping[str, Any], **columns: Any) -> dict[str, Any]:
    """A record's JSON with these columns; what is not given is empty."""
    return {
        "timestamp": moment.isoformat().replace("+00:00", "Z"),
        "schema_version": records.SCHEMA_VERSION,
        "additional_info": {**_EMPTY, **measured["info"], **columns.pop("info", {})},
        **dict.fromkeys(("engine_version", "target", "env_name", "hw_model"), ""),
        **{name: {} for name in ("workload_args", "engine_config", "build_config", "runtime_config")},
        "execution_config": {},
        **columns,
        "execution_elapsed_ms_mean": measured["mean"],
        "execution_elapsed_ms_std": measured["std"],
    }


def make_data(parsed: Sequence[Mapping[str, Any]], failures: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A night's content of records; DashboardError where there are none."""
    if not parsed and not failures:
        raise DashboardError("contains no times that could be imported as records.")
    known = {"schema_version": records.SCHEMA_VERSION, "records": list(parsed)}
    return {**known, **({"failures": list(failures)} if failures else {})}


def parse_number(value: object) -> float | None:
    """`value` where it is a number."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def parse_numbers(value: object) -> list[float]:
    """The numbers in a list."""
    return [known for known in map(parse_number, value) if known is not None] if isinstance(value, list) else []


def check_mapping(value: object) -> dict[str, Any]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def check_objects(value: object) -> list[dict[str, Any]]:
    """The objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
