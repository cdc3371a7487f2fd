"""Which devices a home has, which an experiment asks for, and what a build from source gets for them."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from dashboard.hosts import bundle
from dashboard.plan.devices import list_devices, list_kinds
from dashboard.plan.job import CodeFolders
from dashboard.plan.plan import make_plan
from tests.dashboard import homes
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

TAKES_DEVICES = json.dumps({"include": ["device"]})


def home_with(tmp_path: Path, **config: Any) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tmp_path / "artifacts", **config)


def add(home: homes.HomeForTests, name: str, device: list[str], fields: str = TAKES_DEVICES) -> None:
    (home.experiment(name, config={"device": device}) / "fields.json").write_text(fields)


def test_an_experiment_that_asks_for_no_device_of_the_home_is_rejected_alone(tmp_path: Path) -> None:
    home = home_with(tmp_path, devices={"opencl": {}})
    add(home, "good", ["cpu", "opencl"])
    add(home, "bad", ["cuda"])
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    assert [job.name for job in plan.experiments] == ["good"]
    there = "Devices of this home: cpu, opencl."
    fault = f"config/experiments/bad/config.json: $.device: this home has no device 'cuda'. {there}"
    assert [job.faults for job in plan.rejected] == [(fault,)]


def test_an_experiments_own_field_of_that_name_is_its_own_affair(tmp_path: Path) -> None:
    home = home_with(tmp_path)
    own = {"type": "list", "default": [], "doc": "Ours."}
    add(home, "ours", ["sim"], json.dumps({"device": own}))
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    assert [job.name for job in plan.experiments] == ["ours"]
    assert list_devices(plan.experiments, plan.config) == ()


def test_runtimes_are_wanted_of_the_devices_of_this_machine_that_are_asked_for(tmp_path: Path) -> None:
    remote = {"tracker_host": "pi", "kind": "vulkan"}
    home = home_with(tmp_path, devices={"opencl": {}, "opencl:1": {}, "cuda": {}, "remote:pi": remote})
    add(home, "x", ["opencl:1", "opencl", "remote:pi"])
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    assert [device.name for device in list_devices(plan.experiments, plan.config)] == [
        "opencl:1",
        "opencl",
        "remote:pi",
    ]
    assert list_kinds(plan.experiments, plan.config) == ("opencl",)


@pytest.mark.parametrize(
    ("config", "options"),
    [
        ({"tvm_remote": "/tvm"}, {"USE_OPENCL": "ON", "USE_CUDA": "ON"}),
        (
            {"tvm_remote": "/tvm", "tvm_options": {"USE_CUDA": "/opt/cuda"}},
            {"USE_OPENCL": "ON", "USE_CUDA": "/opt/cuda"},
        ),
        ({}, {}),
    ],
)
def test_a_build_from_source_drives_the_homes_devices(
    config: dict[str, Any], options: dict[str, str], tmp_path: Path
) -> None:
    home = home_with(tmp_path, devices={"opencl": {}, "cuda:1": {}}, **config)
    assert dict(make_plan(home.home, CodeFolders()).config.tvm.options) == options


def test_a_source_that_git_could_run_is_refused(tmp_path: Path) -> None:
    home = home_with(tmp_path, tvm_source="ext::sh -c id")
    with pytest.raises(DashboardError, match=r"\$\.tvm_source: 'ext::sh -c id': git could interpret this as a program"):
        make_plan(home.home, CodeFolders())


def test_a_stage_is_told_the_devices_of_the_home(tmp_path: Path) -> None:
    home = home_with(tmp_path, devices={"opencl": {"target": {"max_num_threads": 64}}})
    told = homes.good("run", f'printf "%s" "$TVMDASH_DEVICES" > {tmp_path}/devices')
    (home.experiment("x", run=told) / "fields.json").write_text('{"needs_tvm": false}')
    assert home.run().code == 0
    assert homes.read(tmp_path / "devices") == {"opencl": {"target": {"max_num_threads": 64}}}


def test_check_says_which_device_cannot_be_used_and_why(tmp_path: Path) -> None:
    home = home_with(tmp_path, devices={"metal": {}, "remote:pi": {"tracker_host": "pi", "kind": "opencl"}})
    add(home, "x", ["cpu", "metal", "remote:pi"])
    checked = home.run(verb="check")
    assert checked.code == 2
    assert "Device metal: no driver is installed (available on macOS only)." in checked.output
    assert (
        "Device remote:pi: reached through the RPC tracker pi:9190; it is not contacted until it is measured."
    ) in checked.output


def test_one_command_adds_a_device_to_the_home_and_to_what_runs_on_it(tmp_path: Path) -> None:
    home = home_with(tmp_path, devices={"opencl": {"target": {"max_num_threads": 64}}})
    add(home, "x", ["cpu"])
    homes.write(home.home.config("experiment", "x") / "config.json", {"active": False, "title": "X"})
    home.experiment("y")
    refused = home.run("--add", "cuda", verb="devices")
    assert (refused.code, "no active experiment supports devices" in refused.output) == (2, True)
    refused = home.run("--add", "cuda", "--experiment", "y", verb="devices")
    assert "y does not support devices" in refused.output
    assert "cuda" not in homes.read(home.home.config_file)["devices"]
    done = home.run("--add", "metal", "--experiment", "x", verb="devices")
    assert "Device metal: no driver is installed" in done.output
    written = [line.removesuffix(": written.") for line in done.output.splitlines() if line.endswith(": written.")]
    assert written == [str(home.home.config_file), str(home.home.config("experiment", "x") / "config.json")]
    assert homes.read(home.home.config_file)["devices"] == {"opencl": {"target": {"max_num_threads": 64}}, "metal": {}}
    changed = homes.read(home.home.config("experiment", "x") / "config.json")
    assert changed == {"active": True, "title": "X", "device": ["cpu", "metal"]}
    home.run("--add", "metal", verb="devices")
    assert homes.read(home.home.config("experiment", "x") / "config.json") == changed


def test_a_home_without_devices_says_so(tmp_path: Path) -> None:
    done = home_with(tmp_path).run(verb="devices")
    assert (done.code, "the home has no devices other than the CPU" in done.output) == (0, True)


def test_a_host_has_the_devices_of_the_home(tmp_path: Path) -> None:
    box = {"launcher": "ssh", "address": "bench@box", "folder": "/var/tmp/tvm"}
    home = home_with(tmp_path, hosts={"box": box}, devices={"opencl": {}}, tvm_source="/tvm")
    add(home, "x", ["opencl"])
    homes.write(
        home.home.config("experiment", "x") / "config.json", {"active": True, "hosts": ["box"], "device": ["opencl"]}
    )
    plan = make_plan(home.home, CodeFolders(home.code / "experiments"))
    tvms = bundle.Tvms({}, {}, rebuild=True)
    packed = bundle.pack_config(
        plan, plan.config.hosts["box"], plan.away, bundle.BundledCode("h", tmp_path, has_own=False), tvms
    )
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for name in archive.getnames():
            text = archive.extractfile(name)
            assert text is not None
            homes.write(tmp_path / "there" / "config" / name, json.load(text))
    there = make_plan(Home(tmp_path / "there"), CodeFolders(home.code / "experiments"), host="box")
    assert [(job.name, job.faults) for job in (*there.experiments, *there.rejected)] == [("x~box", ())]
    assert (list(there.config.devices), there.config.tvm_source) == (["opencl"], "/tvm")
