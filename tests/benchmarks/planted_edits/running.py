"""Edits planted in TVM's passes: does code_metrics name the right function first, and the right pass?

    python3 tests/benchmarks/planted_edits ARTIFACT [--held-out]        # about 4 minutes on two cores

ARTIFACT is a folder of an artifact store. Each edit is made in a process of its own: an edit of TVM's Python, or a pass
that does something else. The function that is edited and the pass are known, and are held against what `comparing` says
of the two builds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.planted_edits import held_out, known
from tests.benchmarks.planted_edits.planting import Edit, Source, overlay

REPO = Path(__file__).resolve().parents[3]
SETS = {"known": known.EDITS, "held_out": held_out.EDITS}


Said = dict[str, Any]
"""hashes: of the code of each function; functions, number: what is said to have changed; why_not: why not."""


def build(edit: Edit, *, is_edited: bool) -> Said:
    """Keep what a build makes, and say how it differs from the build before it."""
    sys.path[:0] = [str(REPO / "experiments" / "code_metrics")]
    import comparing
    import keeping
    import measuring

    from tvmdash.exp_templates import Point

    if is_edited and not isinstance(edit.plant, Source):
        edit.plant()
    keep = keeping.Keep.of_environment()
    assert keep is not None
    keep.begin()
    point = Point(edit.workload, edit.values, "", "planted")
    made = measuring.measure(point, 0, is_counted=False)
    said: Said = comparing.describe_others(keep, point, keep.write(point, made), [], 0).get("changed", {})
    return {"hashes": {name: function.hash for name, function in made.functions.items()}, "changed": said}


def _run(artifact: Path, folder: Path, which: str, number: int, *, is_edited: bool) -> Said:
    plant, site = SETS[which][number].plant, artifact / "site"
    if is_edited and isinstance(plant, Source):
        site = overlay(site, plant, folder / "site")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (site, artifact / "ffi", REPO / "shared" / "python"))),
        "TVMDASH_CODE": str(folder / "code"),
        "TVMDASH_ARTIFACT": "edited" if is_edited else "stock",
        "TVM_NUM_THREADS": "1",
    }
    argv = [
        sys.executable,
        str(Path(__file__).parent),
        str(artifact),
        "--build",
        json.dumps([which, number, is_edited]),
    ]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{which} {number}: {done.stderr[-3000:]}")
    said: Said = json.loads(done.stdout.splitlines()[-1])
    return said


def _try(artifact: Path, which: str, number: int) -> tuple[bool, bool]:
    """Whether the function that is named first is right, and its pass."""
    edit = SETS[which][number]
    with tempfile.TemporaryDirectory() as folder:
        before = _run(artifact, Path(folder), which, number, is_edited=False)["hashes"]
        after = _run(artifact, Path(folder), which, number, is_edited=True)
    others = sum(before.get(name) != after["hashes"].get(name) for name in {*before, *after["hashes"]})
    first = next(iter(after["changed"].get("functions", [])), {})
    is_function = bool(first) and bool(re.search(edit.function, first["name"]))
    is_pass = first.get("first_pass", "") == edit.name
    words = f"said {first.get('name')} by {first.get('first_pass', first.get('why_not'))}, of {others} others"
    score = f"{'function' if is_function else '-'} {'pass' if is_pass else '-'}"
    print(f"{number}: {score}: {edit.function} by {edit.name} on {edit.values['target']}: {words}", flush=True)
    return is_function, is_pass


def main() -> int:
    """Plant each edit; 1 where fewer than 19 functions or 15 passes are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--held-out", action="store_const", const="held_out", default="known", dest="which")
    parser.add_argument("--build", default="")
    parser.add_argument("--only", type=int, nargs="*")
    options = parser.parse_args()
    if options.build:
        which, number, is_edited = json.loads(options.build)
        print(json.dumps(build(SETS[which][number], is_edited=is_edited)))
        return 0
    numbers = range(len(SETS[options.which])) if options.only is None else options.only
    right = [_try(options.artifact, options.which, number) for number in numbers]
    functions, passes = (sum(column) for column in zip(*right, strict=True))
    print(f"{functions} functions and {passes} passes right of {len(right)}")
    return int(functions < 19 or passes < 15)
