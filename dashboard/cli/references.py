"""Describe which TVMs and references a night would use, and which experiments are measured without one."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import Lookup, look_up
from dashboard.artifacts.runtimes.survey import DeviceFinding
from dashboard.artifacts.spec import LATEST, WHEEL, provider_of
from dashboard.plan.job import Alone
from dashboard.plan.night_plan import Plan
from dashboard.plan.reference import (
    ExpectedReference,
    Forecast,
    find_named,
    forecast_references,
    format_spec,
    list_paired,
)
from dashboard.plan.settings import ReferenceRule
from tvmdash import common
from tvmdash.text import format_list

_LOOK_UP_S = 30.0
"""For all TVMs of a home together: people wait for it, and pip itself gives up a silent index after minutes only."""
_NAMED = 8
_WHY_ALONE: Mapping[Alone, str] = MappingProxyType(
    {
        Alone.NO_TVM: "needs no TVM",
        Alone.OWN_TVM: "has a TVM of its own",
        Alone.NOT_PAIRED: "paired is false",
        Alone.UNDECLARED: "does not declare beside_reference",
    }
)


def add_no_look_up(parser: argparse.ArgumentParser) -> None:
    """Add the option of who would rather know what is at hand than ask where TVM comes from."""
    text = "do not look up TVM; tell what a night with this option would use"
    parser.add_argument("--no-rebuild-tvm", action="store_true", help=text)


def survey_tvms(plan: Plan, *, rebuild: bool) -> list[DeviceFinding]:
    """A sentence for each TVM and named reference that a night which began now would take; a fault where it has none.

    rebuild: the night may fetch one, so the sources are asked.
    """
    deadline, config = LockDeadline(_LOOK_UP_S), plan.config
    findings = []
    named = dict.fromkeys(find_named(tvm, config) for tvm in list_paired(plan.experiments, config))
    for spec in dict.fromkeys((*plan.artifacts, *filter(None, named))):
        found = look_up(spec, config.artifacts, deadline, rebuild=rebuild, fallback=config.fallback)
        text = f"TVM: {format_spec(spec)}{_format_names(plan, spec)}{_format_found(spec, found)}"
        findings.append(DeviceFinding(text, is_fault=bool(found.fault) and not found.version))
    return findings


def _format_names(plan: Plan, spec: ArtifactSpec) -> str:
    """The names of this TVM in the home's config."""
    names = dict.fromkeys(job.variant for job in plan.experiments if job.tvm == spec and job.variant)
    return f", as {', '.join(names)}" if names else ", as reference" if spec not in plan.artifacts else ""


def _format_found(spec: ArtifactSpec, found: Lookup) -> str:
    asked = f" (asked at {common.utc_now():%H:%M} UTC)" if found.is_asked else ""
    if not found.version:
        none = f"a night that began now would have none{asked}: {found.fault}"
        return f": {none if found.fault else 'none is at hand.'}"
    version = f": {found.version}, " if spec.branch == LATEST else ": "
    if found.fault:
        return f"{version}at hand; the source does not say what is newest{asked}: {found.fault}"
    if found.is_at_hand:
        return f"{version}at hand{asked}."
    return f"{version}to be downloaded{asked}." if provider_of(spec) == WHEEL else "."


def summarize_references(plan: Plan) -> list[str]:
    """A line for each TVM, and one for the experiments that are measured alone."""
    if plan.config.reference is ReferenceRule.NONE:
        return ["Reference: none (disabled in the config)."] if plan.artifacts else []
    lines = [f"Reference of TVM {format_spec(item.tvm)}: {_describe(item)}." for item in forecast_references(plan)]
    alone = [f"{job.name} ({_WHY_ALONE[job.alone]})" for job in plan.experiments if job.alone]
    return [*lines, *([f"Measured alone: {format_list(alone, _NAMED)}."] if lines and alone else [])]


_UNKNOWN: Mapping[ExpectedReference, str] = MappingProxyType(
    {
        ExpectedReference.ITSELF: "itself (an A/A test)",
        ExpectedReference.RELEASE_BEFORE: "the previous release, which the night looks up in the package index",
        ExpectedReference.NIGHTLY_BEFORE: "the version before it, which the night looks up where the wheels come from",
        ExpectedReference.FIRST_BUILD: "none; no earlier night built it",
    }
)
"""Descriptions of references that have no name before the night begins."""


def _describe(item: Forecast) -> str:
    match item.expected:
        case ExpectedReference.NAMED:
            return item.reference
        case ExpectedReference.KEPT:
            newer = f"; if tonight's TVM is no longer {item.last}, the release before it" if item.last else ""
            return f"TVM {item.reference}, as on previous nights{newer}"
        case ExpectedReference.BUILD_BEFORE:
            return f"the last build before it that differs; the last night measured {item.last}"
        case _:
            return _UNKNOWN[item.expected]
