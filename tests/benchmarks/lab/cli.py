"""Play situations and print what they come to."""

from __future__ import annotations

import argparse
import fnmatch
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.benchmarks.lab import held_out, situations
from tests.benchmarks.lab.figures import Figures, add, figures_of
from tests.benchmarks.lab.home import LabHome
from tests.benchmarks.lab.noise import FAMILIES
from tests.benchmarks.lab.scoring import Result, score
from tests.benchmarks.lab.situations import Situation
from tests.benchmarks.lab.table import format_faults, format_tables
from tests.benchmarks.lab.world import Draw


def play(situation: Situation, draw: Draw) -> Result:
    """One world, from its first night to its last."""
    case = situation.make(draw)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        home = LabHome(Path(folder), case.world)
        home.play()
        return score(case, home)


def _play_named(name: str, seed: int, *, unseen: bool, paired: bool, release: bool) -> tuple[str, int, Result]:
    families = held_out.FAMILIES if unseen else FAMILIES
    return name, seed, play(_all()[name], Draw(seed, families, paired, name, release))


def _all() -> Mapping[str, Situation]:
    return {**situations.ALL, **held_out.SITUATIONS}


def _jobs(options: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """By situation and seed; the held-out part has seeds of its own, and all situations."""
    known = _all() if options.held_out else situations.ALL
    first = options.first_seed + (held_out.FIRST_SEED if options.held_out else 0)
    for name in known:
        if any(fnmatch.fnmatch(name, pattern) for pattern in options.situations.split(",")):
            yield from ((name, seed) for seed in range(first, first + options.seeds))


def run(options: argparse.Namespace) -> int:
    """Play all that is asked for; the tables, and the figures as JSON where a file is named."""
    known: dict[str, Figures] = {}
    begun = time.process_time()
    for name, seed, result in _played(list(_jobs(options)), options):
        known[name] = known.get(name, Figures()) + figures_of(result)
        if options.json:  # after each world, so that a run that is ended leaves what it has
            options.json.write_text(json.dumps(_to_json(known, options), indent=1) + "\n", encoding="utf-8")
        if options.verbose:
            print(f"{name} {seed}: {'held' if result.is_held else 'not held'}", flush=True)
            print("\n".join(format_faults(name, seed, result)), flush=True)
    if not known:
        print(f"no situation is called {options.situations}; `list` names them")
        return 1
    print("\n".join(format_tables(known)))
    nights = add(known.values()).nights
    print(f"\n{nights} nights in {time.process_time() - begun:.0f} s of CPU time, without that of --jobs")
    return 0


def _played(jobs: Sequence[tuple[str, int]], options: argparse.Namespace) -> Iterator[tuple[str, int, Result]]:
    how: dict[str, Any] = {"unseen": options.held_out, "paired": not options.alone, "release": options.release}
    if options.jobs == 1:
        yield from (_play_named(name, seed, **how) for name, seed in jobs)
        return
    with ProcessPoolExecutor(options.jobs) as pool:
        asked = [pool.submit(_play_named, name, seed, **how) for name, seed in jobs]
        yield from (job.result() for job in asked)


def _to_json(known: Mapping[str, Figures], options: argparse.Namespace) -> dict[str, Any]:
    return {
        "held_out": options.held_out,
        "paired": not options.alone,
        "release": options.release,
        "seeds": [options.first_seed, options.seeds],
        "situations": {name: figures.to_json() for name, figures in known.items()},
    }


def table(options: argparse.Namespace) -> int:
    """Print the tables of one or more runs that left their figures as JSON, added up."""
    known: dict[str, Figures] = {}
    for path in options.files:
        for name, value in json.loads(path.read_text(encoding="utf-8"))["situations"].items():
            known[name] = known.get(name, Figures()) + Figures.from_json(value)
    print("\n".join(format_tables(known)))
    return 0


def show(options: argparse.Namespace) -> int:
    """The situations by name."""
    for name, situation in _all().items():
        print(f"{name:34} {situation.words}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 tests/benchmarks/lab", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    _add_verb(verbs, "list", show)
    _add_verb(verbs, "table", table).add_argument("files", type=Path, nargs="+")
    verb = _add_verb(verbs, "run", run)
    verb.add_argument("--situations", default="*", help="names with * and ?, separated by commas")
    verb.add_argument("--seeds", type=int, default=1, help="worlds of each situation")
    verb.add_argument("--first-seed", type=int, default=1)
    verb.add_argument("--held-out", action="store_true", help="seeds, noise and situations that nothing was tuned on")
    verb.add_argument("--alone", action="store_true", help="nothing is measured beside a reference")
    verb.add_argument("--release", action="store_true", help="the reference is one release for good")
    verb.add_argument("--jobs", type=int, default=1)
    verb.add_argument("--json", type=Path)
    verb.add_argument("--verbose", action="store_true", help="name each fault")
    options = parser.parse_args(arguments)
    action: Callable[[argparse.Namespace], int] = options.action
    return action(options)


def _add_verb(verbs: Any, name: str, action: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, description=action.__doc__, help=action.__doc__)
    verb.set_defaults(action=action)
    return verb
