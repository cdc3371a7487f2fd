"""Measure the change detector, and the detectors it is compared with, on series whose truth is known.

    python3 tests/benchmarks/alerts/evaluate.py                        # about 8 minutes on one core
    python3 tests/benchmarks/alerts/evaluate.py --quick                # one minute
    python3 tests/benchmarks/alerts/evaluate.py --generator EVAL/gen.py
    python3 tests/benchmarks/alerts/evaluate.py --suite speed

Suites: series (false alerts, steps found, delay, culprit), fleet (many series of one machine), speed. An
alert is right when it comes 0 to 30 nights after the step with a culprit within 5 nights of it; all other
alerts from night 30 on are false. Results are written as JSON to --out.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "shared" / "python"), str(HERE)]

import anchors  # noqa: E402
import generator as own_generator  # noqa: E402

from tvmdash.judge.history import change_points  # noqa: E402
from tvmdash.judge.history.fleet import fleet as change_fleet  # noqa: E402 - from the repository
from tvmdash.judge.history.series import History, SeriesState, Settings  # noqa: E402

FIRST, MARGIN, HORIZON, NIGHTS = 30, 5, 30, 160
OURS = ("tvmdash", "tvmdash-without-reruns")


@dataclass
class Tally:
    """What one detector did on one kind of noise."""

    false: int = 0
    nights: int = 0
    reruns: int = 0
    delays: dict[float, list[float]] = field(default_factory=lambda: collections.defaultdict(list))
    misplaced: list[int] = field(default_factory=list)


def nightly(detector: str, series: Any, last: int) -> tuple[list[tuple[int, int]], int]:
    """Every (night, culprit) alerted on nights 20..last, and the number of re-runs."""
    if detector in anchors.ANCHORS:
        return _anchor(anchors.ANCHORS[detector], series.values, last), 0
    state, told, reruns = SeriesState(), [], 0
    for night in range(20, last + 1):
        stop = night + 1
        history = History(series.values[:stop], series.std[:stop], series.n[:stop])
        measure = None
        if detector == "tvmdash":
            measure = lambda build, count, night=night: series.rerun(night, build, count)  # noqa: E731
        decision = change_points.observe(history, state, rerun=measure)
        state, reruns = decision.state, reruns + len(decision.reruns)
        if decision.kind == "alert" and decision.cut is not None:
            told.append((night, decision.cut))
    return told, reruns


def _anchor(anchor: anchors.Anchor, values: np.ndarray, last: int) -> list[tuple[int, int]]:
    told: list[tuple[int, int]] = []
    for night in range(20, last + 1):
        culprit = anchor(values[: night + 1])
        again = told and anchor is anchors.perfherder and abs(culprit or 0) - told[-1][1] <= anchors.QUIET_NIGHTS
        if culprit is not None and not again:
            told.append((night, culprit))
    return told


def series_suite(detector: str, module: Any, kinds: tuple[str, ...], options: argparse.Namespace) -> dict[str, Any]:
    """False alerts on unchanged series and the fate of steps, by kind of noise."""
    tallies = {kind: Tally() for kind in kinds}
    for seed in options.seeds:
        for index, kind in enumerate(kinds):
            tally = tallies[kind]
            for number in range(options.unchanged):
                told, reruns = nightly(detector, _series(module, kind, [seed, 1, index, number]), NIGHTS - 1)
                tally.false += sum(night >= FIRST for night, _ in told)
                tally.nights += NIGHTS - FIRST
                tally.reruns += reruns
            for at, step in enumerate(options.steps):
                for number in range(options.stepped):
                    key = [seed, 3, index, at, number]
                    tau = int(np.random.default_rng([*key, 9]).integers(60, NIGHTS - 31))
                    changed = _series(module, kind, key, step * (-1) ** number, tau)
                    told, _ = nightly(detector, changed, tau + HORIZON)
                    right = [(night - tau, abs(cut - tau)) for night, cut in told if night >= tau]
                    right = [pair for pair in right if pair[1] <= MARGIN]
                    tally.delays[step].append(right[0][0] if right else float("inf"))
                    tally.misplaced += [right[0][1]] if right else []
    return _summary(tallies, options.steps)


def _series(module: Any, kind: str, seed: list[int], step: float = 0.0, tau: int | None = None) -> Any:
    return module.Series(kind, NIGHTS, seed, step, tau)


def _summary(tallies: dict[str, Tally], steps: list[float]) -> dict[str, Any]:
    nights = sum(tally.nights for tally in tallies.values())
    misplaced = np.array([error for tally in tallies.values() for error in tally.misplaced])
    return {
        "metric_nights": nights,
        "false_per_1000": _rate(sum(tally.false for tally in tallies.values()), nights),
        "false_per_1000_by_kind": {kind: _rate(tally.false, tally.nights) for kind, tally in tallies.items()},
        "reruns_per_1000": _rate(sum(tally.reruns for tally in tallies.values()), nights),
        "culprit_within_1_percent": _percent(misplaced <= 1),
        "culprit_exact_percent": _percent(misplaced == 0),
        "steps": {
            f"{step:g}": {
                "all": _within([delay for tally in tallies.values() for delay in tally.delays[step]]),
                "within_3_by_kind": {k: _percent(np.array(t.delays[step]) <= 3) for k, t in tallies.items()},
            }
            for step in steps
        },
    }


def _within(delays: list[float]) -> dict[str, float]:
    late = np.array(delays)
    found = {f"within_{limit}": _percent(late <= limit) for limit in (0, 1, 2, 3, 7, 30)}
    return {"count": len(late), **found}


def _rate(count: int, nights: int) -> float:
    return round(1000 * count / max(1, nights), 3)


def _percent(hits: np.ndarray) -> float:
    return round(100 * float(np.mean(hits)), 1) if len(hits) else 0.0


def fleet_suite(detector: str, options: argparse.Namespace) -> dict[str, Any]:
    """Forty series of one machine: alerts on nobody's change, machine steps, compiler-wide steps."""
    count: collections.Counter[str] = collections.Counter()
    for number in range(options.fleets):
        event = ("", "machine", "compiler")[number % 3]
        fleet = own_generator.fleet(options.seeds[0] * 1000 + number, event=event)
        names = {str(control) for control in fleet.controls}
        state, found, total = change_fleet.FleetState(), set(), fleet.series[0].T
        for night in range(20, total):
            stop = night + 1
            histories = {str(i): History(s.values[:stop], s.std[:stop], s.n[:stop]) for i, s in enumerate(fleet.series)}

            def measure(name: str, build: int, times: int, night: int = night, fleet: Any = fleet) -> list[float]:
                count["reruns"] += times
                return list(fleet.series[int(name)].rerun(night, build, times))

            told = change_fleet.night(
                histories, state, controls=names, rerun=measure if detector == "tvmdash" else None
            )
            state = told.state
            if told.machine is not None:
                near = fleet.machine_step is not None and 0 <= night - fleet.machine_step <= HORIZON
                count["machine_found" if near else "machine_false"] += 1
                count["compiler_told_as_machine"] += event == "compiler"
            for name, decision in told.decisions.items():
                if decision.kind == "alert" and night >= FIRST:
                    tau = fleet.steps.get(int(name), (-99, 0.0))[0]
                    right = decision.cut is not None and abs(decision.cut - tau) <= MARGIN
                    found |= {name} if right else set()
                    at_step = fleet.machine_step is not None and abs((decision.cut or 0) - fleet.machine_step) <= MARGIN
                    count["false"] += not right
                    count["machine_told_as_tvm"] += at_step and not right
        count["nights"] += len(fleet.series) * (total - FIRST)
        count["machine_steps"] += event == "machine"
        count[f"steps_{event or 'plain'}"] += len(fleet.steps)
        count[f"found_{event or 'plain'}"] += len(found)
    return {
        "false_per_1000": _rate(count["false"], count["nights"]),
        "reruns_per_1000": _rate(count["reruns"], count["nights"]),
        **{key: count[key] for key in ("machine_steps", "machine_found", "machine_false", "machine_told_as_tvm")},
        "compiler_told_as_machine": count["compiler_told_as_machine"],
        **{
            f"found_percent_{event}": round(100 * count[f"found_{event}"] / max(1, count[f"steps_{event}"]), 1)
            for event in ("plain", "machine", "compiler")
        },
    }


