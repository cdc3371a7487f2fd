"""Whether the numbers of code_metrics are exact: the same TVM, compiled night after night in processes of their own.

    python3 tests/benchmarks/code_metrics.py ARTIFACT COMPILERS NIGHTS [--networks mlp]

ARTIFACT is a folder of an artifact store, COMPILERS where NVIDIA's wheels lie ("" without). Each night is a process
with another PYTHONHASHSEED that takes points in another order. Prints the metric-nights, each difference from the first
night, and what a night costs on each target.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
ONE_NIGHT, PASSES, COST = "--one-night", "passes", "cost"


def numbers_of_night(seed: int, networks: list[str]) -> dict[str, dict[str, Any]]:
    """By point, every exact number, every function's hash, what the passes made, and the cost in CPU s and bytes."""
    sys.path[:0] = [str(REPO / "experiments" / "code_metrics")]
    import measuring
    import targets
    import workloads

    from tvmdash.exp_templates import Point

    every = [
        *workloads.of_networks(networks),
        *workloads.of_operators(["conv2d", "dense", "softmax", "layer_norm", "gelu", "sum"], 1, ["float32", "float16"]),
        *workloads.of_transformer(["attention"], ["prefill", "decode"], [16, 0]),
    ]
    points = [(target, workload) for target in targets.TARGETS for workload in every]
    random.Random(seed).shuffle(points)
    found = {}
    for target, workload in points:
        point = Point(workload.name, {"target": target, **workload.args}, "", "")
        begun = _cpu_seconds()
        made = measuring.measure(point, 0, is_counted=workload.name != "code.conv2d")
        name = f"{target} {workload.name} {json.dumps(workload.args)}"
        hashes = {name: function.hash for name, function in made.functions.items()}
        memory = {} if made.planned_memory_bytes is None else {"planned_memory": made.planned_memory_bytes}
        cost = [target, _cpu_seconds() - begun, sum(len(function.text) for function in made.functions.values())]
        found[name] = {**made.numbers, **memory, "functions": hashes, PASSES: made.trace.steps, COST: cost}
    return found


def _cpu_seconds() -> float:
    """Of this process and its children, callgrind and ptxas among them."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _night(options: argparse.Namespace, seed: int) -> dict[str, dict[str, Any]]:
    path = [f"{options.artifact}/site", f"{options.artifact}/ffi", str(REPO / "shared" / "python"), options.compilers]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "PYTHONHASHSEED": str(seed),
        "TVM_NUM_THREADS": "1",
    }
    argv = [sys.executable, __file__, "", "", str(seed), ONE_NIGHT, "--networks", *options.networks]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    night: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return night


def main() -> int:
    """Compare the nights with the first; 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact")
    parser.add_argument("compilers")
    parser.add_argument("nights", type=int)
    parser.add_argument("--networks", nargs="*", default=["mlp"])
    parser.add_argument(ONE_NIGHT, action="store_true", dest="one_night")
    options = parser.parse_args()
    if options.one_night:
        print(json.dumps(numbers_of_night(options.nights, options.networks)))
        return 0
    first, compared, differences, unstable = _night(options, 0), 0, 0, set[str]()
    for seed in range(1, options.nights):
        for point, numbers in _night(options, seed).items():
            for name, value in numbers.items():
                if name == COST:
                    continue
                compared += not isinstance(value, (dict, list))
                if value != first[point][name] and name == PASSES:
                    unstable.add(point)
                elif value != first[point][name]:
                    differences += 1
                    print(f"night {seed}: {point}: {name}: {first[point][name]} -> {value}"[:2000])
        print(f"night {seed}: {compared} metric-nights, {differences} differences", flush=True)
    print(f"the hashes of passes differed at {len(unstable)} of {len(first)} points: {sorted(unstable)}")
    for target, points in itertools.groupby(sorted(numbers[COST] for numbers in first.values()), lambda cost: cost[0]):
        _, seconds, sizes = zip(*points, strict=True)
        print(f"{target}: {len(seconds)} points, {sum(seconds):.1f} CPU s, {sum(sizes):,} bytes of text")
    return int(differences > 0)


if __name__ == "__main__":
    raise SystemExit(main())
