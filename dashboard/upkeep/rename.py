"""An experiment or workload under another name, with its history: IDs of series stay, files of an experiment move."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dashboard.upkeep.indexes import remove_derived, remove_index
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.machine import identity
from tvmdash.machine.identity import Rename, RenameKind
from tvmdash.records import data_stamps

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_RETIRE = "Retire the old one instead: python3 -m dashboard retire"
_RESULTS = ("data", "backfill", "status", "summary", "graph", "telemetry")


def rename(home: Home, change: Rename) -> list[str]:
    """Rename and return a line for each thing done. The caller holds the home. DashboardError: nothing was changed.

    Patterns of owners, mutes and what is retired stay as they were written.
    """
    kept = home.machine()
    if kept is None:
        problem = "no night has run in this home yet, and it keeps names from its first night on."
        raise DashboardError(problem, place=home.root, remedy="Run a night, then rename.")
    if change.before == change.now:
        raise DashboardError(f"{change.now!r} is already its name.")
    if change.kind is RenameKind.EXPERIMENT:
        # All of them are found before one is made: a refusal changes nothing.
        moves = list(_list_moves(home, change))
        _refuse_collisions(moves)
        joins = any(data_stamps(target) for _, target in moves)
    else:
        moves, joins = [], _check_workload(home, change)
    # first what readers go by: killed in between, the rest is done by the same command again
    identity.write(home.machine_file, dataclasses.replace(kept, renames=(*kept.renames, change)))
    lines = [_move(source, target) for source, target in moves]
    remove_index(home)
    if joins:  # two histories have become one, of which no night has judged anything
        lines += remove_derived(home)
    return [*lines, f"{change.kind} {change.before} is now called {change.now}; its series keep their IDs."]


def _list_moves(home: Home, change: Rename) -> Iterator[tuple[Path, Path]]:
    """Yield the experiment's folders, with those of its hosts and TVMs, and their new places."""
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
    """Raise DashboardError where both names have data of one night, or a config."""
    for source, target in moves:
        both = set(data_stamps(source)) & set(data_stamps(target))
        if both:
            problem = f"{target} also has data of the night {min(both)}, so these are two different experiments."
            raise DashboardError(problem, place=source, remedy=f"{_RETIRE} HOME {source.name} WHY")


def _check_workload(home: Home, change: Rename) -> bool:
    """Return True where the new name was measured as well.

    DashboardError where the old name never was measured, or both were in one night.
    """
    from tvmdash.series import store  # `plan` starts without it

    names: set[str] = set()
    nights: dict[tuple[str, ...], tuple[str, set[str]]] = {}
    with store.open_for_writing(home.store_file) as index:
        for experiment in home.experiments_with_data():
            index.ingest(home.data(experiment), experiment)
            for each in index.outlines(experiment):
                workload, rest = _split_workload(each.labels)
                names.add(workload)
                if workload not in {change.before, change.now}:
                    continue
                stamps = set(index.points_of(each).stamps)
                other, others = nights.setdefault((experiment, each.metric, each.unit, rest), (workload, stamps))
                if other != workload and stamps & others:
                    both = f"{experiment} measured both names in the night {min(stamps & others)}"
                    remedy = f'{_RETIRE} HOME "*{change.before}*" WHY'
                    raise DashboardError(f"{both}, so these are two workloads.", place=home.root, remedy=remedy)
    if change.before not in names:
        near = difflib.get_close_matches(change.before, names, n=1, cutoff=0.5)
        remedy = (
            f"Did you mean {near[0]!r}?" if near else f"Its workloads: {', '.join(sorted(names - {''})) or 'none'}."
        )
        raise DashboardError(f"this home has no workload {change.before!r:.120}.", place=home.root, remedy=remedy)
    return change.now in names


def _split_workload(labels: Mapping[str, Any]) -> tuple[str, str]:
    """Split off the workload (empty where there is none); return the other labels as one text."""
    rest = {name: item for name, item in labels.items() if name != identity.WORKLOAD}
    return str(labels.get(identity.WORKLOAD) or ""), json.dumps(rest, sort_keys=True, default=str)


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
