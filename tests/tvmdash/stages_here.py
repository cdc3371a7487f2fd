"""A stage of an experiment's script done in this process, which is faster than in one of its own.

The processes in which it measures are forked from ones that have imported what experiments import.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.warm import Order, Running, Warm
from tvmdash.exp_templates import Experiment
from tvmdash.experiment import processes
from tvmdash.experiment.paired import partners

SHARED = Path(__file__).resolve().parents[2] / "shared" / "python"
_MODULES = ["tvmdash.exp_templates", "tvmdash.trial_util", "tvmdash.measure.capture"]
_WARM = [Warm(_MODULES, [SHARED]) for _ in range(2)]
"""As many as measure in turn."""
_running: list[Running | None] = [None, None]


def _begin(argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()) -> Running:
    free = next(at for at, running in enumerate(_running) if running is None or running.poll() is not None)
    with tempfile.TemporaryFile() as output:
        running = _WARM[free].begin(Order(argv[1:], env, os.getcwd()), output, passed=pass_fds[0] if pass_fds else None)
    _running[free] = running
    return running


def _run(argv: Sequence[str], *, env: Mapping[str, str], check: bool, timeout: float) -> SimpleNamespace:
    """What subprocess.run does for a measuring process."""
    running = _begin(argv, env)
    try:
        return SimpleNamespace(returncode=running.wait(timeout))
    finally:
        running.kill()
        running.wait()


_SUBPROCESS = SimpleNamespace(run=_run, Popen=_begin, TimeoutExpired=subprocess.TimeoutExpired)


def run_here(script: Path, arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    """Do what `python SCRIPT ARGUMENTS` does in the script's folder with these variables as well; the exit status."""
    name = script.stem
    spec = importlib.util.spec_from_file_location(name, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(script.parent)
        patch.setitem(sys.modules, name, module)
        patch.setattr(processes, "subprocess", _SUBPROCESS)
        patch.setattr(partners, "subprocess", _SUBPROCESS)
        for variable, value in variables.items():
            patch.setenv(variable, value)
        spec.loader.exec_module(module)
        defined = [value for value in vars(module).values() if isinstance(value, type)]
        (own,) = [kind for kind in defined if issubclass(kind, Experiment) and kind.__module__ == name]
        return own().main(arguments)
