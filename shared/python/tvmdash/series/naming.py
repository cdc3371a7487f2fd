"""Series as people and files name them: one key and one name each, the same in alerts, in Slack and on the website.

And the same point on several machines: what is left of its identity once the machine is taken out of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.machine.identity import ENV_NAME, MachineIdentity
from tvmdash.records.metrics import FleetKind

_HIDDEN = frozenset({"workload", "env_name", "hw_model", "target", "engine_config"})
_UNIT_SIGN = "~"
_MACHINE = (ENV_NAME, "hw_model")
_OF_MACHINE = ("mcpu", "mattr", "num-cores", "mtriple")
"""Fields of a target that follow from the machine."""
_HOST, _VARIANT = "~", "@"
_PLAIN_KEY = re.compile(r"[0-9a-f]{16}(~[A-Za-z0-9_-]{1,20})?")


class Named(Protocol):
    """The fields that make a key and a name; `store.Series` and `store.Outline` have them."""

    @property
    def id(self) -> str: ...
    @property
    def experiment(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, Any]: ...
    @property
    def title(self) -> str: ...


def keys(series: Sequence[Named]) -> list[str]:
    """The ID of each; where a metric's unit changed, the later series of that ID have their unit behind it."""
    seen: set[str] = set()
    keys_of_series = []
    for each in series:
        keys_of_series.append(each.id if each.id not in seen else key_of(each.id, each.unit))
        seen.add(each.id)
    return keys_of_series


def key_of(series_id: str, unit: str) -> str:
    """Make the key of a series in one of several units."""
    return f"{series_id}{_UNIT_SIGN}{unit}"


def id_of(key: str) -> str:
    """The series' ID without the unit that a changed one carries."""
    return key.partition(_UNIT_SIGN)[0]


def file_name_of(key: str) -> str:
    """The name of a series' files: its key where that is plain, which it is but for odd units."""
    if _PLAIN_KEY.fullmatch(key):
        return key
    return key_of(id_of(key), hashlib.sha256(key.encode("utf-8", errors="surrogatepass")).hexdigest()[:8])


def names(series: Sequence[Named]) -> list[str]:
    """A name for each: experiment, workload, metric, and the labels that tell it from the others of its experiment."""
    return [f"{item.experiment} {short}" for item, short in zip(series, short_names(series), strict=True)]


def short_names(series: Sequence[Named]) -> list[str]:
    """The names without the experiment, for where it is told already."""
    flat = [dict(flatten(item.labels)) for item in series]
    varying: dict[tuple[str, str], set[str]] = {}
    first: dict[tuple[str, str], dict[str, str]] = {}
    for item, labels in zip(series, flat, strict=True):
        kind = (item.experiment, item.metric)
        before = first.setdefault(kind, labels)
        varying.setdefault(kind, set()).update(
            key for key in labels.keys() | before.keys() if labels.get(key) != before.get(key)
        )
    names = []
    for item, labels in zip(series, flat, strict=True):
        kept = [f"{key} {value}" for key, value in labels.items() if key in varying[item.experiment, item.metric]]
        workload = str(item.labels.get("workload") or item.title or item.labels.get("path") or "").removeprefix(
            "network."
        )
        called = item.title if "workload" in item.labels else ""
        metric = "" if item.metric == "value" else f" {called or item.metric.replace('_', ' ')}"
        bracket = f" ({', '.join(kept)})" if kept else ""
        names.append(f"{workload}{metric}{bracket}")
    return _make_unique(names, series)


def workload_of(series: Named) -> str:
    """Name the workload as people do, as in resnet18; of a foreign experiment's number its JSON path."""
    if "workload" not in series.labels:
        return str(series.title or series.labels.get("path") or "")
    workload = str(series.labels["workload"])
    return workload.partition(".")[2] or workload


def label_of(workload: str, values: Mapping[str, Any]) -> str:
    """Name a point, as in `mlp, zero, 3`."""
    name = workload.partition(".")[2] or workload
    return ", ".join([name, *(str(value) for key, value in values.items() if str(value) != name and key != "workload")])


def fleet(series: Named, home: MachineIdentity | None = None) -> str:
    """The fleet of a series, in words: what its machine does to one of them, it does to all.

    Sizes in bytes are no times, and accuracies and a foreign experiment's numbers are neither: they stand apart. With
    the machine of its `home` it is the key of the fleet, which stays when that machine gets a name.
    """
    labels = home.labels_of_id(series.labels) if home else series.labels
    kind = _fleet_kind(labels, series.unit)
    if kind == "numbers":
        return f"{kind} of {series.experiment}"
    return f"{kind} on {', '.join(_machine_labels(labels))}"


def fleet_kind(series: Named) -> FleetKind:
    return _fleet_kind(series.labels, series.unit)


_FLEETS: Mapping[str, FleetKind] = {"ms": "times", "bytes": "sizes"}
"""By the unit of a template's metric."""


def _fleet_kind(labels: Mapping[str, Any], unit: str) -> FleetKind:
    if "path" in labels or not _machine_labels(labels):
        return "numbers"
    return _FLEETS.get(unit, "numbers")


def _machine_labels(labels: Mapping[str, Any]) -> list[str]:
    return [str(labels[name]) for name in ("hw_model", "env_name") if labels.get(name)]


def _make_unique(names: Sequence[str], series: Sequence[Named]) -> list[str]:
    times = Counter((item.experiment, name) for item, name in zip(series, names, strict=True))
    return [
        f"{name} [{item.id[:6]}]" if times[item.experiment, name] > 1 else name
        for item, name in zip(series, names, strict=True)
    ]


def flatten(labels: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the labels that tell series apart, as texts, each by its own name, as in ("opt_level", "3")."""
    for key, value in labels.items():
        if key in _HIDDEN or key == "path":
            continue
        if isinstance(value, Mapping):
            yield from ((str(inner), str(item)) for inner, item in value.items())
        else:
            yield key, str(value)


def machine_of(labels: Mapping[str, Any]) -> str:
    """The machine that measures the series with these labels; empty where they name none."""
    return str(labels.get(ENV_NAME) or "")


def point_of(experiment: str, metric: str, labels: Mapping[str, Any]) -> str:
    """Make a key that is equal for series that are the same but for the machine."""
    kept = {name: item for name, item in labels.items() if name not in _MACHINE}
    if isinstance(kept.get("target"), str):
        kept["target"] = _strip_target(kept["target"])
    return json.dumps([strip_host(experiment), metric, kept], sort_keys=True, default=str)


def strip_host(name: str) -> str:
    """An experiment's or a series' name without the host in it: of `cnn~desk@release mlp` it is `cnn@release mlp`."""
    before, sign, rest = name.partition(_HOST)
    if not sign or " " in before:
        return name
    ends = [rest.find(end) for end in (_VARIANT, " ") if end in rest]
    return before + (rest[min(ends) :] if ends else "")


def _strip_target(target: str) -> Any:
    try:
        value = common.parse_json(target.encode(errors="replace"), "target")
    except DashboardError:
        return target
    return _strip_machine(value) if isinstance(value, dict) else value


def _strip_machine(target: Mapping[str, Any]) -> dict[str, Any]:
    """The target without what follows from the machine, also of what runs on it beside a device."""
    return {
        name: _strip_machine(item) if isinstance(item, dict) else item
        for name, item in target.items()
        if name not in _OF_MACHINE
    }
