"""The run time of a C function, by the size of its input and by what the compiler is told."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvmdash.exp_templates import Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.networks import accuracy
from tvmdash.trial_util import python_timer

COMPILER = os.environ.get("CC", "cc")


def facts() -> EngineFacts:
    """The compiler's version."""
    said = subprocess.run([COMPILER, "--version"], check=True, capture_output=True, text=True).stdout
    return EngineFacts(version=said.partition("\n")[0])


class Example(Experiment):
    """Every size with every choice of flags."""

    engines = (Engine("c", facts=facts),)

    def prepare(self, point: Point, config: Mapping[str, Any], seed: int) -> Prepared:
        begun = time.perf_counter_ns()
        function = self._compile(point.values["flags"].split())
        compile_ms = (time.perf_counter_ns() - begun) / 1e6
        values = np.random.default_rng(seed).random(point.values["size"])
        start, count = values.ctypes.data, values.size
        return Prepared(
            timer=python_timer(lambda: function(start, count)),
            check=lambda: accuracy.check_answer(np.array(function(start, count)), np.array(values.sum()), "float32"),
            compile_ms=compile_ms,
        )

    def _compile(self, flags: list[str]) -> Any:
        """The function, compiled with these flags and loaded."""
        with tempfile.TemporaryDirectory() as folder:
            source, library = self.folder / "example.c", Path(folder) / "compiled.so"
            subprocess.run([COMPILER, *flags, "-shared", "-fPIC", "-o", library, source], check=True)
            function = ctypes.CDLL(str(library)).example
        function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_size_t), ctypes.c_double
        return function


if __name__ == "__main__":
    raise SystemExit(Example().main())
