"""The setup stage: install the experiment's engines, and make the inputs that they share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info.stages import SETUP_RETRY_FILE, read_status
from tvmdash.errors import DashboardError
from tvmdash.experiment import engine_store
from tvmdash.experiment.engines import Engine

INPUTS = "inputs"
"""Verb of the experiment's script that makes the inputs, and the name of their folder."""
STORE_VARIABLE = "TVMDASH_ENGINES"
INSTALL_TIMEOUT_S = 1200.0


def inputs_folder(setup: Path) -> Path:
    return setup / INPUTS


def setup(
    engines: Sequence[Engine], inputs_engine: str, config_dir: Path, script: Path | None, destination: Path
) -> str:
    """Install `engines`, then make the inputs with `script` where there is one; return the status.

    An engine that cannot be installed costs only itself, and the next night tries again. Inputs that cannot be made
    fail the stage.
    """
    store = Path(os.environ.get(STORE_VARIABLE) or destination / "engines")
    places = engine_store.install(engines, store, destination, timeout_s=INSTALL_TIMEOUT_S)
    lacking = [f"{name}: {engine.reason}" for name, engine in places.items() if engine.reason]
    if lacking:
        common.write_text(destination / SETUP_RETRY_FILE, "\n".join(lacking) + "\n")
    if script:
        _make_inputs(places.get(inputs_engine, engine_store.Place()), config_dir, script, destination)
    text = f"{len(places) - len(lacking)} of {len(places)} engines installed" + (", inputs made" if script else "")
    return "; ".join([text, *lacking])


def _make_inputs(engine: engine_store.Place, config_dir: Path, script: Path, destination: Path) -> None:
    if engine.reason:
        raise DashboardError(f"the inputs need an engine that is not installed: {engine.reason}")
    folder = inputs_folder(destination)
    folder.mkdir(exist_ok=True)
    path = [*filter(None, [engine.path, os.environ.get("PYTHONPATH", "")])]
    argv = [sys.executable, str(script), INPUTS, str(config_dir), str(folder)]
    done = subprocess.run(argv, env={**os.environ, "PYTHONPATH": os.pathsep.join(path)}, check=False)
    status = read_status(folder)
    if done.returncode or not status.success:
        raise DashboardError(f"creating the inputs failed: {status.message}")