def speed_suite() -> dict[str, float]:
    """CPU time of a full scan of 10,000 nights by kind, and of one night of 240 series of 3,650 nights."""
    found = {}
    for kind in own_generator.KINDS:
        series = own_generator.Series(kind, 10_000, [7, 1], 0.1, 5000)
        history = History(series.values, series.std, series.n)
        found[f"scan_10000_nights_{kind}_ms"] = round(
            min(_spent(lambda h=history: change_points.change_points(h)) for _ in range(5)), 1
        )
    many = {}
    for index in range(240):
        kind = own_generator.KINDS[index % 9]
        series = own_generator.Series(kind, 3650, [8, index])
        many[str(index)] = History(series.values, series.std, series.n)
    state = change_fleet.FleetState({name: change_points.change_points(history)[1] for name, history in many.items()})
    found["night_of_240_series_ms"] = round(min(_spent(lambda: change_fleet.night(many, state)) for _ in range(3)), 1)
    return found


def _spent(work: Any) -> float:
    begin = time.process_time()
    work()
    return 1000 * (time.process_time() - begin)


def load_generator(path: str) -> tuple[ModuleType, tuple[str, ...]]:
    """The generator module in a file: it has KINDS and Series(kind, nights, seed, step, tau)."""
    spec = importlib.util.spec_from_file_location("foreign_generator", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path}: not a Python file. Name one that has KINDS and Series.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, tuple(module.KINDS)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="series,fleet,speed")
    parser.add_argument("--detectors", default=",".join((*OURS, *anchors.ANCHORS)))
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[7001, 7002])
    parser.add_argument("--unchanged", type=int, default=20, help="unchanged series a kind and seed")
    parser.add_argument("--stepped", type=int, default=8, help="series a kind, seed and step")
    parser.add_argument(
        "--steps", type=lambda text: [float(s) for s in text.split(",")], default=[0.01, 0.02, 0.03, 0.05, 0.1]
    )
    parser.add_argument("--fleets", type=int, default=6)
    parser.add_argument("--generator", help="a file with KINDS and Series to use instead of our own")
    parser.add_argument("--unseen", action="store_true", help="only the kinds that nothing was tuned on")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.unchanged, options.stepped, options.fleets = options.seeds[:1], 4, 2, 3
    return options


def main() -> None:
    options = arguments()
    module, kinds = own_generator, own_generator.UNSEEN_KINDS if options.unseen else own_generator.KINDS
    if options.generator:
        module, kinds = load_generator(options.generator)
    result: dict[str, Any] = {"settings": vars(Settings()), "seeds": options.seeds, "series": {}, "fleet": {}}
    for detector in options.detectors.split(","):
        if "series" in options.suite:
            result["series"][detector] = series_suite(detector, module, kinds, options)
            print(detector, json.dumps(result["series"][detector]), flush=True)
        if "fleet" in options.suite and detector in OURS:
            result["fleet"][detector] = fleet_suite(detector, options)
            print(detector, json.dumps(result["fleet"][detector]), flush=True)
    if "speed" in options.suite:
        result["speed"] = speed_suite()
        print("speed", json.dumps(result["speed"]), flush=True)
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
