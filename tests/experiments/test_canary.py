"""The canary: its bytes never change, its answers are right, and it tells the machine from TVM."""

from __future__ import annotations

import ctypes
import dataclasses
import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.experiments import trying
from tests.golden_files import Golden
from tests.subsystem.stat_alerts.alert_homes import AlertHome, Truth, stamp_of
from tvmdash import records
from tvmdash.errors import DashboardError
from tvmdash.experiment.info import History
from tvmdash.series.store import Series
from tvmdash.summary_util import Failure

FOLDER = trying.EXPERIMENTS / "canary"
CANARY = trying.modules("canary")
RELEASED = {
    "x86_64": {
        "integer_chain": "0f61ce2622a5",
        "double_chain": "be05ea0059ef",
        "multiply_add_sse2": "31e09c0d3d3f",
        "multiply_add_avx2": "da439cf66e0f",
        "read": "c2b955fb1370",
        "fill": "9402b10af33f",
        "copy": "908da05e73e3",
        "chase": "35e6263a258b",
        "system_call": "3a9846cf78dd",
    },
    "aarch64": {
        "integer_chain": "60b6e70076de",
        "double_chain": "529ec8c51695",
        "multiply_add_neon": "24da0d9a4cda",
        "read": "e9761b78883d",
        "fill": "af5fd9200b0b",
        "copy": "c974ca7a0a75",
        "chase": "bfe246b1be28",
        "system_call": "cb2e2c147e9e",
    },
}
"""The first twelve digits of each kernel's SHA-256. A line may be added; one that changes is another program."""
HERE = platform.machine()
VARIANTS = list(CANARY.canary.variants(HERE))
known_machine = pytest.mark.skipif(HERE not in RELEASED, reason=f"there are no kernels for {HERE}")


def smoke_arguments(workload: str, instructions: str) -> dict[str, int]:
    arguments: dict[str, int] = CANARY.workloads.arguments(workload, instructions, shorter=128, buffer_mib=1)
    return arguments


@pytest.mark.parametrize("architecture", RELEASED)
def test_the_bytes_of_every_kernel_are_those_that_were_released(architecture: str) -> None:
    kernels = CANARY.machine_code.kernels(architecture)
    assert {name: kernel.sha256[:12] for name, kernel in kernels.items()} == RELEASED[architecture]


@pytest.mark.parametrize("architecture", RELEASED)
def test_the_bytes_are_what_an_assembler_makes_of_the_source(architecture: str) -> None:
    tools = CANARY.machine_code.tools(architecture)
    if tools is None:
        pytest.skip(f"no assembler for {architecture} here")
    kernels = CANARY.machine_code.kernels(architecture)
    assert CANARY.machine_code.assembled(architecture, *tools) == {
        name: kernel.code for name, kernel in kernels.items()
    }
    needs = {name: kernel.needs for name, kernel in kernels.items() if kernel.needs}
    assert needs == (CANARY.machine_code.NEEDS if architecture == "x86_64" else {})


@known_machine
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_kernel_answers_as_python_does_each_time_it_is_asked(variant: tuple[str, str]) -> None:
    try:
        kernel = CANARY.canary.kernel_of(*variant)
    except DashboardError as error:
        pytest.skip(str(error))
    work = CANARY.workloads.MAKERS[variant[0]](CANARY.machine_code.load(kernel), smoke_arguments(*variant), 3)
    assert work.check() == {"max_error": 0.0, "tolerance": 0.0}
    work.call()
    assert bool(work.operations) != bool(work.moved_bytes)


@known_machine
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_wrong_answer_is_an_error(variant: tuple[str, str]) -> None:
    def broken(*arguments: int) -> int:
        return 5

    with pytest.raises(DashboardError, match=r"the answer is .*Python's is"):
        CANARY.workloads.MAKERS[variant[0]](broken, smoke_arguments(*variant), 3).check()


@known_machine
def test_one_changed_bit_of_a_kernel_gives_another_answer() -> None:
    kernel = CANARY.canary.kernel_of("integer_chain", "base")
    at = kernel.code.index(CANARY.workloads.INCREMENT.to_bytes(8, "little")) if HERE == "x86_64" else 4
    code = bytearray(kernel.code)
    code[at + 1] ^= 0x40
    changed = CANARY.machine_code.load(dataclasses.replace(kernel, code=bytes(code)))
    with pytest.raises(DashboardError, match="integer_chain: the answer is"):
        CANARY.workloads.integer_chain(changed, {"steps": 64}, 3).check()


