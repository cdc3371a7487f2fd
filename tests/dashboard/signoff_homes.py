"""Homes of which it is known what changed between two TVMs: every number is given, nothing is drawn."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.dashboard import result_homes
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Home, Night, Reference, ReferenceChoice

FIRST = datetime.datetime(2026, 11, 1, 3, 15, tzinfo=datetime.UTC)
SCATTER = (-0.004, -0.002, 0.0, 0.002, 0.004)
"""Of the five pairs of a night, around their mean."""


@dataclass(frozen=True)
class PlantedTvm:
    """A TVM with what it does to each workload: a factor of the time; sizes in bytes by workload.

    release: a wheel's version; empty is a build from source.
    """

    commit: str
    slower: Mapping[str, float] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    release: str = ""

    @property
    def provider(self) -> str:
        return "wheel" if self.release else "git"

    @property
    def version(self) -> str:
        return self.release or "0.27.dev0"

    @property
    def artifact(self) -> dict[str, Any]:
        """As nights and data files say it."""
        facts = {"provider": self.provider, "version": self.version, "commit": self.commit, "facts": {}}
        return {"key": f"{self.provider}-{self.commit[:8]}", **facts, "asked": [{"remote": "R", "branch": "main"}]}

    def time(self, workload: str) -> float:
        return 2.0 * self.slower.get(workload, 1.0)


def stamp_of(night: int) -> str:
    return common.stamp_of(FIRST + datetime.timedelta(days=night))


def point(
    workload: str, tvm: PlantedTvm, beside: PlantedTvm | None = None, *, noise: float = 1.0, **info: Any
) -> dict[str, Any]:
    """One record: its time, its size where there is one, and five pairs with the reference, so many times as noisy."""
    exact = {"code_size": tvm.sizes[workload], "alike": {"code_size": 5}} if workload in tvm.sizes else {}
    if beside is not None:
        mean = math.log(tvm.time(workload) / beside.time(workload))
        logs = [mean + noise * away for away in SCATTER]
        of_reference = {"code_size": beside.sizes[workload]} if workload in beside.sizes else {}
        ratio = {"clock": "cpu", "log_ratios": logs, "ratio": math.exp(mean)}
        info["paired"] = {"ratios": {"run_time": ratio}, "reference": of_reference}
    return result_homes.record(f"network.{workload}", tvm.time(workload), **exact, **info)


def _describe_reference(tvm: PlantedTvm, beside: PlantedTvm) -> Reference:
    facts = (tvm.artifact["key"], beside.artifact["key"], beside.provider, beside.version, beside.commit)
    return Reference(*facts, ReferenceChoice.AUTO)


@dataclass(frozen=True)
class PlantedHome:
    """A home that nights are added to."""

    root: Path

    @property
    def home(self) -> Home:
        return Home(self.root)

    def add_night(
        self,
        night: int,
        tvm: PlantedTvm,
        records: Mapping[str, Sequence[Mapping[str, Any]]],
        beside: PlantedTvm | None = None,
        failures: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        code: str = "code",
    ) -> None:
        """What a night leaves: its record, and a data file of each experiment."""
        stamp = stamp_of(night)
        self.home.nights.mkdir(parents=True, exist_ok=True)
        references = (_describe_reference(tvm, beside),) if beside else ()
        done = Night(stamp, COMPLETE, artifacts=(tvm.artifact,), references=references)
        common.write_json(self.home.night_file(stamp), done.to_json(), durable=False)
        reference = {"reference": beside.artifact} if beside else {}
        for experiment, own in records.items():
            failed = (failures or {}).get(experiment, ())
            facts = {"stamp": stamp, "artifact": tvm.artifact, "fingerprint": code, **reference}
            value = result_homes.data(own, failed, **facts)
            self.home.data(experiment).mkdir(parents=True, exist_ok=True)
            path = self.home.data_file(experiment, stamp)
            common.write_json(path, {**value, "tvm_hash": tvm.commit}, durable=False)
