"""Prerequisites of a subsystem, declared as values; `unmet` returns a sentence for each that tonight lacks.

    needs = (
        needs_experiment("relax_opt", stage="analyze"),
        needs_config("relax_opt", "networks", contains="mlp"),
        needs_subsystem("score"),
        needs_setting("telemetry_rate", above=0),
    )
    unmet(needs, home, tonight)  # () where all is there

Nothing is run and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tvmdash import common, config_util
from tvmdash.dashboard_info import BLOCKED, Home, Night
from tvmdash.dashboard_info.stages import PRECHECK, pipeline
from tvmdash.errors import DashboardError
from tvmdash.text import elide

_ANYTHING: Any = object()
_REASON_COLUMNS = 200


class Need(Protocol):
    """One thing that must be there. `str(need)` names it."""

    def lacking(self, home: Home, night: Night) -> str | None:
        """Return a sentence with the reason and the remedy where it is missing, else None."""


def unmet(needs: Iterable[Need], home: Home, night: Night) -> tuple[str, ...]:
    """Return a sentence for each need that `night` does not meet, in the order of `needs`."""
    sentences = (need.lacking(home, night) for need in needs)
    return tuple(dict.fromkeys(sentence for sentence in sentences if sentence))


def needs_experiment(name: str, *, stage: str = "analyze") -> Need:
    """Tonight the experiment has gone well up to this stage; after `analyze` its data file is there."""
    return _Job("experiment", name, _known_stage("experiment", stage))


def needs_subsystem(name: str) -> Need:
    """Tonight the subsystem has already run, and well."""
    return _Job("subsystem", name, _known_stage("subsystem", "run"))


def needs_config(
    experiment: str, field: str, *, equals: Any = _ANYTHING, contains: Any = _ANYTHING, above: float | None = None
) -> Need:
    """A field of the experiment's config: that it is given and, where asked for, what it holds.

    Judged by the config that tonight's data was measured with, defaults included; without data, by config.json alone.
    """
    return _Config(experiment, field, _Condition(equals, contains, above))


def needs_setting(
    field: str, *, equals: Any = _ANYTHING, contains: Any = _ANYTHING, above: float | None = None
) -> Need:
    """A field of the home's top-level config, defaults included."""
    return _Setting(field, _Condition(equals, contains, above))


def needs_any(*needs: Need) -> Need:
    """At least one of these."""
    return _Any(needs)


def is_switched_off(home: Home, kind: str, name: str) -> bool:
    """Return True where the home knows this job and its config says that it is not active."""
    return _read(home.config(kind, name) / config_util.CONFIG_FILE).get("active") is False


def _known_stage(kind: str, stage: str) -> str:
    names = [item.name for item in pipeline(kind).stages]
    if stage not in names:
        raise DashboardError(f"needs: {kind}s have no stage {stage!r}. Use one of: {', '.join(names)}.")
    return stage


@dataclass(frozen=True)
class _Job:
    kind: str
    name: str
    stage: str

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.name} up to {self.stage}"
            if pipeline(self.kind).measures
            else f"{self.kind} {self.name}"
        )

    def lacking(self, home: Home, night: Night) -> str | None:
        job = next((job for job in night.jobs if (job.kind, job.name) == (self.kind, self.name)), None)
        if job is None:
            return self._why_absent(home, night)
        names = [stage.name for stage in pipeline(self.kind).stages]
        done = {step.stage for step in job.steps if step.success} - {PRECHECK}
        if any(name in done for name in names[names.index(self.stage) :]):
            return None
        failure = job.first_failure
        if failure is not None:
            reason = elide(failure.message, _REASON_COLUMNS) or "no reason given."
            how = "was blocked" if failure.state == BLOCKED else failure.state
            return f"{self.kind} {self.name}: stage {failure.stage} {how} tonight: {reason}"
        if pipeline(self.kind).measures:
            return f"{self.kind} {self.name} has not reached stage {self.stage} tonight."
        return f"{self.kind} {self.name} has not run yet tonight. Give it a higher priority than this job."

    def _why_absent(self, home: Home, night: Night) -> str:
        file = home.config(self.kind, self.name) / config_util.CONFIG_FILE
        shown = file.relative_to(home.root)
        if not file.exists():
            return f"{self.kind} {self.name} is unknown: {shown} does not exist. Create it."
        if is_switched_off(home, self.kind, self.name):
            return f"{self.kind} {self.name} is not active. Set active to true in {shown}."
        return f"{self.kind} {self.name} did not run in night {night.stamp}."


