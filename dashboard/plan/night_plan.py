"""The plan of one night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.plan.job import Job
from dashboard.plan.settings import HomeConfig
from tvmdash.dashboard_info import Home


@dataclass(frozen=True)
class Plan:
    """The plan of one night. `experiments` and `subsystems` are in the order in which they run.

    away: the experiments that other hosts measure, in that order on each of them.
    drawn: nobody gave the seed, so that another night has another one.
    retired: a sentence for each field or job that its configs go on to have, and which does nothing any more.
    """

    home: Home
    config: HomeConfig
    seed: int
    experiments: tuple[Job, ...]
    subsystems: tuple[Job, ...]
    rejected: tuple[Job, ...]
    inactive: tuple[str, ...]
    drawn: bool = False
    away: tuple[Job, ...] = ()
    retired: tuple[str, ...] = ()

    @property
    def artifacts(self) -> tuple[ArtifactSpec, ...]:
        """Each TVM that an experiment wants, once; those beside the home's own come last."""
        return wanted_by((*self.experiments, *self.away))


def wanted_by(jobs: Sequence[Job]) -> tuple[ArtifactSpec, ...]:
    """Each TVM that these jobs need, once; those beside the home's own come last."""
    needing = [job for job in jobs if job.needs_tvm]
    return tuple(dict.fromkeys(job.tvm for job in sorted(needing, key=lambda job: bool(job.variant)) if job.tvm))
