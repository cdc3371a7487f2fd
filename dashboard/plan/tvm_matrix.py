"""Many TVMs a night: on each TVM beside the home's own, an experiment is a job of its own, `NAME@TVM`.

Its results lie under that name, so that no series of one TVM ever holds a value of another; its code, its config and
what its setup left are the experiment's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.spec import WHEEL, provider_of
from dashboard.plan.job import Job
from tvmdash.dashboard_info import VARIANT_SIGN


def read_wanted(config: Mapping[str, Any], tvms: Mapping[str, ArtifactSpec]) -> tuple[tuple[str, ArtifactSpec], ...]:
    """Those of the home's `tvms` that an experiment with this config is measured on, in the home's order."""
    asked = config["tvms"]
    if asked is None:
        asked = [] if config["tvm_remote"] or config["tvm_branch"] else list(tvms)
    return tuple((name, add_options(spec, config)) for name, spec in tvms.items() if name in asked)


def add_options(spec: ArtifactSpec, config: Mapping[str, Any]) -> ArtifactSpec:
    """A source build for an experiment with options of its own has those."""
    if config["tvm_options"] is None or provider_of(spec) == WHEEL:
        return spec
    return ArtifactSpec.of(spec.remote, spec.branch, config["tvm_options"])


def find_faults(config: Mapping[str, Any], tvms: Mapping[str, ArtifactSpec], shown: str) -> list[str]:
    """A sentence for each TVM that the config `shown` names and the home does not."""
    there = f"TVMs in this home's `tvms`: {', '.join(tvms) or 'none'}."
    return [
        f"{shown}: $.tvms: this home has no TVM {name!r:.80}. {there}"
        for name in config["tvms"] or ()
        if name not in tvms
    ]


def add_variants(jobs: Sequence[Job]) -> list[Job]:
    """The jobs; one that needs no TVM is measured on another TVM only beside an experiment that needs that one."""
    needed = {name for job in jobs if job.needs_tvm for name, _ in job.others}
    return [
        job if job.needs_tvm else replace(job, others=tuple(item for item in job.others if item[0] in needed))
        for job in jobs
    ]


def interleave(jobs: Sequence[Job], turn: int) -> tuple[Job, ...]:
    """Each job followed by its variants, so that a slow hour hits all alike.

    Which of them goes first takes turns: from one experiment to the next by name, and with `turn` from night to night.
    """
    names = sorted(job.name for job in jobs if job.others)
    ordered: list[Job] = []
    for job in jobs:
        every = [job, *(_make_variant(job, name, spec) for name, spec in job.others)]
        first = (turn + names.index(job.name)) % len(every) if job.others else 0
        ordered += [*every[first:], *every[:first]]
    return tuple(ordered)


def _make_variant(job: Job, name: str, spec: ArtifactSpec) -> Job:
    return replace(job, name=f"{job.name}{VARIANT_SIGN}{name}", tvm=spec, others=())
