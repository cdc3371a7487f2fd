"""The machine as facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tvmdash.machine.hardware import read_nvidia_cards

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
