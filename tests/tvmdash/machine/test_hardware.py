"""The machine as facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tvmdash.machine.hardware import read_nvidia_cards, read_state

VERSIONS = {
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Tue Feb 27 20:44:17 UTC 2024\nGCC\n": "535.161.08",
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.126.09  Release Build  (dvs@x)\n": "580.126.09",
}


@pytest.mark.parametrize("text", VERSIONS)
def test_cards_and_their_driver_are_facts_of_the_machine(text: str, tmp_path: Path) -> None:
    assert read_nvidia_cards(tmp_path) == {}
    for place in ("0000:41:00.0", "0000:42:00.0"):
        folder = tmp_path / "driver" / "nvidia" / "gpus" / place
        folder.mkdir(parents=True)
        (folder / "information").write_text("Model: \t\t NVIDIA H200\nIRQ:   \t\t 77\nGPU UUID: \t GPU-1\n")
    (tmp_path / "driver" / "nvidia" / "version").write_text(text)
    assert read_nvidia_cards(tmp_path) == {"gpus": ["NVIDIA H200", "NVIDIA H200"], "gpu_driver": VERSIONS[text]}


CPU = "sys/devices/system/cpu"
GROUP = "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("files", "fact", "expected"),
    [
        ({f"{CPU}/cpu0/cpufreq/scaling_governor": "performance"}, "governor", "performance"),
        ({f"{CPU}/intel_pstate/no_turbo": "1"}, "boost", False),
        ({f"{CPU}/intel_pstate/no_turbo": "0"}, "boost", True),
        ({f"{CPU}/cpufreq/boost": "1"}, "boost", True),
        ({f"{CPU}/cpufreq/boost": "0"}, "boost", False),
        ({f"{CPU}/smt/active": "1"}, "smt", True),
        ({"sys/devices/system/node/online": "0-3"}, "numa_nodes", "0-3"),
        ({"proc/sys/kernel/numa_balancing": "1"}, "numa_balancing", True),
        ({"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never"}, "transparent_hugepages", "madvise"),
        ({"proc/sys/kernel/randomize_va_space": "2"}, "aslr", 2),
        ({"proc/self/cgroup": "0::/a/b", f"{GROUP}/a/cpu.max": "150000 100000"}, "cpu_quota", 1.5),
        ({"proc/self/cgroup": "0::/a/b", f"{GROUP}/a/cpu.max": "max 100000"}, "cpu_quota", None),
        ({"proc/self/cgroup": "0::/", f"{GROUP}/cpu.max": "50000 100000"}, "cpu_quota", 0.5),
        (
            {
                "proc/self/cgroup": "8:pids:/\n4:cpu,cpuacct:/x",
                f"{GROUP}/cpu,cpuacct/x/cpu.cfs_quota_us": "400000",
                f"{GROUP}/cpu,cpuacct/x/cpu.cfs_period_us": "100000",
            },
            "cpu_quota",
            4.0,
        ),
        ({"proc/self/cgroup": "1:cpu:/", f"{GROUP}/cpu/cpu.cfs_quota_us": "-1"}, "cpu_quota", None),
    ],
)
def test_how_the_machine_is_set_up_is_a_fact_and_what_it_does_not_say_is_none(
    files: dict[str, str], fact: str, expected: object, tmp_path: Path
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    said = read_state(tmp_path)
    assert said.pop(fact) == expected
    assert set(map(str, said.values())) == {"None", "{}"}


def test_caches_are_those_of_the_first_core(tmp_path: Path) -> None:
    for index, values in enumerate((("1", "Data", "32K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K"))):
        folder = tmp_path / CPU / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, text in zip(("level", "type", "size"), values, strict=True):
            (folder / name).write_text(f"{text}\n")
    assert read_state(tmp_path)["caches"] == {"L1 Data": "32K", "L1 Instruction": "32K", "L2 Unified": "1024K"}
