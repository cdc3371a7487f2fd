"""Homes whose nights have every kind of work (shell scripts, the template with its sealing), and what they keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.dashboard import homes
from tests.dashboard.homes import REPO, HomeForTests

EXPERIMENTS = ("shell", "toy")
GRAPHS = 8
_TOY = """
import sys
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer

class Toy(Experiment):
    engines = (Engine("python", facts=lambda: EngineFacts("3", tvm_hash="abc123")),)
    axes = (Axis("size", "workload_args"), Axis("threads", "runtime_config"))

    def points(self, config):
        return [Point("toy.sum", {"size": n, "threads": 1}, group=str(n), target="cpu", engine="python")
                for n in (10, 20)]

    def prepare(self, point, config, seed):
        data = list(range(point.values["size"]))
        return Prepared(timer=python_timer(lambda: sum(data)))

if __name__ == "__main__":
    sys.exit(Toy().main())
"""
_DRAW = f"""
for i in $(seq {GRAPHS}); do
  yes "graph $i of $TVMDASH_NIGHT" | head -n "$((i * i * 40))" > "$3/graph$i.svg"
done
"""


def add_jobs(home: HomeForTests, begun: str, measured: str = "") -> None:
    """Two experiments and a subsystem. begun: a line of shell that each stage begins with, STAGE standing for its name.

    measured: one that each run ends with, once what it measured must not be lost any more.
    """
    shell = {stage: homes.good(stage, begun.replace("STAGE", stage)) for stage in ("setup", *homes.STAGES)}
    shell["visualize"] = homes.good("visualize", begun.replace("STAGE", "visualize") + _DRAW)
    shell["run"] += measured
    folder = home.experiment("shell", config={"rerun_setup": True}, **shell)
    homes.write(folder / "fields.json", {"needs_tvm": False})
    toy = {
        stage: f'{homes.BEGIN}{begun.replace("STAGE", stage)}\npython3 toy.py {stage} "$@"\n'
        for stage in ("run", "analyze")
    }
    toy["run"] += measured
    timing = {"number": 1, "repeat": 3, "processes": 1, "max_processes": 1}
    folder = home.experiment("toy", config=timing, **toy)
    (folder / "toy.py").write_text(_TOY)
    homes.write(folder / "fields.json", {"include": ["timing"], "needs_tvm": False})
    last = homes.good("subsystem", begun.replace("STAGE", "subsystem"))
    home.subsystem("last", run=last, config={"priority": -1})


def add_real(home: HomeForTests, name: str, **config: object) -> None:
    """A subsystem of this repository."""
    home.subsystem(name, config=config)
    folder = home.code / "subsystem" / name
    (folder / "run.sh").unlink()
    folder.rmdir()
    folder.symlink_to(REPO / "subsystem" / name)


def list_half_json(home: HomeForTests) -> Iterator[str]:
    """Files below results that are no whole JSON."""
    results = home.path / "results"
    for path in sorted(results.rglob("*.json")):
        place = path.relative_to(results)
        if any(part.startswith(".") for part in place.parts):
            continue
        try:
            json.loads(path.read_bytes())
        except ValueError:
            yield f"{place} is half: {path.read_bytes()[:40]!r}"


def list_half_graphs(graphs: Path) -> Iterator[str]:
    """What is not as `shell` draws it in one night."""
    lines = set()
    for number in range(1, GRAPHS + 1):
        path = graphs / f"graph{number}.svg"
        drawn = path.read_text().splitlines() if path.exists() else []
        if len(drawn) != number * number * 40:
            yield f"{path.name} has {len(drawn)} lines"
        lines |= set(drawn)
    if len(lines) != GRAPHS:
        yield f"the graphs are of more nights than one: {sorted(lines)}"


def is_alike(left: bytes, right: bytes) -> bool:
    """Whether two data files hold the same numbers; what was saved after a cut says so of itself."""
    values = [json.loads(raw) for raw in (left, right)]
    return all(values[0].get(field) == values[1].get(field) for field in ("records", "value"))