@known_machine
def test_loaded_code_is_executable_and_can_no_longer_be_written() -> None:
    function = CANARY.machine_code.load(CANARY.canary.kernel_of("integer_chain", "base"))
    address = ctypes.cast(function, ctypes.c_void_p).value
    rows = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    ranges = [([int(end, 16) for end in row[0].split("-")], row[1]) for row in rows]
    assert [rights for (start, stop), rights in ranges if start <= address < stop] == ["r-xp"]


def test_the_process_may_use_all_its_cores_again_afterwards() -> None:
    before = os.sched_getaffinity(0)
    with CANARY.workloads.on_one_core() as core:
        assert os.sched_getaffinity(0) == {core} <= before
    assert os.sched_getaffinity(0) == before


def test_a_walk_meets_every_cache_line_once() -> None:
    buffer = CANARY.workloads.Buffer(1 << 16)
    order = CANARY.workloads.linked(buffer, 7)
    assert sorted(order) == list(range(1 << 10))
    at, met = int(order[0]), []
    for _ in order:
        met.append(at)
        at = (int(buffer.words[at * 8]) - buffer.address) // 64
    assert met == order.tolist()
    assert at == order[0]


def test_a_buffer_that_the_memory_cannot_hold_is_refused_with_the_field_to_lower() -> None:
    with pytest.raises(DashboardError, match=r"Lower \$\.buffer_mib"):
        CANARY.workloads.Buffer(1 << 50)


@pytest.mark.skipif(HERE != "x86_64", reason="AVX2 is of x86-64")
def test_a_processor_without_the_instructions_is_told_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CANARY.canary.hardware, "facts", lambda: {"cpu_flags": ["sse2", "avx2"]})
    with pytest.raises(DashboardError, match="this processor has no fma"):
        CANARY.canary.kernel_of("multiply_add", "avx2")
    assert CANARY.canary.kernel_of("multiply_add", "sse2").needs == ()


def test_a_machine_without_kernels_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    config = trying.config_of(CANARY.canary.Canary, "canary")
    points = CANARY.canary.Canary().points(config)
    assert len(points) == 8
    with pytest.raises(DashboardError, match=r"no kernels for this machine \(riscv64\)"):
        CANARY.canary.Canary().prepare(points[0], config, 0)


