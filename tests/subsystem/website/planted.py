"""A home of forty nights whose truth is known, with verdicts and a site: changes, failures, gaps and what is gone.

`python -m tests.subsystem.website.planted FOLDER` makes it, to be looked at.
"""

from __future__ import annotations

import hashlib
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.subsystem.stat_alerts.alert_homes import AlertHome, stamp_of
from tests.subsystem.stat_alerts.test_night_verdict import judged
from tests.subsystem.website.sites import Site, job
from tvmdash import common
from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, JobResult, Night, StepResult
from tvmdash.measure.capture import Capture, OperatorSpan, Sample
from tvmdash.verdict import NightVerdict
from tvmtraces import sealing

COUNT = 40
TONIGHT = COUNT - 1
OFF = frozenset({24, 25, 26})
"""Nobody ran the dashboard on these nights."""
SAME_COMMIT = range(10, 13)
"""On these nights TVM had nothing new: all measured the commit of the first."""
GONE_SINCE = 35
OLDER_STEP = 29
REMOTE = "https://github.com/apache/tvm"
REFERENCE = {"key": "wheel-0.27", "version": "0.27.0"}
CNNS = {"resnet18": 31.0, "resnet50": 82.0, "mobilenet": 11.0, "vgg11": 140.0, "squeezenet": 14.0, "dqn": 0.42}
OPERATORS = {f"conv2d_{size}": size / 9.0 for size in (7, 14, 28, 56, 112)} | {
    name: 0.2 + at / 7 for at, name in enumerate(("dense", "softmax", "layer_norm", "batch_matmul", "max_pool2d"))
}
PASSES = {f"net_{name}": 3.0 for name in ("fuse", "fold", "layout", "cse")}
SLOWER = {"resnet18": 1.08, "resnet50": 1.07, "mobilenet": 1.075}
"""Of cnn_comp, tonight."""
FASTER = ("softmax", 0.85)
"""Of operators, tonight."""
LLVM = ("18.1.8", "19.1.0")
"""Before tonight, and tonight."""
OLDER = ("conv2d_56", 1.15)
"""Of operators, since OLDER_STEP."""
NOISY = "max_pool2d"
OPERATORS_OF_NETWORKS = {"fused_conv2d_1": 0.3, "fused_conv2d_3": 0.4, "fused_dense": 0.2, "fused_softmax": 0.1}
"""Of cnn_comp: their shares of a run before tonight."""
SLOWER_OPERATOR = "fused_conv2d_3"
"""All that the networks of cnn_comp lost tonight, they lost in it."""
PASSES_RUN = ("FoldConstant", "FuseOps", "FuseTIR")
"""Of cnn_comp; the last does not run tonight."""
BROKE = "onnxruntime: libonnxruntime.so.1: cannot open shared object file"
COMMITS = (
    ("5a36cd4", "Grace Hopper", "[Relax] Fold constants before fusing operators", "src/relax"),
    ("c91f02b", "Ada Lovelace", "[Docs] Say how a pass is registered", "docs/arch"),
    ("77d1e0a", "Alan Turing", "[TIR] Vectorize loops of conv2d by the target's width", "src/tir"),
    ("0be4431", "Barbara Liskov", "[CI] Cache the wheels", ".github/workflows"),
)
BEFORE = "599895c"


def digits(start: str) -> str:
    """A commit of 40 digits that begins so."""
    return start + hashlib.sha256(start.encode()).hexdigest()[: 40 - len(start)]


def commit_of(night: int) -> str:
    """The commit that a night measured."""
    night = SAME_COMMIT[0] if night in SAME_COMMIT else night
    start = {TONIGHT: COMMITS[0][0], TONIGHT - 1: BEFORE}
    return digits(start.get(night, f"{0x3000000 + night * 7919:07x}"))


def version_of(night: int) -> str:
    night = SAME_COMMIT[0] if night in SAME_COMMIT else night
    return f"0.28.dev{400 + night}+g{commit_of(night)[:9]}"


@dataclass
class Planted:
    """The home. verdicts: by night, of the last ones."""

    home: AlertHome
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    verdicts: dict[int, NightVerdict] = field(default_factory=dict)

    @property
    def site(self) -> Site:
        return Site(self.home.home)


