"""What an import of asv results writes and costs: `python3 tests/benchmarks/importing.py [MEGABYTES]`.

Results as `asv run` leaves them, of one machine: half of the benchmarks with eight combinations of parameters, a few of
memory. Printed are the bytes written for each byte read, and the CPU seconds of the import and of the same again.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
_DAY_MS = 86_400_000
_COLUMNS = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25",
    "stats_q_75", "stats_number", "stats_repeat",
)  # fmt: skip


def make_results(folder: Path, size_bytes: int, *, benchmarks: int = 300) -> int:
    """Fill a results folder with files of about that size in all; how many bytes there are."""
    chance, total, day = random.Random(0), 0, 0
    (folder / "box").mkdir(parents=True)
    while total < size_bytes:
        commit = hashlib.sha1(str(day).encode(), usedforsecurity=False).hexdigest()
        text = json.dumps(
            _make_file(commit, 1_600_000_000_000 + day * _DAY_MS, benchmarks, chance), separators=(",", ":")
        )
        (folder / "box" / f"{commit[:8]}-virtualenv-py3.12.json").write_text(text)
        total, day = total + len(text), day + 1
    return total


def _make_file(commit: str, date: int, benchmarks: int, chance: random.Random) -> dict[str, Any]:
    results = {}
    for number in range(benchmarks):
        kind = "mem" if number % 10 == 0 else "time"
        params = [["'NCHW'", "'NHWC'"], ["1", "2", "4", "8"]] if number % 2 else []
        level = 1e-3 * (1 + number % 7)
        values = [level * chance.gauss(1, 0.01) for _ in range(8 if params else 1)]
        if kind == "mem":
            results[f"suite.{kind}_{number}"] = [[round(value * 1e6) for value in values], params, _version(number)]
            continue
        stats = [[float(f"{value * share:.5g}") for value in values] for share in (0.99, 1.01, 0.995, 1.005)]
        counts = [[11] * len(values), [10] * len(values)]
        row = [values, params, _version(number), date + number, round(chance.uniform(1, 9), 3), *stats, *counts]
        results[f"suite.{kind}_{number}"] = row
    machine = {"arch": "x86_64", "cpu": "EPYC", "machine": "box", "num_cpu": "8", "os": "Linux", "ram": "64G"}
    return {
        "commit_hash": commit, "env_name": "virtualenv-py3.12", "date": date, "params": {**machine, "python": "3.12"},
        "python": "3.12", "requirements": {"numpy": ""}, "env_vars": {}, "result_columns": list(_COLUMNS),
        "results": results, "durations": {"<build>": 30.5}, "version": 2,
    }  # fmt: skip


def _version(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def run_import(home: Path, source: Path) -> tuple[float, str]:
    """The CPU seconds of one import as a command, and its last line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "dashboard", "import", str(home), str(source)]
    path = {"PYTHONPATH": f"{REPOSITORY}/shared/python:{REPOSITORY}"}
    done = subprocess.run(
        command, cwd=REPOSITORY, env={**os.environ, **path}, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout.splitlines()[-1]


def main() -> None:
    """Measure and print."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 100.0
    with tempfile.TemporaryDirectory() as scratch:
        home, source = Path(scratch, "home"), Path(scratch, "results")
        (home / "config").mkdir(parents=True)
        read = make_results(source, round(megabytes * 1e6))
        for turn in ("first", "again"):
            cpu_s, text = run_import(home, source)
            written = sum(path.stat().st_size for path in (home / "results").rglob("*") if path.is_file())
            print(f"{turn}: {cpu_s:.1f} CPU s; {read / 1e6:.1f} MB read, {written / 1e6:.1f} MB written; {text}")


if __name__ == "__main__":
    main()
