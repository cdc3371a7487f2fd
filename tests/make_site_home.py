"""A big home that looks real: `python tests/make_site_home.py DIR --series 60 --nights 120`.

Data files, store, nights, configs, summaries, graphs, sealed traces; stat_alerts, score and deadline are run. With more
than `--files` nights, what lies before goes straight into the store, without data files.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import itertools
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO), str(REPO / "shared" / "python"), str(REPO / "tests")]
from site_truth import HOSTILE, Truth  # noqa: E402 - from the repository

from tests.subsystem import scripts  # noqa: E402 - from the repository
from tvmdash import common, records  # noqa: E402 - from the repository
from tvmdash.common import structured  # noqa: E402 - from the repository
from tvmdash.dashboard_info import COMPLETE, FAILED, OK, RUNNING, Home, JobResult, Night, StepResult  # noqa: E402
from tvmdash.incidents import annotations, command  # noqa: E402 - from the repository
from tvmdash.measure.capture import Capture, OperatorSpan, Region, Sample  # noqa: E402
from tvmdash.records import record  # noqa: E402
from tvmdash.series import packed, store  # noqa: E402
from tvmdash.series.store import Store  # noqa: E402
from tvmdash.trials.trial import (  # noqa: E402 - from the repository
    Trial,
    TrialChange,
    TrialSeries,
    TrialState,
    TrialTvm,
)
from tvmtraces import sealing  # noqa: E402

SUBSYSTEMS = {"stat_alerts": 85, "score": 80, "deadline": 60, "website": -10}
CLASSES = {"stat_alerts": "StatAlerts", "score": "Score", "deadline": "DeadlineSubsystem", "website": "Website"}
TITLES = {
    "relax_opt": "Relax pipelines and LLVM levels",
    "cnn_engines": "TVM against other engines",
    "pass_comparison": "Passes switched off",
}
OPERATORS = ("conv2d_add_relu", "matmul", "softmax", "layer_norm", "reshape<\u202e>")
BACKFILLED = 8
"""So many points are measured on TVMs of the past."""
STAGES = ("precheck", "run", "analyze", "visualize", "summarize")
CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "deadline": {
        "deadlines": {
            "cgo": {"title": "CGO 2027", "date": "2026-12-11", "time_zone": "AoE", "url": "https://conf.example.org"},
            "release": {"title": f"Release {HOSTILE}", "date": "2027-03-01T17:00"},
        }
    },
    "score": {
        "scores": [
            {
                "title": "The zero pipeline against tvm.compile alone",
                "experiment": "relax_opt",
                "kind": "speedup",
                "baseline": {"build_config.variant": "default", "build_config.opt_level": 3},
                "contender": {"build_config.variant": "zero", "build_config.opt_level": 3},
            },
            {"title": "Correct answers", "experiment": "relax_opt", "kind": "correct_count"},
        ]
    },
}


def make_home(root: Path, truth: Truth, *, files: int = 400, traces: int = 0, subsystems: bool = True) -> Home:
    """The home `root`, in the midst of its last night: only the website has not run."""
    home = Home(root)
    first = max(0, truth.nights - files)
    home.nights.mkdir(parents=True)
    write_configs(home, truth)
    if first:
        _fill_store(home, truth, first)
    for night in range(first, truth.nights):
        write_night(home, truth, night, with_data=True)
    for night in range(first):
        write_night(home, truth, night, with_data=False)
    ingest(home, truth)
    for night in range(max(0, truth.nights - traces), truth.nights):
        _seal_raw(home, truth, night)
    _write_results(home, truth)
    _backfill(home, truth)
    _try(home, truth)
    _annotate(home, truth)
    if subsystems:
        run_subsystems(home, truth)
    return home


def write_configs(home: Home, truth: Truth) -> None:
    home.config_file.parent.mkdir(parents=True, exist_ok=True)
    top = json.loads((REPO / "sample-dashboard-home" / "config" / "config.json").read_text(encoding="utf-8"))
    common.write_json(home.config_file, {**top, "website_url": "https://bench.example.org/tvm"})
    for name in (*truth.experiments(), "asleep"):
        folder = home.config("experiment", name)
        folder.mkdir(parents=True, exist_ok=True)
        told = {"title": TITLES.get(name, name), "description": "What it measures, in a sentence or two."}
        common.write_json(folder / "config.json", {"active": name != "asleep", **told})
    for name, priority in SUBSYSTEMS.items():
        folder = home.config("subsystem", name)
        folder.mkdir(parents=True, exist_ok=True)
        common.write_json(folder / "config.json", {"active": True, "priority": priority, **CONFIGS.get(name, {})})


def write_night(home: Home, truth: Truth, number: int, *, with_data: bool) -> None:
    """The night's record and, unless its experiment failed, the data files."""
    stamp = truth.stamp(number)
    version = truth.version(number)
    last = number == truth.nights - 1
    jobs = tuple(_job(truth, name, number) for name in truth.experiments())
    website = JobResult("subsystem", "website", "Website", "", (StepResult("precheck", OK, "good", stamp),))
    others = tuple(
        JobResult("subsystem", name, name.replace("_", " ").capitalize(), "", (
            StepResult("precheck", OK, "good", stamp), StepResult("run", OK, "good", stamp, 1.5)))
        for name in SUBSYSTEMS if name != "website"
    )  # fmt: skip
    artifact = {"key": f"git-{version}", "provider": "git", "version": "0.27.dev0", "commit": version, "facts": {}}
    night = Night(
        stamp,
        RUNNING if last else COMPLETE,
        ended=None if last else common.stamp_of(common.parse_stamp(stamp)),
        elapsed_s=3700.0 + 13 * (number % 17),
        seed=1000 + number,
        repository={"commit": "7de98901c0ffee", "dirty": False},
        artifacts=(artifact,),
        notes=("The disk has 3 GB left.",) if number % 50 == 49 else (),
        jobs=(*jobs, *others, website),
    )
    common.write_bytes(home.night_file(stamp), common.dump_json(night.to_json()).encode(), durable=False)
    for name in truth.experiments() if with_data else ():
        if not truth.failed(name, number):
            path = home.data_file(name, stamp)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(truth.data(name, number), indent=1, ensure_ascii=False), encoding="utf-8")


