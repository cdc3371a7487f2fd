"""The setup stage: engines installed, each once for all experiments of a home, and the inputs that points share.

An installed engine is a folder of the store that its requirements name. A setup's engines.json says where each of its
engines lies, or why it does not. What no setup names any more is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.common.files import lock, sync, trees
from tvmdash.dashboard_info.stages import SETUP_RETRY_FILE, read_status
from tvmdash.errors import DashboardError
from tvmdash.experiment.engines import Engine
from tvmdash.text import elide

ENGINES_FILE = "engines.json"
_COMPLETE = ".complete"
_LONGEST = 200


@dataclass(frozen=True)
class Place:
    """Folder of an installed engine, or the `reason` why there is none."""

    path: str = ""
    reason: str = ""


def install(engines: Sequence[Engine], store: Path, destination: Path, *, timeout_s: float) -> dict[str, Place]:
    """Install missing engines and write `destination`/engines.json. An engine that fails costs only itself."""
    store.mkdir(parents=True, exist_ok=True)
    with lock.wait_for(store / ".lock"):
        places = {engine.name: _place(engine, store, timeout_s) for engine in engines if engine.requirements}
        value = {name: {"path": package.path, "reason": package.reason} for name, package in places.items()}
        common.write_json(destination / ENGINES_FILE, value)
        _prune(store, destination)
    return places


def find(setup: Path, engine: Engine) -> Place:
    """Return the place of the engine by the setup in `setup`."""
    if not engine.requirements:
        return Place()
    file = setup / ENGINES_FILE
    if not file.exists():
        return Place(reason="it was never installed; the experiment has no setup.sh, or setup has not run yet")
    item: Mapping[str, str] = common.read_json(file).get(
        engine.name, {"path": "", "reason": "setup did not install it, as no point runs on it; name it in `packages`"}
    )
    if item["path"] and not (Path(item["path"]) / _COMPLETE).exists():
        return Place(reason=f"{item['path']} no longer exists. Set rerun_setup for one night.")
    return Place(item["path"], item["reason"])


def _place(engine: Engine, store: Path, timeout_s: float) -> Place:
    others = [engine.otherwise] if engine.otherwise else []
    named = [(item.requirements, item.pip_options) for item in others]
    stamps = _list_stamps(engine)
    asked = json.dumps([engine.requirements, engine.pip_options, sys.version_info[:2], stamps, *named])
    folder = store / f"{engine.name}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"
    if (folder / _COMPLETE).exists():
        return Place(str(folder))
    trees.remove(folder)
    reasons = []
    for item in (engine, *others):
        try:
            _run_pip(item, folder, timeout_s)
            break
        except DashboardError as error:
            trees.remove(folder)
            reasons.append(str(error))
    else:
        return Place(reason="; otherwise: ".join(reasons))
    # before the mark, which must not survive a power cut without the packages
    sync.sync_tree(folder)
    common.write_text(folder / _COMPLETE, "")
    return Place(str(folder))


def _list_stamps(engine: Engine) -> list[int]:
    """Return the times of change of the wheels among the requirements: a rebuilt one is installed anew."""
    return [os.stat(text).st_mtime_ns for text in engine.requirements if text.endswith(".whl") and os.path.exists(text)]


def _run_pip(engine: Engine, folder: Path, timeout_s: float) -> None:
    argv = [sys.executable, "-m", "pip", "install", "--no-deps", "--only-binary", ":all:", "--target", str(folder)]
    argv += ["--no-input", "--disable-pip-version-check", "--quiet", *engine.pip_options, *engine.requirements]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(argv, env=environment, timeout=timeout_s, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        raise DashboardError(f"pip timed out after {timeout_s:g} s") from None
    sys.stderr.write(done.stderr)  # the stage's log keeps all of it
    if done.returncode:
        raise DashboardError(f"pip install failed: {_find_error(done.stderr) or f'exit code {done.returncode}'}")


def _find_error(transcript: str) -> str:
    """Return the line in which pip says why it failed."""
    lines = [line.strip() for line in transcript.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return elide([*lines, *errors][-1], _LONGEST) if lines else ""


def _prune(store: Path, destination: Path) -> None:
    """Remove engines that neither `destination` nor another setup beside the store names."""
    named: set[str] = set()
    for file in (destination / ENGINES_FILE, *store.parent.glob(f"*/*/{ENGINES_FILE}")):
        with contextlib.suppress(DashboardError):  # a setup under way, or half removed
            named |= {item["path"] for item in common.read_json(file).values()}
    for folder in store.iterdir():
        if folder.is_dir() and str(folder) not in named:
            trees.remove(folder)


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
    places = install(engines, store, destination, timeout_s=INSTALL_TIMEOUT_S)
    lacking = [f"{name}: {engine.reason}" for name, engine in places.items() if engine.reason]
    if lacking:
        common.write_text(destination / SETUP_RETRY_FILE, "\n".join(lacking) + "\n")
    if script:
        _make_inputs(places.get(inputs_engine, Place()), config_dir, script, destination)
    text = f"{len(places) - len(lacking)} of {len(places)} engines installed" + (", inputs made" if script else "")
    return "; ".join([text, *lacking])


def _make_inputs(engine: Place, config_dir: Path, script: Path, destination: Path) -> None:
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
