"""NVIDIA's driver on a machine without a card: two C libraries with its entry points, for processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ONE = {"count": 1, "milliwatts": 250_000, "energy_step_ms": 20}
"""A card that takes 250 W and counts its energy every 20 ms."""


@dataclass(frozen=True)
class Driver:
    """The libraries lie in `folder`."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of a process whose loader finds them."""
        path = os.pathsep.join([str(self.folder), os.environ.get("LD_LIBRARY_PATH", "")])
        return {**os.environ, "LD_LIBRARY_PATH": path}

    def set(self, **state: int) -> None:
        """What the cards do from now on."""
        lines = {**ONE, **state}
        path = self.folder / "cards.new"
        path.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        path.replace(self.folder / "cards")

    def run(self, script: str, *arguments: str) -> Any:
        """What a Python that sees the driver prints at last, as JSON."""
        argv = [sys.executable, "-W", "error", "-c", script, *arguments]
        done = subprocess.run(argv, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])


def make_driver(folder: Path, **state: int) -> Driver:
    """Compile both libraries."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler to build a stand-in for NVIDIA's driver")
    for source, name in (("nvml.c", "libnvidia-ml.so.1"), ("cuda.c", "libcuda.so.1")):
        argv = ["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-Wl,-soname,{name}"]
        argv += [f'-DCARDS="{folder / "cards"}"']
        subprocess.run([*argv, "-o", str(folder / name), str(HERE / source)], check=True)
    driver = Driver(folder)
    driver.set(**state)
    return driver
