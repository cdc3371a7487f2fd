"""An experiment or workload under another name, with its history: IDs of series stay, files of an experiment move."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path

from dashboard.upkeep.indexes import remove_index
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.machine import identity
from tvmdash.machine.identity import Rename, RenameKind
from tvmdash.records import data_stamps

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_RESULTS = ("data", "backfill", "status", "summary", "graph", "telemetry")


def rename(home: Home, change: Rename) -> list[str]:
    """Do it; a line for each thing done. The caller holds the home. DashboardError where it cannot be, and nothing is.

    Patterns of owners, mutes and what is retired stay as they were written.
    """
    kept = home.machine()
    if kept is None:
        raise DashboardError("no night has run yet, so there is nothing to rename.", place=home.root)
    if change.before == change.now:
        raise DashboardError(f"{change.now!r} is already its name.")
    moves = list(_list_moves(home, change)) if change.kind is RenameKind.EXPERIMENT else []
    _refuse_collisions(moves)
    # first what readers go by: killed in between, the rest is done by the same command again
    identity.write(home.machine_file, dataclasses.replace(kept, renames=(*kept.renames, change)))
    lines = [_move(source, target) for source, target in moves]
    remove_index(home)
    return [*lines, f"{change.kind} {change.before} is now called {change.now}; its series keep their IDs."]


def _list_moves(home: Home, change: Rename) -> Iterator[tuple[Path, Path]]:
    """The folders of the experiment, with those of its hosts and TVMs, and where they come to lie."""
    if not _NAME.fullmatch(change.now):
        remedy = "Use up to 100 letters, digits, '-', '_', '.', starting with a letter or digit."
        raise DashboardError(f"{change.now!r:.120} is not a valid experiment name.", remedy=remedy)
    parents = [home.configs("experiment"), *(home.data("x").parent.parent / name for name in _RESULTS)]
    found = [path for parent in parents if parent.is_dir() for path in parent.iterdir() if path.is_dir()]
    moves = [path for path in found if experiment_of(path.name) == change.before]
    if not moves:
        raise DashboardError(f"this home has no experiment {change.before!r:.120}.", place=home.root)
    for path in sorted(moves):
        yield path, path.with_name(change.now + path.name[len(change.before) :])


def _refuse_collisions(moves: list[tuple[Path, Path]]) -> None:
    """DashboardError where both names have data of one night, or a config."""
    for source, target in moves:
        both = set(data_stamps(source)) & set(data_stamps(target))
        if both:
            problem = f"{target} also has data of the night {min(both)}, so these are two different experiments."
            raise DashboardError(
                problem, place=source, remedy="Retire the old one instead: python3 -m dashboard retire"
            )


def _move(source: Path, target: Path) -> str:
    """Move a folder; into one that is there what that lacks."""
    if not target.exists():
        os.rename(source, target)
        return f"{source} -> {target.name}"
    for path in source.iterdir():
        if not os.path.lexists(target / path.name):
            os.rename(path, target / path.name)
    left = list(source.iterdir())
    if not left:
        source.rmdir()
    kept = f"; {len(left)} files stay because the target has its own" if left else ""
    return f"{source} -> into {target.name}{kept}"
