"""Make a home of sixty made-up nights, with its site and its mails: `./run_dashboard.sh --demo DIR`.

Planted are numbers (Story). What is said of them is the product's work: stat_alerts judges each night, routes mails
what it found to a server that lives as long as this script, website makes the pages. docs/tutorial/demo.md shows them.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import email
import email.message
import email.policy
import hashlib
import importlib
import math
import os
import shutil
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tvmdash import common
from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, OK, Home, JobResult, Night, StepResult
from tvmdash.dashboard_info.stages import STATUS_FILE, read_status
from tvmdash.measure.capture import Capture, OperatorSpan, Sample
from tvmdash.series import store
from tvmdash.subsys_templates import Subsystem
from tvmtraces import sealing

REPOSITORY = Path(__file__).resolve().parents[2]
REMOTE = "https://git.example.org/tvm"
TITLES = {
    "canary": "The canary: was it the machine?",
    "cnn_comp": "Networks",
    "operators": "Operators",
    "rnn_comp": "Recurrent networks",
}
POINTS = {
    "canary": {"canary.arithmetic": 4.0, "canary.read": 21.0, "canary.walk": 35.0},
    "cnn_comp": {"network.resnet18": 31.0, "network.resnet50": 82.0, "network.mobilenet": 11.0, "network.vgg16": 240.0,
                 "network.squeezenet": 14.0, "network.dqn": 0.42},
    "operators": {"topi.conv2d": 6.2, "topi.depthwise_conv2d": 1.9, "topi.dense": 0.8,
                  "topi.batch_matmul": 2.4, "topi.softmax": 0.35, "topi.layer_norm": 0.51,
                  "topi.sum": 0.12, "topi.gelu": 0.22},
    "rnn_comp": {"rnn.lstm_compiled": 5.1, "rnn.gru_compiled": 4.4},
}  # fmt: skip
"""Milliseconds of a run, by experiment and workload."""
SHARES = {"fused_conv2d_relu": 0.55, "fused_depthwise_conv2d": 0.2, "fused_dense": 0.15, "fused_softmax": 0.1}
"""What the operators of a network take of its run."""
SLOWER_OPERATOR = "fused_conv2d_relu"
COMMITS = (
    ("[TIR] Vectorize loops of conv2d by the width of the target", "Made-up Ada", "src/tir"),
    ("[Docs] Say how a pass is registered", "Made-up Alan", "docs/arch"),
    ("[CI] Cache the wheels", "Made-up Barbara", ".github/workflows"),
    ("[Relax] Fold constants before fusing operators", "Made-up Grace", "src/relax"),
)
BROKE = "ImportError: libopenblas.so.0: cannot open shared object file: No such file or directory"
TOOK = datetime.timedelta(minutes=31)
"""From the start of a night to its page."""
SCATTER, LUCK, PAIRS, PROFILED = 0.004, 0.0015, 7, 4
"""Of one pair's ratio, and of a build's: how TVM's layout in memory happens to suit a point. So many pairs a night, and
so many processes whose operators are profiled."""


@dataclass(frozen=True)
class Story:
    """What is planted. The nights count from 0; `fixed` and `machine` last from one up to before the other.

    The slower networks got all of it in one operator. On a `machine` night everything takes longer, the reference and
    the canary as well.
    """

    last: datetime.datetime
    nights: int = 60
    slower: int = 59
    slower_by: tuple[tuple[str, float], ...] = (
        ("network.resnet18", 0.08), ("network.resnet50", 0.07), ("network.mobilenet", 0.075),
    )  # fmt: skip
    fixed: tuple[int, int] = (31, 38)
    fixed_by: tuple[str, float] = ("topi.softmax", 0.12)
    machine: tuple[int, int] = (42, 48)
    machine_by: float = 0.25
    failed: int = 52
    failed_experiment: str = "rnn_comp"

    def stamp(self, night: int) -> str:
        return common.stamp_of(self.last - datetime.timedelta(days=self.nights - 1 - night))

    def build(self, night: int) -> int:
        """The night whose TVM it measures: on Sundays and Mondays, that of the night before."""
        day = (self.last - datetime.timedelta(days=self.nights - 1 - night)).weekday()
        planted = {self.slower, *self.fixed}
        while night > 0 and night not in planted and day in (6, 0):
            night, day = night - 1, (day - 1) % 7
        return night

    def effect(self, workload: str, night: int) -> float:
        """How much slower TVM made the point, as a logarithm."""
        slower = dict(self.slower_by).get(workload, 0.0) if night >= self.slower else 0.0
        fixed = self.fixed_by[1] if workload == self.fixed_by[0] and night in range(*self.fixed) else 0.0
        return math.log1p(slower) + math.log1p(fixed)

    def machine_factor(self, night: int) -> float:
        return 1 + self.machine_by * (night in range(*self.machine))


def commit_of(build: int, position: int = 0) -> str:
    """A made-up commit; the night measured the one at position 0."""
    return hashlib.sha256(f"made up {build} {position}".encode()).hexdigest()[:40]


def artifact_of(story: Story, night: int) -> dict[str, Any]:
    """The TVM of a night, as its record and its data name it."""
    build = story.build(night)
    commit = commit_of(build)
    return {
        "key": f"git-{commit[:12]}", "provider": "git", "version": f"0.28.dev{400 + build}+g{commit[:9]}",
        "commit": commit, "facts": {"remote": REMOTE, "llvm_version": "19.1.0"},
    }  # fmt: skip


def make_record(story: Story, experiment: str, workload: str, night: int, rng: np.random.Generator) -> dict[str, Any]:
    """One point; TVM's with the pairs that it was measured in, in turn with the reference."""
    is_tvm = experiment != "canary"
    machine, level = story.machine_factor(night), POINTS[experiment][workload]
    build = np.random.default_rng([story.build(night), *workload.encode()])
    effect = story.effect(workload, night) + build.normal(0, LUCK) if is_tvm else 0.0
    reference = level * machine * math.exp(rng.normal(0, 0.008))
    ran = reference * math.exp(effect)
    info: dict[str, Any] = {
        "docker_tag": None, "docker_hash": None, "execution_elapsed_ms_median": ran, "samples": 10,
        "execution_elapsed_ms_low": ran * 0.998, "execution_elapsed_ms_high": ran * 1.002,
        "module_hash": f"{workload} {story.effect(workload, night):.4f}",
    }  # fmt: skip
    if is_tvm:
        logs = effect + rng.normal(0, SCATTER, PAIRS)
        half = 2.447 * float(logs.std(ddof=1)) / math.sqrt(PAIRS)  # Student's t, 95 %, six degrees of freedom
        middle = float(logs.mean())
        info["paired"] = {
            "ratios": {"run_time": {
                "clock": "cpu", "log_ratios": logs.tolist(), "ratio": math.exp(middle),
                "low": math.exp(middle - half), "high": math.exp(middle + half),
            }},
            "reference": {"run_time": reference},
        }  # fmt: skip
    return {
        "timestamp": common.parse_stamp(story.stamp(night)).isoformat(), "schema_version": 1, "additional_info": info,
        "workload": workload, "workload_args": {"batch": 1}, "engine": "tvm" if is_tvm else "machine code",
        "engine_version": "0.28", "engine_config": {}, "target": '{"kind": "llvm"}', "build_config": {},
        "env_name": "made up", "hw_model": "Made-up CPU x 2", "runtime_config": {"threads": 1},
        "execution_config": {"number": 10, "repeat": 10}, "execution_elapsed_ms_mean": ran,
        "execution_elapsed_ms_std": ran * 0.004,
    }  # fmt: skip