def _job(truth: Truth, name: str, number: int) -> JobResult:
    stamp = truth.stamp(number)
    steps = [StepResult(stage, OK, "good", stamp, 20.0 + number % 7) for stage in STAGES]
    if truth.failed(name, number):
        steps[1] = StepResult("run", FAILED, "run.sh was killed by SIGKILL.", stamp, 60, "loading\n<b>Killed</b>\n")
        steps[2:] = [StepResult(stage, "blocked", "run failed", stamp) for stage in STAGES[2:]]
    return JobResult(
        "experiment", name, TITLES.get(name, name), "What it measures, in a sentence or two.", tuple(steps)
    )


def ingest(home: Home, truth: Truth) -> None:
    with store.open_for_writing(home.store_file) as opened:
        for name in truth.experiments():
            opened.ingest(home.data(name), name)


def _fill_store(home: Home, truth: Truth, stop: int) -> None:
    """The points of the nights before `stop`, as `ingest` would have taken them."""
    with store.open_for_writing(home.store_file) as opened, opened.connection:
        for name in truth.experiments():
            home.data(name).mkdir(parents=True, exist_ok=True)
            numbers: dict[tuple[str, str], int] = {}
            for night in range(stop):
                if truth.failed(name, night):
                    continue
                value, stamp = truth.data(name, night), truth.stamp(night)
                machine = record._machine(value["environment"]["machine"], "")
                opened._add_run(name, stamp, value["tvm_hash"], len(value["failures"]), machine)
                opened._put(name, stamp, _points(opened, numbers, name, value))


def _points(
    opened: Store, numbers: dict[tuple[str, str], int], name: str, value: dict[str, Any]
) -> list[packed.PackedPoint]:
    points = []
    for item in value["records"]:
        record = records.Record.from_json(item)
        info = record.additional_info
        spot = json.dumps([record.workload, record.engine, record.build_config])
        for metric, number in record.metrics():
            if (spot, metric.name) not in numbers:
                key = records.SeriesKey(name, metric.name, record.labels)
                point = records.PointValue(key, metric.unit, metric.direction, number)
                numbers[spot, metric.name] = opened._number(point)
            place = numbers[spot, metric.name]
            if metric.name == "run_time":
                low, high = info["execution_elapsed_ms_low"], info["execution_elapsed_ms_high"]
                std, code = record.execution_elapsed_ms_std, store.code_number(info["module_hash"])
                points.append(packed.PackedPoint(place, number, low, high, std, 10, code))
            else:
                points.append(packed.PackedPoint(place, number, None, None, None, None, None))
    return points


