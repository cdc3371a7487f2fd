"""One point on the TVM of this process: generated, counted, and kept for comparisons with other builds.

As a script it does so for the points that are named on its standard input, as JSON: the side of the reference.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import code_workloads
import counting
import cuda
from generated import Generated, generate
from keeping import Keep
from targets import TARGETS

from tvmdash.exp_templates import Point
from tvmdash.experiment import engine_store
from tvmdash.networks.ops import Array

PROCESSOR_INSTRUCTIONS = "processor_instructions"
COUNTED_TARGET = "x86_64"
"""The one whose code is executed."""


def measure(point: Point, seed: int, *, is_counted: bool) -> Generated:
    """The point's code on this process's TVM; is_counted: with the instructions that it executes."""
    target = str(point.values["target"])
    _see_cuda_compilers(target)
    args = {name: value for name, value in point.values.items() if name != "target"}
    module, inputs = code_workloads.find(point.workload, args).make(seed)
    generated = generate(module, target)
    return _count(generated, inputs) if is_counted and target == COUNTED_TARGET else generated


def _count(generated: Generated, inputs: Sequence[Array]) -> Generated:
    """With the instructions that each function executes in one call of `main`, or why they were not counted."""
    try:
        found = counting.count(generated.executable, inputs)
    except counting.NotCountedError as error:
        return replace(generated, missing={**generated.missing, counting.INSTRUCTIONS: str(error)})
    if found.by_processor is None:
        generated = replace(generated, missing={**generated.missing, PROCESSOR_INSTRUCTIONS: found.why_not})
    else:
        generated = replace(generated, facts={**generated.facts, PROCESSOR_INSTRUCTIONS: found.by_processor})
    return generated.counted(counting.INSTRUCTIONS, found.instructions)


def _see_cuda_compilers(target: str) -> None:
    """Let this process find NVIDIA's compilers where setup installed them; without them registers are missing."""
    if TARGETS[target]["kind"] != "cuda":
        return
    engine = engine_store.find(Path(__file__).parent / "setup", cuda.COMPILERS)
    if not engine.reason and engine.path not in sys.path:
        sys.path.append(engine.path)


def main() -> int:
    """Measure and keep what is asked for; a point that fails is left out, as it would be on a night of its own."""
    keep = Keep.of_environment()
    if keep is None:
        return 2
    asked = json.load(sys.stdin)
    for wanted in asked["points"]:
        point = Point(wanted["workload"], wanted["values"], "", wanted["target"])
        try:
            keep.write(point, measure(point, asked["seed"], is_counted=wanted["is_counted"]))
        except Exception as error:  # noqa: BLE001 - what one TVM cannot compile, the other may
            sys.stderr.write(f"{point.workload} {dict(point.values)}: {error}\n"[:500])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