def write_data(story: Story, home: Home, night: int) -> None:
    """What the experiments of a night measured, taken into the store."""
    rng = np.random.default_rng([7, night])
    data = {
        experiment: [make_record(story, experiment, workload, night, rng) for workload in POINTS[experiment]]
        for experiment in POINTS
    }
    for experiment, records in data.items():
        home.data(experiment).mkdir(parents=True, exist_ok=True)
        if has_failed(story, experiment, night):
            continue
        common.write_json(home.data_file(experiment, story.stamp(night)), {
            "schema_version": 1, "timestamp": story.stamp(night), "tvm_hash": commit_of(story.build(night)),
            "records": records, "environment": {"machine": machine_of(story, night)},
            "night": {
                "artifact": artifact_of(story, night), "fingerprint": "f", "machine": "made-up",
                "reference": {"key": "wheel-0.27", "version": "0.27.0"},
            },
        }, durable=False)  # fmt: skip
    with store.open_for_writing(home.store_file) as opened:
        for experiment in POINTS:
            opened.ingest(home.data(experiment), experiment)


def machine_of(story: Story, night: int) -> dict[str, Any]:
    """What the night knew of its machine: somebody left it saving power."""
    governor = "powersave" if story.machine_factor(night) > 1 else "performance"
    return {"host": "made-up", "cpu_model": "Made-up CPU", "governor": governor}