def _write_results(home: Home, truth: Truth) -> None:
    """Each experiment's summary and a graph, as tonight left them."""
    stamp = truth.stamp(truth.nights - 1)
    for name in truth.experiments():
        if truth.failed(name, truth.nights - 1):
            continue
        for folder in (home.summary(name), home.graph(name)):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".stamp").write_text(stamp + "\n", encoding="ascii")
        words = {
            "title": f"{TITLES.get(name, name)}",
            "value": "12 points measured.\nmlp is 3 % slower than last night.",
        }
        common.write_json(home.summary(name) / "summary.json", words)
        bars = "".join(f'<rect x="{20 + 30 * n}" y="{150 - 12 * n}" width="22" height="{12 * n}" fill="#3b7"/>'
                       for n in range(1, 10))  # fmt: skip
        svg = (f'<svg xmlns="http://www.w3.org/2000/svg" width="330pt" height="160pt" viewBox="0 0 330 160">'
               f"<title>Tonight</title><desc>Bars of {name}</desc>{bars}</svg>")  # fmt: skip
        (home.graph(name) / "tonight.svg").write_text(svg, encoding="utf-8")


def _seal_raw(home: Home, truth: Truth, number: int) -> None:
    """The raw measurements of a night, captured and sealed as a night does it."""
    stamp = truth.stamp(number)
    for name in truth.experiments():
        if truth.failed(name, number):
            continue
        place = home.root / "tmp" / "raw" / name / f"raw_{stamp}"
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            facts = {"machine": {"host": "bench-1", "cpu_model": "AMD EPYC 9654"}, "engine": {"tvm_hash": "x"}}
            with Capture(Path(folder), facts) as capture:
                for record in truth.data(name, number)["records"]:
                    _capture(capture, record, random.Random(number))
            sealing.seal([folder], place)


def _capture(capture: Capture, record: dict[str, Any], rng: random.Random) -> None:
    columns = {name: record[name] for name in ("workload_args", "engine_config", "build_config", "runtime_config")}
    point = {"workload": record["workload"], "values": record["build_config"], "engine": record["engine"],
             "target": record["target"], "columns": columns, "group": "all"}  # fmt: skip
    run_ns = round(record["execution_elapsed_ms_mean"] * 1e6)
    spans = []
    for repetition in range(3):
        begin = 0
        for call in range(12):
            length = round(run_ns * (0.16 - 0.012 * call) * rng.uniform(0.97, 1.03))
            spans.append(OperatorSpan(repetition, f"fused_{OPERATORS[call % len(OPERATORS)]}", begin, length))
            begin += length + 200
    samples = [Sample(round(run_ns * 89 * rng.uniform(0.995, 1.02)), 89) for _ in range(10)]
    passes = [("FoldConstant", 2_100_000), ("FuseOps", 1_300_000), ("<b>DeadCode</b>", 40_000)]
    regions = [Region("compile", "phase", time.time_ns() - 5_000_000, 4_000_000)]
    capture.end(capture.begin(point), samples=samples, operators=spans, passes=passes, regions=regions)


