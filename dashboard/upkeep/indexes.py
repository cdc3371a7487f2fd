"""The indexes of a home: what is made of its files and can be made again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tvmdash.common.files import broken
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.records import data_stamps

_DERIVED = ("stat_alerts/state.json", "score/scores.json")
"""Outputs of subsystems that their next run makes anew from the data files."""


def remove_index(home: Home) -> None:
    """Remove the index of series: the next that writes it makes it anew. A folder in its place is kept beside."""
    # SQLite keeps a log and its shared memory beside the file.
    for suffix in ("", "-wal", "-shm"):
        path = Path(f"{home.store_file}{suffix}")
        if path.is_dir() and not path.is_symlink():
            broken.set_aside(path)
        else:
            path.unlink(missing_ok=True)


def update_index(home: Home) -> None:
    """Bring the home's index up to date with all that the home holds; DashboardError where it cannot be written."""
    import sqlite3

    from tvmdash import store

    try:
        if stamps := home.night_stamps():
            store.keep_messages(home, stamps[-1])
        store.update(home)
    except (sqlite3.Error, OSError) as error:
        problem = f"could not be brought up to date: {error}. The home's files are intact; the next night tries again."
        raise DashboardError(problem, place=home.store_file) from error


def list_indexed(home: Home, experiment: str) -> frozenset[str]:
    """List the nights of the experiment in the index; none where it is missing or cannot be read."""
    import sqlite3  # `plan` starts without it

    from tvmdash.series import store

    try:
        opened = store.read_only(home.store_file) if home.store_file.is_file() else None
        with opened or store.in_memory() as known:
            return frozenset((*known.stamps(experiment), *known.faults(experiment)))
    except sqlite3.Error:
        return frozenset()


def find_differences(home: Home) -> Iterator[str]:
    """Yield a sentence for each experiment whose files and index differ."""
    for experiment in home.experiments_with_data():
        files, indexed = frozenset(data_stamps(home.data(experiment))), list_indexed(home, experiment)
        if files - indexed:
            yield f"{experiment}: {len(files - indexed)} of {len(files)} nights are missing"
        if indexed - files:
            yield f"{experiment}: {len(indexed - files)} nights are listed but have no files"


def rebuild(home: Home) -> list[str]:
    """Make every index anew; a line for each thing done. The caller holds the home."""
    import sqlite3

    from tvmdash import store as whole_store
    from tvmdash.series import store

    remove_index(home)
    lines = []
    try:
        with store.open_for_writing(home.store_file) as opened:
            whole_store.fill(home, opened)
            for experiment in home.experiments_with_data():
                faults = opened.faults(experiment)
                count = len(opened.stamps(experiment)) + len(faults)
                bad = f", {len(faults)} of them unreadable" if faults else ""
                lines.append(f"{experiment}: {count} nights{bad}, {opened.size(experiment)} series.")
    except sqlite3.Error as error:
        raise DashboardError(f"could not be written: {error}", place=home.store_file) from error
    return [*lines, *remove_derived(home)]


def remove_derived(home: Home) -> list[str]:
    """Remove what subsystems remember of the series: their next run judges all nights again; a line for each file."""
    lines = []
    for name in _DERIVED:
        path = home.root / "results" / "subsystem" / "output" / name
        if path.is_file():
            path.unlink()
            lines.append(f"{path.relative_to(home.root)}: removed; the next night rebuilds it.")
    return lines