def has_failed(story: Story, experiment: str, night: int) -> bool:
    return (experiment, night) == (story.failed_experiment, story.failed)


def seal_operators(story: Story, home: Home, night: int) -> None:
    """The raw measurements of the networks: their operators, profiled in some processes."""
    rng = np.random.default_rng([8, night])
    with tempfile.TemporaryDirectory() as folder:
        processes = [Path(folder, str(process)) for process in range(PROFILED)]
        for process in processes:
            process.mkdir()
            facts = {"machine": {"host": "made-up"}, "engine": {"tvm_hash": commit_of(story.build(night))}}
            with Capture(process, facts) as capture:
                for workload in POINTS["cnn_comp"]:
                    profile(story, capture, make_record(story, "cnn_comp", workload, night, rng), night, rng)
        place = home.root / "tmp" / "raw" / "cnn_comp" / f"raw_{story.stamp(night)}"
        place.parent.mkdir(parents=True, exist_ok=True)
        sealing.seal(processes, place)


def profile(story: Story, capture: Capture, record: Mapping[str, Any], night: int, rng: np.random.Generator) -> None:
    """Put one point's operators into a raw database."""
    workload = record["workload"]
    columns = {name: record[name] for name in ("workload_args", "engine_config", "build_config", "runtime_config")}
    point = {"workload": workload, "values": {}, "engine": "tvm", "target": record["target"], "columns": columns,
             "group": "all"}  # fmt: skip
    more = math.expm1(story.effect(workload, night))
    spans, begin = [], 0
    for operator, share in SHARES.items():
        ms = POINTS["cnn_comp"][workload] * (share + more * (operator == SLOWER_OPERATOR))
        spans.append(OperatorSpan(0, operator, begin, round(ms * 1e6 * math.exp(rng.normal(0, SCATTER)))))
        begin += spans[-1].duration_ns
    capture.end(capture.begin(point), samples=[Sample(begin, 1)], operators=spans, passes=[], regions=[])


def make_job(story: Story, experiment: str, night: int) -> JobResult:
    """How an experiment's stages went."""
    at = story.stamp(night)
    steps = [StepResult(stage, OK, "", at, 20.0) for stage in ("precheck", "run", "analyze", "visualize", "summarize")]
    if has_failed(story, experiment, night):
        steps[1] = StepResult("run", FAILED, f"exit status 1: {BROKE}", at, 4.5, f"Traceback ...\n{BROKE}\n")
        steps[2:] = [StepResult(step.stage, BLOCKED, "run failed", at) for step in steps[2:]]
    return JobResult("experiment", experiment, TITLES[experiment], "Made-up numbers.", tuple(steps))


def write_night(story: Story, home: Home, night: int, state: str) -> None:
    """The record of a night, with what is new in its TVM."""
    build, before = story.build(night), story.build(max(0, night - 1))
    new = COMMITS if build == story.slower else COMMITS[1 : 2 + build % 3] if build != before else ()
    at = common.parse_stamp(story.stamp(night)).isoformat()
    commits = [
        {"sha": commit_of(build, position), "author": author, "date": at, "title": title, "folders": [folder]}
        for position, (title, author, folder) in enumerate(new)
    ]
    since = {**artifact_of(story, max(0, night - 1)), "stamp": story.stamp(max(0, night - 1)), "more": 0}
    artifact = artifact_of(story, night) | {
        "asked": [{"remote": REMOTE, "branch": "main"}],
        "since": {name: since[name] for name in ("stamp", "key", "version", "commit", "more")} | {"commits": commits},
    }
    jobs = tuple(make_job(story, experiment, night) for experiment in POINTS)
    record = Night(
        story.stamp(night), state, elapsed_s=TOOK.total_seconds(), artifacts=(artifact,), jobs=jobs,
        notes=("All numbers of this home are made up.",),
    )  # fmt: skip
    common.write_json(home.night_file(record.stamp), record.to_json(), durable=False)


def write_config(home: Home, port: int) -> None:
    """The sample's config, with the experiments that are planted and a mail for everybody."""
    shutil.copytree(REPOSITORY / "sample-dashboard-home" / "config", home.config_file.parent)
    mail = {"kind": "email", "server": f"127.0.0.1:{port}", "security": "none", "from": "dashboard@demo.example.org",
            "to": ["compilers@demo.example.org"]}  # fmt: skip
    common.write_json(home.config_file, {**common.read_json(home.config_file), "routes": {"mail": mail}})
    for folder in [*home.config_file.parent.glob("*/*/")]:
        if folder.name not in {*TITLES, "stat_alerts", "website", "routes"}:
            shutil.rmtree(folder)
    for name, title in TITLES.items():
        told = {"active": True, "title": title, "description": "Made-up numbers."}
        common.write_json(home.config("experiment", name) / "config.json", told)
    alerts = home.config("subsystem", "stat_alerts") / "config.json"
    common.write_json(alerts, {**common.read_json(alerts), "confirm_seconds": 0})  # there is no TVM to measure again