def _backfill(home: Home, truth: Truth) -> None:
    """Three TVMs of the past in five rounds, with the numbers of nights as long ago as theirs."""
    name, last = truth.experiments()[0], truth.nights - 1
    home.backfill(name).mkdir(parents=True)
    for number, (repeat, at) in enumerate(itertools.product(range(5), range(3))):
        version = ("0.25.0", "0.26.0", f"0.27.0 {HOSTILE}")[at]
        value = truth.data(name, min(last, max(0, at * last // 2 - 4) + repeat))
        stamp = common.stamp_of(truth.last - datetime.timedelta(hours=9, minutes=-number))
        artifact = {"key": f"wheel-{version}", "provider": "wheel", "version": version}
        value["night"] |= {"stamp": stamp, "artifact": artifact, "backfill": True, "committed": None}
        value |= {"timestamp": stamp, "records": value["records"][:BACKFILLED]}
        common.write_json(home.backfill(name) / f"data_{stamp}.json", value, durable=False)


def _try(home: Home, truth: Truth) -> None:
    """One TVM tried against another: every second series changed."""
    sides = (TrialTvm(f"git:pull/7 {HOSTILE}", "git-x", "0.28.dev0", "a" * 40), TrialTvm("pypi:0.27.0", "w", "0.27.0"))
    changes = [
        TrialChange(size, size - 0.003, size + 0.003, 0.003, 0.005, 12, real=size > 0.01) for size in (0.1, 0.001)
    ]
    name = truth.experiments()[0]
    series = tuple(
        TrialSeries(str(at), name, "run_time", {}, name=f"{name} net{at} {HOSTILE}", change=changes[at % 2])
        for at in range(6)
    )
    stamp = common.stamp_of(truth.last - datetime.timedelta(hours=6))
    done = Trial(stamp, TrialState.OVER, *sides, 0.01, "bench", {name: "f"}, runs={name: 3}, series=series)
    home.tries.mkdir(parents=True)
    common.write_json(home.tries / f"{stamp}.json", {"schema_version": 1, **structured.to_json(done)}, durable=False)


def _annotate(home: Home, truth: Truth) -> None:
    at = common.parse_stamp(truth.stamp(0)).isoformat().replace("+00:00", "Z")
    for night, kind, words in (
        (truth.nights - 30, "release", "0.27"),
        (truth.machine_night, "machine", "New kernel and microcode"),
        (truth.nights - 15, "night", f"Fans were cleaned {HOSTILE}"),
    ):
        if night > 0:
            made = annotations.make(kind, truth.stamp(night), words, who="ann", at=at)
            annotations.append(home.root, vars(made))


def run_subsystems(home: Home, truth: Truth) -> None:
    """The other subsystems; stat_alerts also a week before, and somebody looks after it then."""
    if truth.nights > 30:
        _run(home, "stat_alerts", truth.stamp(truth.nights - 4))
        first = _ledger(home, "list").split("  ")[0].strip()
        if first.startswith("i"):
            _ledger(home, "ack", first, "looking at it", "--who", "ann")
    for name in sorted(SUBSYSTEMS, key=lambda name: -SUBSYSTEMS[name]):
        if name != "website":
            _run(home, name, truth.stamp(truth.nights - 1))


def _run(home: Home, name: str, stamp: str) -> None:
    """A subsystem's work for a night, in this process: half of what a program of its own costs is its start."""
    home.output(name).mkdir(parents=True, exist_ok=True)
    code = scripts.load(name)
    subsystem = getattr(code, CLASSES[name])()
    before = os.environ.get("TVMDASH_NIGHT")
    os.environ["TVMDASH_NIGHT"] = stamp
    try:
        with contextlib.chdir(REPO / "subsystem" / name):
            failed = subsystem.main([str(home.config("subsystem", name)), str(home.output(name)), str(home.root)])
    finally:
        os.environ.pop("TVMDASH_NIGHT")
        os.environ.update({} if before is None else {"TVMDASH_NIGHT": before})
    if failed:
        raise SystemExit(f"{name}: {common.read_json(home.output(name) / 'status.json')}")


def _ledger(home: Home, *arguments: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert command.main([str(home.root), *arguments]) == 0
    return output.getvalue()


def environment() -> dict[str, str]:
    """What a stage gets."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": str(REPO / "shared" / "python"),
        "LANG": "C.UTF-8",
    }


def publish(home: Home) -> None:
    """The website."""
    _run(home, "website", home.night_stamps()[-1])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the home; it is not there yet")
    parser.add_argument("--series", type=int, default=60)
    parser.add_argument("--nights", type=int, default=120)
    parser.add_argument("--files", type=int, default=400, help="nights that have data files; the others the store only")
    parser.add_argument("--traces", type=int, default=2, help="last nights whose raw measurements are there, sealed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-subsystems", action="store_true", help="without stat_alerts, score, deadline")
    parser.add_argument("--publish", action="store_true", help="publish the website, too")
    parsed = parser.parse_args(arguments)
    truth = Truth(parsed.series, parsed.nights, parsed.seed)
    home = make_home(
        parsed.folder.absolute(), truth, files=parsed.files, traces=parsed.traces, subsystems=not parsed.no_subsystems
    )
    if parsed.publish:
        publish(home)
    sys.stdout.write(f"{home.root}: {len(truth.spots)} points of {len(truth.experiments())} experiments.\n")


if __name__ == "__main__":
    main()
