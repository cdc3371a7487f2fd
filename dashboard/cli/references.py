"""Describe which references a night would use, and which experiments are measured without one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dashboard.plan.job import Alone
from dashboard.plan.night_plan import Plan
from dashboard.plan.reference import Expected, Forecast, forecast_references, format_spec
from dashboard.plan.settings import ReferenceRule
from tvmdash.text import format_list

_NAMED = 8
_WHY_ALONE: Mapping[Alone, str] = MappingProxyType(
    {
        Alone.NO_TVM: "needs no TVM",
        Alone.OWN_TVM: "has a TVM of its own",
        Alone.NOT_PAIRED: "paired is false",
        Alone.UNDECLARED: "does not declare beside_reference",
    }
)


def summarize_references(plan: Plan) -> list[str]:
    """A line for each TVM, and one for the experiments that are measured alone."""
    if plan.config.reference is ReferenceRule.NONE:
        return ["Reference: none (disabled in the config)."] if plan.artifacts else []
    lines = [f"Reference of TVM {format_spec(item.tvm)}: {_describe(item)}." for item in forecast_references(plan)]
    alone = [f"{job.name} ({_WHY_ALONE[job.alone]})" for job in plan.experiments if job.alone]
    return [*lines, *([f"Measured alone: {format_list(alone, _NAMED)}."] if lines and alone else [])]


_UNKNOWN: Mapping[Expected, str] = MappingProxyType(
    {
        Expected.ITSELF: "itself (an A/A test)",
        Expected.RELEASE_BEFORE: "the previous release, which the night looks up in the package index",
        Expected.NIGHTLY_BEFORE: "the version before it, which the night looks up where the wheels come from",
        Expected.FIRST_BUILD: "none; no earlier night built it",
    }
)
"""What is said of a reference that nobody knows by name."""


def _describe(item: Forecast) -> str:
    match item.expected:
        case Expected.NAMED:
            return item.reference
        case Expected.KEPT:
            newer = f"; if tonight's TVM is no longer {item.last}, the release before it" if item.last else ""
            return f"TVM {item.reference}, as on previous nights{newer}"
        case Expected.BUILD_BEFORE:
            return f"the previous build; the last night's build is {item.last}"
        case _:
            return _UNKNOWN[item.expected]