def make(root: Path, judged_from: int = 30) -> Planted:
    """The home, with the verdicts of its nights from `judged_from` on, and its site."""
    planted = Planted(AlertHome(root))
    planted.home.home.nights.mkdir(parents=True)
    for night in nights():
        for experiment, records in measure(planted.rng, night):
            write(planted.home, experiment, night, records)
    planted.home.ingest()
    for night in nights():
        if night >= judged_from:
            planted.verdicts[night] = judged(planted.home, night, *jobs_of(night))
        leave_night(planted.home, night)
    switch_on(planted.home)
    for night in (TONIGHT - 1, TONIGHT):
        seal_operators(planted.home, night)
    planted.site.publish_here(stamp_of(TONIGHT))
    return planted


def nights() -> list[int]:
    return [night for night in range(COUNT) if night not in OFF]


def measure(rng: np.random.Generator, night: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What each experiment measured on a night."""
    tonight = night == TONIGHT
    yield (
        "cnn_comp",
        [
            make_record(rng, f"cnn.{name}", ms, speed=SLOWER.get(name, 1.0) if tonight else 1.0)
            for name, ms in CNNS.items()
        ],
    )
    speed = {FASTER[0]: FASTER[1] if tonight else 1.0, OLDER[0]: OLDER[1] if night >= OLDER_STEP else 1.0}
    yield (
        "operators",
        [
            make_record(rng, f"op.{name}", ms, speed=speed.get(name, 1.0), noise=0.06 if name == NOISY else 0.004)
            for name, ms in OPERATORS.items()
        ],
    )
    if not tonight:
        engines = ("tvm", "torch", "onnxruntime")
        yield (
            "cnn_engines",
            [
                make_record(rng, f"cnn.{name}", CNNS[name], engine=engine)
                for name in ("resnet18", "mobilenet")
                for engine in engines
            ],
        )
        yield "pass_comparison", [make_record(rng, f"pass.{name}", ms) for name, ms in PASSES.items()]
    if night < GONE_SINCE:
        yield "rnn_comp", [make_record(rng, f"rnn.{name}", 5.0) for name in ("lstm", "gru")]


def make_record(
    rng: np.random.Generator, workload: str, ms: float, *, speed: float = 1.0, noise: float = 0.004, engine: str = "tvm"
) -> dict[str, Any]:
    """A record of a point that was measured beside the reference where it is TVM's."""
    logs = math.log(speed) + noise * rng.standard_normal(5)
    ran = ms * speed * math.exp(rng.normal(0, max(0.01, noise)))
    info: dict[str, Any] = {
        "docker_tag": None, "docker_hash": None, "execution_elapsed_ms_median": ran, "samples": 10,
        "execution_elapsed_ms_low": ran * 0.999, "execution_elapsed_ms_high": ran * 1.001,
    }  # fmt: skip
    if engine == "tvm":
        reach = 2.776 * float(logs.std(ddof=1)) / math.sqrt(5)
        middle = float(logs.mean())
        info["paired"] = {
            "ratios": {"run_time": {
                "clock": "cpu", "log_ratios": logs.tolist(), "ratio": math.exp(middle),
                "low": math.exp(middle - reach), "high": math.exp(middle + reach),
            }},
            "reference": {"run_time": ms},
        }  # fmt: skip
        info["module_hash"] = workload + (f"{speed}" if speed != 1.0 else "")
    return {
        "timestamp": "2026-05-01T03:15:00+00:00", "schema_version": 1, "additional_info": info, "workload": workload,
        "workload_args": {"batch": 1}, "engine": engine, "engine_version": "1.0", "engine_config": {},
        "target": '{"kind": "llvm"}', "build_config": {"mode": "compiled"}, "env_name": "bench",
        "hw_model": "AMD EPYC x 2", "runtime_config": {"threads": 1}, "execution_config": {"number": 10},
        "execution_elapsed_ms_mean": ran, "execution_elapsed_ms_std": ran * 0.01,
    }  # fmt: skip


def write(home: AlertHome, experiment: str, night: int, records: Sequence[Mapping[str, Any]]) -> None:
    home.write_data(experiment, night, {
        "schema_version": 1, "timestamp": stamp_of(night), "tvm_hash": commit_of(night), "records": records,
        "environment": {"machine": {"host": "bench", "cpu_model": "AMD EPYC"}},
        "night": {
            "artifact": {"key": f"git-{commit_of(night)[:12]}", "provider": "git", "version": version_of(night),
                         "commit": commit_of(night),
                         "facts": {"remote": REMOTE, "llvm_version": LLVM[night == TONIGHT]}},
            "fingerprint": "f", "machine": "bench", "reference": REFERENCE,
        },
    })  # fmt: skip


def jobs_of(night: int) -> tuple[JobResult, ...]:
    """How the experiments of a night went."""
    at = stamp_of(night)
    good = [job("cnn_comp", at, title="Networks"), job("operators", at, title="Operators")]
    if night < GONE_SINCE:
        good.append(job("rnn_comp", at, title="Recurrent networks"))
    if night != TONIGHT:
        return (
            *good,
            job("cnn_engines", at, title="Networks, all engines"),
            job("pass_comparison", at, title="Passes"),
        )
    broken = StepResult("run", FAILED, f"exit status 1: {BROKE}", at, 12.5, BROKE)
    waiting = StepResult("run", BLOCKED, "the night ended before its turn", at)
    return (
        *good,
        job("cnn_engines", at, title="Networks, all engines", run=broken),
        job("pass_comparison", at, title="Passes", run=waiting),
    )


def leave_night(home: AlertHome, night: int) -> None:
    """The record of a complete night, with what is new in its TVM."""
    at = stamp_of(night)
    before = max((earlier for earlier in nights() if earlier < night), default=None)
    since = None
    if before is not None:
        commits = ((commit_of(night)[:7], "Ada Lovelace", "[Misc] Tidy", "src/support"),)
        commits = COMMITS if night == TONIGHT else commits if commit_of(night) != commit_of(before) else ()
        since = {
            "stamp": stamp_of(before), "key": f"git-{commit_of(before)[:12]}", "version": version_of(before),
            "commit": commit_of(before), "more": 0,
            "commits": [
                {"sha": digits(start), "author": author, "date": common.parse_stamp(at).isoformat(), "title": title,
                 "folders": [folder]}
                for start, author, title, folder in commits
            ],
        }  # fmt: skip
    artifact = {
        "key": f"git-{commit_of(night)[:12]}", "provider": "git", "version": version_of(night),
        "commit": commit_of(night), "facts": {"remote": REMOTE}, "asked": [{"remote": REMOTE, "branch": "main"}],
        "since": since,
    }  # fmt: skip
    website = JobResult("subsystem", "website", "Website", "", (StepResult("precheck", "ok", "", at),))
    state = "running" if night == TONIGHT else COMPLETE
    record = Night(at, state, elapsed_s=3754, artifacts=(artifact,), jobs=(*jobs_of(night), website))
    common.write_json(home.home.night_file(at), record.to_json())


def seal_operators(home: AlertHome, night: int) -> None:
    """The raw measurements of cnn_comp on a night: the operators of each network, profiled once."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        with Capture(Path(folder), {"machine": {"host": "bench"}, "engine": {"tvm_hash": commit_of(night)}}) as capture:
            for name, ms in CNNS.items():
                record = make_record(rng, f"cnn.{name}", ms)
                columns = {
                    column: record[column]
                    for column in ("workload_args", "engine_config", "build_config", "runtime_config")
                }
                point = {"workload": record["workload"], "values": {}, "engine": "tvm", "target": record["target"],
                         "columns": columns, "group": "all"}  # fmt: skip
                slower = SLOWER.get(name, 1.0) - 1 if night == TONIGHT else 0.0
                spans, begin = [], 0
                for operator, share in OPERATORS_OF_NETWORKS.items():
                    length = round(ms * 1e6 * (share + slower * (operator == SLOWER_OPERATOR)))
                    spans.append(OperatorSpan(0, operator, begin, length))
                    begin += length
                samples = [Sample(round(ms * (1 + slower) * 1e6), 1)]
                ran = PASSES_RUN[:-1] if night == TONIGHT else PASSES_RUN
                passes = [(name, 1_000_000) for name in ran]
                capture.end(capture.begin(point), samples=samples, operators=spans, passes=passes, regions=[])
        place = home.home.root / "tmp" / "raw" / "cnn_comp" / f"raw_{stamp_of(night)}"
        place.parent.mkdir(parents=True, exist_ok=True)
        sealing.seal([Path(folder)], place)


def switch_on(home: AlertHome) -> None:
    """The configs of the home and of the experiments that it has."""
    folders = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup"}
    home.home.config_file.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(home.home.config_file, folders)
    for name in ("cnn_comp", "operators", "cnn_engines", "pass_comparison"):
        folder = home.home.config("experiment", name)
        folder.mkdir(parents=True, exist_ok=True)
        common.write_json(folder / "config.json", {"active": True})


if __name__ == "__main__":
    made = make(Path(sys.argv[1]))
    for number, verdict in made.verdicts.items():
        sys.stdout.write(f"{number} {stamp_of(number)} {verdict.level} {verdict.headline}\n")
    sys.stdout.write(f"{made.site.folder}\n")
