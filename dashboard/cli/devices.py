"""`devices`: show what a home's devices support, and add a device to its config."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact
from dashboard.artifacts.provide import list_here
from dashboard.artifacts.runtimes.survey import DeviceFinding, survey
from dashboard.cli.arguments import OK_CODE, USAGE, Verbs, add_home_verb, find_code
from dashboard.plan.devices import FIELD, list_devices, takes_devices
from dashboard.plan.job import CodeFolders, Plan
from dashboard.plan.plan import make_plan
from tvmdash import common
from tvmdash.config_util import CONFIG_FILE
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.stages import EXPERIMENT
from tvmdash.errors import DashboardError
from tvmdash.machine.devices import CPU, Device, read_devices


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    parser = add_home_verb(verbs, "devices", _devices, "show what the home's devices support; --add adds a device")
    parser.add_argument("--add", metavar="DEVICE", help="add this device to the home's config, e.g. opencl or cuda:1")
    parser.add_argument(
        "--experiment",
        action="append",
        metavar="NAME",
        help="experiment that also runs on the new device (default: every active experiment)",
    )


def _devices(arguments: argparse.Namespace) -> int:
    home, code = Home(arguments.home), find_code(arguments)
    if arguments.add:
        plan = make_plan(home, code)
        for path in add_device(plan, code, arguments.add, arguments.experiment):
            print(f"{path}: written.")
    plan = make_plan(home, code)
    found = survey_devices(plan, tuple(plan.config.devices.values()))
    print("\n".join(finding.text for finding in found) or f"{home.root}: the home has no devices other than the CPU.")
    return USAGE if any(finding.is_fault for finding in found) else OK_CODE


def add_device(plan: Plan, code: CodeFolders, name: str, experiments: Sequence[str] | None) -> list[Path]:
    """Name the device in the home's config and in those of the experiments; return the changed files.

    An experiment that is named is active afterwards. DashboardError where one does not take devices, and where none
    was named and none of the active ones does; then nothing is written.
    """
    home = plan.home
    config = common.read_json(home.config_file)
    listed = {**config.get("devices", {}), name: config.get("devices", {}).get(name, {})}
    read_devices(listed, "--add")
    chosen = list(experiments) if experiments else [job.name for job in plan.experiments if takes_devices(job.folder)]
    strange = [item for item in chosen if not takes_devices(code.of(EXPERIMENT, item))]
    if strange or not chosen:
        which = f"{strange[0]} does not support devices" if strange else "no active experiment supports devices"
        raise DashboardError(f"{which}. Give one that does with --experiment, e.g. cnn_comp, operators or transformer.")
    common.write_json(home.config_file, {**config, "devices": listed})
    return [home.config_file, *(_add_to_experiment(home, name, item) for item in chosen)]


def _add_to_experiment(home: Home, device: str, name: str) -> Path:
    file = home.config(EXPERIMENT.kind, name) / CONFIG_FILE
    config: dict[str, Any] = common.read_json(file) if file.exists() else {}
    asked = dict.fromkeys([*config.get(FIELD, [CPU]), device])
    common.write_json(file, {**config, "active": True, FIELD: list(asked)})
    return file


def survey_devices(plan: Plan, devices: Sequence[Device] | None = None) -> list[DeviceFinding]:
    """Examine devices, by default those that an experiment of this machine asks for; a sentence for each.

    On the newest TVM of the home's own that is at hand.
    """
    asked = list_devices(plan.experiments, plan.config) if devices is None else devices
    artifact = _find_newest(plan) if asked else None
    found = [(device, _survey(device, artifact, plan.config.tvm_source)) for device in asked]
    return [replace(finding, text=f"Device {device.name}: {finding.text}") for device, finding in found]


def _survey(device: Device, artifact: Artifact | None, source: str) -> DeviceFinding:
    if device.tracker is not None:
        host, port = device.tracker
        return DeviceFinding(
            f"reached through the RPC tracker {host}:{port}; it is not contacted until it is measured."
        )
    return survey(device.kind, device.index, artifact, source)


def _find_newest(plan: Plan) -> Artifact | None:
    return next(iter(list_here(plan.config.tvm, plan.config.artifacts)), None)