class Mailbox(socketserver.ThreadingTCPServer):
    """A mail server that keeps each mail as a text in `folder`."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.folder, self.night = folder, ""
        folder.mkdir(parents=True)

    def keep(self, content: bytes) -> None:
        mail = email.message_from_bytes(content, policy=email.policy.default)
        body = mail.get_body(("plain",))
        assert isinstance(body, email.message.EmailMessage)
        number = sum(1 for _ in self.folder.iterdir()) + 1
        headers = "".join(f"{name}: {mail[name]}\n" for name in ("From", "To", "Subject"))
        (self.folder / f"{number:02}-{self.night}.txt").write_text(f"{headers}\n{body.get_content()}", encoding="utf-8")


class Conversation(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs that is alone with it."""

    server: Mailbox

    def handle(self) -> None:
        self._answer("220 demo")
        for line in self.rfile:
            verb = line[:4].upper()
            if verb == b"DATA":
                self._answer("354 go on")
                self.server.keep(b"".join(line.removeprefix(b".") for line in iter(self.rfile.readline, b".\r\n")))
            self._answer("221 bye" if verb == b"QUIT" else "250 ok")

    def _answer(self, words: str) -> None:
        self.wfile.write(f"{words}\r\n".encode())


@contextlib.contextmanager
def receive_mail(folder: Path) -> Iterator[Mailbox]:
    with Mailbox(folder) as mailbox:
        threading.Thread(target=mailbox.serve_forever, daemon=True).start()
        yield mailbox
        mailbox.shutdown()


def load(subsystem: str) -> ModuleType:
    """The code that a subsystem's script runs, in this process: programs would take minutes to start sixty times."""
    sys.path.insert(0, str(REPOSITORY / "subsystem" / subsystem))
    return importlib.import_module(subsystem)


def run(subsystem: Subsystem[Any], name: str, home: Home, stamp: str) -> None:
    home.output(name).mkdir(parents=True, exist_ok=True)
    os.environ["TVMDASH_NIGHT"] = stamp
    if subsystem.main([str(home.config("subsystem", name)), str(home.output(name)), str(home.root)]):
        raise SystemExit(f"{name}, {stamp}: {read_status(home.output(name)).message}")
    (home.output(name) / STATUS_FILE).unlink()  # a night takes it into its record


def make(root: Path, story: Story) -> Home:
    """The home: all nights in turn, and the site."""
    home = Home(root)
    home.nights.mkdir(parents=True)
    alerts, routes = load("stat_alerts").StatAlerts(), load("routes").Routes()
    publishing = load("website").publishing
    with receive_mail(root / "mail") as mailbox:
        write_config(home, mailbox.server_address[1])
        for night in range(story.nights):
            mailbox.night = story.stamp(night)
            write_data(story, home, night)
            if night >= story.slower - 1:
                seal_operators(story, home, night)
            write_night(story, home, night, "running")
            run(alerts, "stat_alerts", home, mailbox.night)
            record = home.read_night(mailbox.night)
            publishing.publish(home, record, home.output("website"), common.parse_stamp(mailbox.night) + TOOK)
            run(routes, "routes", home, mailbox.night)
            write_night(story, home, night, COMPLETE)
            if (night + 1) % 10 == 0:
                sys.stdout.write(f"{night + 1} of {story.nights} nights\n")
                sys.stdout.flush()
    return home


def find_last_night(now: datetime.datetime) -> datetime.datetime:
    """The last 03:15 before now."""
    today = now.replace(hour=3, minute=15, second=0, microsecond=0)
    return today if today <= now else today - datetime.timedelta(days=1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="run_dashboard.sh --demo", description="Make a home of made-up nights.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="the home; it is not there yet")
    root = parser.parse_args(arguments).folder.absolute()
    if root.exists():
        parser.error(f"{root} is there already. Name a folder that is not.")
    home = make(root, Story(last=find_last_night(common.utc_now())))
    mails = sorted((root / "mail").iterdir())
    sys.stdout.write(f"{len(mails)} mails: {root / 'mail'}\nPage: {home.output('website') / 'index.html'}\n")


if __name__ == "__main__":
    main()