def stage(root: Path, name: str, *folders: str) -> dict[str, Any]:
    paths = [root / folder for folder in ("config", *folders)]
    for path in paths:
        path.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    argv = [FOLDER / f"{name}.sh", *paths]
    subprocess.run(argv, cwd=FOLDER, env=environment, check=False, capture_output=True)
    status: dict[str, Any] = json.loads((paths[-1] / "status.json").read_text())
    return status


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One night of the smoke size, through the shell stages."""
    root = tmp_path_factory.mktemp("canary")
    (root / "config").mkdir()
    (root / "config" / "config.json").write_text('{"active": true, "size": "smoke"}')
    for status in (stage(root, "run", "raw"), stage(root, "analyze", "raw", "analysis")):
        assert status["success"], status["message"]
    (root / "data").mkdir()
    (root / "data" / f"data_{stamp_of(0)}.json").write_bytes((root / "analysis" / "data.json").read_bytes())
    return root


@known_machine
def test_a_night_measures_every_workload_and_names_its_code(night: Path) -> None:
    data = records.read_data(night / "data" / f"data_{stamp_of(0)}.json", "canary")
    assert len(data.records) + len(data.failures) == len(VARIANTS) >= 9
    assert all("has no" in failure.error for failure in data.failures)
    assert data.tvm_hash == ""
    for record in data.records:
        info = record.additional_info
        kernel = CANARY.canary.kernel_of(record.workload.partition(".")[2], record.build_config["instructions"])
        assert info["module_hash"] == hashlib.sha256(kernel.code).hexdigest()
        assert info["max_error"] == info["tolerance"] == 0
        assert info["core"] in os.sched_getaffinity(0)
        assert record.execution_elapsed_ms_mean > 0
        assert record.engine == "machine code"
    values = list(data.values())
    assert len({value.key.id for value in values}) == len(values) == len(data.records), "run times are all it has"


@known_machine
def test_a_night_is_drawn_and_told_in_words(night: Path) -> None:
    assert stage(night, "visualize", "data", "graph")["success"]
    assert stage(night, "summarize", "data", "summary")["success"]
    assert (night / "graph" / "memory_chase_all_time.svg").exists()
    words = json.loads((night / "summary" / "summary.json").read_text())["value"]
    for part in ("not TVM", " GHz, at 4 cycles a step", " GB/s read", " ns for a random access", " GFLOP/s with "):
        assert part in words


def a_series(workload: str, values: tuple[float, ...], instructions: str = "base", **arguments: int) -> Series:
    stamps = tuple(stamp_of(night) for night in range(len(values)))
    labels = {
        "workload": f"canary.{workload}",
        "workload_args": arguments,
        "build_config": {"instructions": instructions},
    }
    none = (None,) * len(values)
    return Series(workload, "canary", "run_time", "ms", True, labels, stamps, values, none, none, none)


def test_the_summary_gives_clock_bandwidth_latency_and_what_moved(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = (
        a_series("integer_chain", (1.0, 1.05), steps=1_000_000),
        a_series("memory_read", (10.0, 10.1), bytes=256 << 20, passes=1),
        a_series("memory_copy", (20.0, 20.0), bytes=256 << 20),
        a_series("memory_chase", (5.0, 5.0), bytes=256 << 20, steps=50_000),
        a_series("multiply_add", (1.0, 0.5), "avx2", steps=100_000, lanes=4),
    )
    failures = (Failure("multiply_add, avx2", "this processor has no fma"),)
    monkeypatch.setattr(CANARY.canary, "last_level_cache_bytes", lambda: 32 << 20)
    words = CANARY.canary.summary(History("canary", (), series, (stamp_of(0), stamp_of(1)), failures)).value
    golden.messages("canary", [("clock, bandwidth, latency, and what moved", words)])
    for part in ("3.81 GHz", "26.6 GB/s", "26.8 GB/s", "100 ns", "19.2 GFLOP/s with AVX2", "avx2 −50.0 %"):
        assert part in words


def test_a_buffer_that_a_cache_holds_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CANARY.canary, "last_level_cache_bytes", lambda: 384 << 20)
    series = (a_series("memory_read", (10.0,), bytes=256 << 20, passes=1),)
    words = CANARY.canary.summary(History("canary", (), series, (stamp_of(0),), ())).value
    assert "holds 384 MiB" in words


def home_with_the_canary(tmp_path: Path, night: Path, truth: Truth, *, moved: tuple[str, ...] = ()) -> AlertHome:
    """A home whose canary data are those of the real night, with noise, on every night.

    `moved`: workloads of the canary that `truth.machine` slows down; empty means all of them.
    """
    home = AlertHome(tmp_path).fill(truth)
    real = json.loads((night / "analysis" / "data.json").read_text())
    rng = np.random.default_rng(5)
    for number in range(truth.nights):
        rows = json.loads(json.dumps(real["records"]))
        for row in rows:
            feels = not moved or row["workload"].partition(".")[2] in moved
            factor = float(np.exp(0.006 * rng.standard_normal())) * (truth.machine[number] if feels else 1.0)
            row.update(hw_model="AMD EPYC x 2", env_name="sample")
            row["additional_info"]["execution_elapsed_ms_median"] *= factor
        home.write_data("canary", number, {**real, "records": rows, "tvm_hash": truth.versions[number]})
    home.ingest()
    return home


@known_machine
@pytest.mark.parametrize("moved", [(), ("memory_read", "memory_fill", "memory_copy", "memory_chase")])
def test_what_the_real_canary_saw_as_well_is_the_machines(tmp_path: Path, night: Path, moved: tuple[str, ...]) -> None:
    truth = Truth()
    truth.machine[60:] = 1.05
    home = home_with_the_canary(tmp_path, night, truth, moved=moved)
    home.run(69)
    (incident,) = home.incidents()
    assert (incident["kind"], incident["begin"], incident["blame"]) == ("machine", stamp_of(60), "machine")


@known_machine
def test_what_the_real_canary_did_not_see_is_tvms(tmp_path: Path, night: Path) -> None:
    truth = Truth()
    for workload in truth.workloads:
        for level in (0, 3):
            truth.step(workload, level, "run", 60, 1.05).step(workload, level, "compile", 60, 1.05)
    home = home_with_the_canary(tmp_path, night, truth)
    home.run(69)
    assert {incident["kind"] for incident in home.incidents()} == {"change"}
    moved = [one["name"] for incident in home.incidents() for one in incident["moved"]]
    assert len(moved) == 16
    assert not [name for name in moved if name.startswith("canary")]