@dataclass(frozen=True)
class _Condition:
    equals: Any
    contains: Any
    above: float | None

    def fault(self, value: Any) -> str | None:
        """Return a sentence with the fault of `value` and its remedy, or None."""
        if self.equals is not _ANYTHING and value != self.equals:
            return f"{value!r:.80} is not {self.equals!r:.80}. Set it to that."
        if self.contains is not _ANYTHING and not (
            isinstance(value, (list, dict, str)) and _holds(value, self.contains)
        ):
            return f"{value!r:.80} does not contain {self.contains!r:.80}. Add it."
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if self.above is not None and not (number and value > self.above):
            return f"{value!r:.80} is not above {self.above:g}. Raise it."
        return None

    def __str__(self) -> str:
        parts = [f"equal to {self.equals!r}"] if self.equals is not _ANYTHING else []
        parts += [f"holding {self.contains!r}"] if self.contains is not _ANYTHING else []
        parts += [f"above {self.above:g}"] if self.above is not None else []
        return " and ".join(parts) or "given"


def _holds(value: list[Any] | dict[str, Any] | str, item: Any) -> bool:
    return item in value if not isinstance(value, str) or isinstance(item, str) else False


@dataclass(frozen=True)
class _Config:
    experiment: str
    field: str
    condition: _Condition

    def __str__(self) -> str:
        return f"{self.field} of experiment {self.experiment} {self.condition}"

    def lacking(self, home: Home, night: Night) -> str | None:
        file = home.config("experiment", self.experiment) / config_util.CONFIG_FILE
        config = _read_measured_config(home.data_file(self.experiment, night.stamp)) or _read(file)
        location = f"{file.relative_to(home.root)}: $.{self.field}"
        if self.field not in config:
            return f"{location}: required field is missing. Add it."
        fault = self.condition.fault(config[self.field])
        return f"{location}: {fault}" if fault else None


@dataclass(frozen=True)
class _Setting:
    field: str
    condition: _Condition

    def __str__(self) -> str:
        return f"{self.field} of the top-level config {self.condition}"

    def lacking(self, home: Home, night: Night) -> str | None:
        config = config_util.read_config(home.config_file, config_util.HOME_FIELDS)
        location = f"{home.config_file.relative_to(home.root)}: $.{self.field}"
        if self.field not in config:
            return f"{location}: unknown field."
        fault = self.condition.fault(config[self.field])
        return f"{location}: {fault}" if fault else None


@dataclass(frozen=True)
class _Any:
    needs: tuple[Need, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.needs))

    def lacking(self, home: Home, night: Night) -> str | None:
        sentences = []
        for need in self.needs:
            sentence = need.lacking(home, night)
            if sentence is None:
                return None
            sentences.append(sentence)
        return " ".join(dict.fromkeys(sentences)) or "The list of alternatives is empty. Add at least one requirement."


def _read_measured_config(data_file: Path) -> dict[str, Any]:
    """Return the whole config in tonight's data file; empty where there is no such file yet."""
    if not data_file.is_file():
        return {}
    night = _read(data_file).get("night")
    config = night.get("config") if isinstance(night, dict) else None
    return config if isinstance(config, dict) else {}


def _read(path: Path) -> dict[str, Any]:
    """Return the object in `path`; empty where it is unreadable: whoever wrote the file has been told of it."""
    try:
        value = common.read_json(path)
    except DashboardError:
        return {}
    return value if isinstance(value, dict) else {}
