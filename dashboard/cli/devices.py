"""What a home's devices can do, for `check`."""

from __future__ import annotations

from dataclasses import replace

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.artifacts.provide import PROVIDERS
from dashboard.artifacts.runtimes.survey import Finding, survey
from dashboard.artifacts.spec import provider_of
from dashboard.plan.devices import list_devices
from dashboard.plan.night_plan import Plan
from tvmdash.devices import Device


def survey_devices(plan: Plan) -> list[Finding]:
    """A sentence for each device that an experiment of this machine asks for, on the newest TVM at hand."""
    asked = list_devices(plan.experiments, plan.config)
    if not asked:
        return []
    artifact = _find_newest(plan)
    found = [(device, _survey(device, artifact, plan.config.tvm_source)) for device in asked]
    return [replace(finding, text=f"Device {device.name}: {finding.text}") for device, finding in found]


def _survey(device: Device, artifact: Artifact | None, source: str) -> Finding:
    if device.tracker is not None:
        host, port = device.tracker
        return Finding(f"behind the tracker {host}:{port}, which is asked when it is measured.")
    return survey(device.kind, device.index, artifact, source)


def _find_newest(plan: Plan) -> Artifact | None:
    spec: ArtifactSpec = plan.config.tvm
    provider = PROVIDERS[provider_of(spec)]
    there = artifact_store.artifacts_in(plan.config.artifacts) if plan.config.artifacts.is_dir() else []
    return max((artifact for artifact in there if provider.satisfies(artifact, spec)), key=provider.rank, default=None)
