"""The detector on the noise of real nightly series, with steps put in.

    git clone https://github.com/pv/scipy-bench && \
    python3 tests/benchmarks/alerts/real_series.py scipy-bench      # about three minutes

Reads the published graphs (branch gh-pages) of asv's nightly scipy benchmarks. A running median over 31
nights is taken off each series, so that its own changes go; what is left is cut into windows of 160 nights.
Episodes shorter than 15 nights stay in, and count as false alerts although many are real. A pseudo re-run
draws another night of the same series: all noise is taken to be the run's, none the machine's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from evaluate import FIRST, HORIZON, MARGIN, NIGHTS

from tvmdash.judge.history import change_points
from tvmdash.judge.history.series import History, SeriesState

Array = np.ndarray[Any, Any]

HALF = 15
STEPS = (0.02, 0.03, 0.05, 0.10)


def published_series(repository: Path, branch: str, most: int, rng: np.random.Generator) -> list[Array]:
    """Logarithms of up to two series of each of `most` randomly chosen graphs, long and not too coarse."""
    listing = subprocess.run(
        ["git", "-c", "core.quotepath=off", "ls-tree", "-r", "--name-only", branch],
        cwd=repository, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    names = [name for name in listing if name.startswith("graphs/") and name.endswith(".json")]
    rng.shuffle(names)
    found = []
    for name in names[:most]:
        blob = subprocess.run(["git", "show", f"{branch}:{name}"], cwd=repository, capture_output=True, check=False)
        if blob.returncode:
            continue  # a partial clone lacks some files
        rows = [row for row in json.loads(blob.stdout) if isinstance(row, list) and len(row) == 2]
        columns = [row[1] if isinstance(row[1], list) else [row[1]] for row in rows]
        for at in range(min(2, len(columns[0]) if columns else 0)):
            values = np.array([column[at] if at < len(column) else None for column in columns], float)
            values = values[np.isfinite(values) & (values > 0)]
            if len(values) >= NIGHTS + 60 and len(np.unique(values)) > 20:
                found.append(np.log(values))
    return found


def windows(series: list[Array], most: int, rng: np.random.Generator) -> list[Array]:
    """What a running median leaves, in pieces of NIGHTS nights."""
    found = []
    for x in series:
        around = np.lib.stride_tricks.sliding_window_view(np.pad(x, HALF, mode="reflect"), 2 * HALF + 1)
        residual = x - np.median(around, axis=1)
        found += [residual[at : at + NIGHTS] for at in range(0, len(x) - NIGHTS, NIGHTS + 40)]
    rng.shuffle(found)
    return found[:most]


def told(window: Array, step: float, tau: int, seed: int | None) -> tuple[list[tuple[int, int]], int]:
    """Alerts (night, culprit) on the window with a step at `tau`, and re-runs; seed None: history alone."""
    level = np.where(np.arange(len(window)) >= tau, np.log1p(step), 0.0)
    values = np.exp(window + level)
    if seed is None:
        alerts, _ = change_points.change_points(History(values))
        return [(alert.night, alert.cut or 0) for alert in alerts], 0
    rng = np.random.default_rng([9, seed])
    state, found, reruns = SeriesState(), [], 0
    for night in range(20, len(window)):
        decision = change_points.observe(
            History(values[: night + 1]),
            state,
            rerun=lambda build, count: list(np.exp(level[build] + rng.choice(window, count))),
        )
        state, reruns = decision.state, reruns + len(decision.reruns)
        found += [(night, decision.cut or 0)] if decision.kind == "alert" else []
    return found, reruns


def measure(pieces: list[Array], *, with_reruns: bool) -> dict[str, Any]:
    """False alerts, and per cent of steps found within nights."""
    seeds = [at if with_reruns else None for at in range(len(pieces))]
    unchanged = [told(piece, 0.0, NIGHTS, seed) for piece, seed in zip(pieces, seeds, strict=True)]
    false = sum(night >= FIRST for found, _ in unchanged for night, _ in found)
    result: dict[str, Any] = {
        "false_per_1000": round(1000 * false / (len(pieces) * (NIGHTS - FIRST)), 2),
        "reruns_per_1000": round(1000 * sum(reruns for _, reruns in unchanged) / (len(pieces) * (NIGHTS - 20))),
    }
    for step in STEPS:
        delays = []
        for at, (piece, seed) in enumerate(zip(pieces, seeds, strict=True)):
            tau = 65 + at * 7 % 60
            found, _ = told(piece[: tau + HORIZON + 1], step * (-1) ** at, tau, seed)
            delays.append(min((n - tau for n, cut in found if n >= tau and abs(cut - tau) <= MARGIN), default=np.inf))
        late = np.array(delays)
        result[f"{step:g}"] = {f"within_{k}": round(100 * float(np.mean(late <= k)), 1) for k in (0, 2, 3, 7, 30)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--branch", default="gh-pages")
    parser.add_argument("--graphs", type=int, default=900)
    parser.add_argument("--windows", type=int, default=600)
    options = parser.parse_args()
    rng = np.random.default_rng(5)
    pieces = windows(published_series(options.repository, options.branch, options.graphs, rng), options.windows, rng)
    spread = [148.26 * float(np.median(np.abs(piece))) for piece in pieces]
    print(
        f"{len(pieces)} windows, robust sd 5/50/95 %: {np.round(np.percentile(spread, [5, 50, 95]), 2)} %", flush=True
    )
    print("history alone", json.dumps(measure(pieces, with_reruns=False)), flush=True)
    print("pseudo re-runs", json.dumps(measure(pieces[: len(pieces) // 4], with_reruns=True)), flush=True)


if __name__ == "__main__":
    main()
