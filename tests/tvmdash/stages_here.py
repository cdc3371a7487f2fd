"""A stage of an experiment's script done in this process, which is faster than in one of its own.

The processes in which it measures are forked from ones that have imported what experiments import.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.warm import WarmPrograms
from tvmdash.exp_templates import Experiment
from tvmdash.experiment import processes
from tvmdash.experiment.paired import partners

SHARED = Path(__file__).resolve().parents[2] / "shared" / "python"
_MODULES = ["tvmdash.exp_templates", "tvmdash.trial_util", "tvmdash.measure.capture", "jsonschema_rs"]
_WARM = WarmPrograms(2, _MODULES, [SHARED])
"""As many as measure in turn."""


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
        patch.setattr(processes, "subprocess", _WARM)
        patch.setattr(partners, "subprocess", _WARM)
        for variable, value in variables.items():
            patch.setenv(variable, value)
        spec.loader.exec_module(module)
        defined = [value for value in vars(module).values() if isinstance(value, type)]
        (own,) = [kind for kind in defined if issubclass(kind, Experiment) and kind.__module__ == name]
        return own().main(arguments)
