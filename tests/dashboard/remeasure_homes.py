"""Homes whose experiment is as fast as its artifact: small stand-in artifacts, real nights, no TVM."""

from __future__ import annotations

import datetime
import json
import math
import platform
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import LAST_USED, Artifact, library_sizes, write_manifest
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tvmdash import common

PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
NAME = "speed"
WORKLOADS = ("mlp", "bert")
SIGMA = 0.004

RUN = r'''#!/usr/bin/env -S python3 -S
"""Times that depend on the artifact, on the machine's state (a file) and on chance (a counter is its seed).

It is started a thousand times: importing pathlib and random takes as long as all the rest.
"""
import json, math, os, sys
from _random import Random as Generator


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


class Random(Generator):
    """random.Random, as far as it is wanted."""

    rest = None

    def gauss(self):
        z, self.rest = self.rest, None
        if z is None:
            angle, radius = self.random() * 2 * math.pi, math.sqrt(-2 * math.log(1 - self.random()))
            z, self.rest = math.cos(angle) * radius, math.sin(angle) * radius
        return z


home = os.path.dirname(os.environ["TVMDASH_HOME"])
lab = json.loads(read(f"{home}/lab.json"))
log = f"{home}/runs"
number = len(read(log).splitlines()) if os.path.exists(log) else 0
points = os.environ.get("TVMDASH_POINTS")
listed = json.loads(read(points)) if points else []
asked = [(point.get("workload") or point["path"]).partition(".")[2] for point in listed] if points else None
build = os.environ["TVMDASH_ARTIFACT"]
entry = {"build": build, "points": asked, "night": os.environ["TVMDASH_NIGHT"], "seed": os.environ["TVMDASH_SEED"]}
entry["minutes"] = float(os.environ.get("TVMDASH_MINUTES", "nan"))
with open(log, "a") as file:
    file.write(json.dumps({**entry, "setup": os.path.exists("setup"), "tmp": os.environ["TMPDIR"]}) + "\n")
if build in lab.get("broken", ()):
    sys.exit("this build crashes")
if points and lab.get("hang"):
    import time

    write(f"{home}/hangs", str(os.getpid()))
    time.sleep(1000)
slow = lab["slow"].get(build, {})
rng = Random(number)
values = {}
for at, name in enumerate(lab["workloads"]):
    if asked is None or name in asked or lab.get("ignores_points"):
        once = lab.get("first_only", {}).get(name, 1.0) if points is None else 1.0
        factor = slow.get(name, 1.0) * lab.get("machine", 1.0) * once
        values[name] = (1 + at) * factor * 2.718281828 ** (lab["sigma"] * rng.gauss())
same = {"workload_args": {}, "engine": "fake", "engine_config": {}, "target": "cpu", "build_config": {}}
same |= {"runtime_config": {}, "env_name": "lab", "hw_model": "lab"}
records = [
    {
        "timestamp": "2026-11-21T10:19:13+00:00",
        "schema_version": 1,
        "additional_info": {"docker_tag": None, "docker_hash": None, "execution_elapsed_ms_median": value},
        "workload": f"net.{name}",
        "engine_version": "1",
        "execution_config": {},
        "execution_elapsed_ms_mean": value,
        "execution_elapsed_ms_std": 0.0,
        **same,
    }
    for name, value in values.items()
]
for record in records:
    record["additional_info"] |= {"module_hash": lab["code"]} if "code" in lab else {}
whole = {"schema_version": 1, "tvm_hash": build, "records": records, "failures": []}
write(f"{sys.argv[2]}/times.json", json.dumps(values if lab.get("foreign") else whole))
write(f"{sys.argv[2]}/status.json", '{"success": true, "message": "measured"}')
'''
FINDS_HOME = 'home = os.path.dirname(os.environ["TVMDASH_HOME"])\n'
assert FINDS_HOME in RUN, "tests put more lines after it"
ANALYZE = f"""{homes.BEGIN}cp "$2/times.json" "$3/data.json"\n{homes.says("analyze", "analyzed")}\n"""
SETUP = homes.good("setup", 'echo setup >> "$TVMDASH_HOME/../setups"')


def point(workload: str) -> dict[str, Any]:
    """What names a point of the experiment."""
    empty: dict[str, Any] = {"workload_args": {}, "engine_config": {}, "build_config": {}, "runtime_config": {}}
    return {"workload": f"net.{workload}", "engine": "fake", "target": "cpu", **empty}


def put_artifact(folder: Path, version: str) -> Artifact:
    """An artifact that a night takes for a wheel of TVM; its library is a few bytes."""
    key = f"wheel-{version}-ffi-0.1.14-{PYTHON}-{platform.machine()}"
    site = folder / key / "site"
    site.mkdir(parents=True)
    (site / "libtvm.so").write_bytes(b"x" * 100)
    facts = {"python": PYTHON, "machine": platform.machine(), "tvm_ffi": "0.1.14"}
    made = Artifact(
        key, "wheel", version, None, folder / key, (site,), (site,), facts, {}, library_sizes(folder / key, (site,))
    )
    write_manifest(made)
    (folder / key / LAST_USED).touch()
    return made


@dataclass(frozen=True)
class Lab:
    """A home with the experiment `speed`, what its artifacts are like, and what was run."""

    home: HomeForTests

    def change(self, **changes: Any) -> None:
        """Change how builds and the machine behave from now on."""
        homes.write(self.home.root / "lab.json", {**self.state, **changes})

    @property
    def state(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.home.root / "lab.json").read_text())
        return value

    def runs(self) -> list[dict[str, Any]]:
        """Every run of the experiment so far."""
        log = self.home.root / "runs"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def remeasure(self, rounds: list[dict[str, Any]], *options: str) -> tuple[homes.Finished, list[dict[str, Any]]]:
        """`remeasure` as a person calls it; its end, and the rounds in RESULT."""
        request, result = self.home.root / "request.json", self.home.root / "result.json"
        homes.write(request, rounds)
        result.unlink(missing_ok=True)
        done = self.home.run(str(request), str(result), *options, verb="remeasure")
        return done, homes.read(result)["rounds"] if result.exists() else []


FIRST = datetime.datetime(2026, 1, 1, 3, 15, tzinfo=datetime.UTC)


def past(lab: Lab, nights: int, artifact: Artifact, *, seed: int = 1, name: str = NAME, first: int = 0) -> None:
    """Data files of earlier nights on that artifact, as the experiment would have left them."""
    rng = random.Random(seed + first)
    slow = lab.state["slow"].get(artifact.key, {})
    for night in range(first, first + nights):
        values = {
            workload: (1 + at) * slow.get(workload, 1.0) * math.exp(SIGMA * rng.gauss(0, 1))
            for at, workload in enumerate(WORKLOADS)
        }
        stamp = common.stamp_of(FIRST + datetime.timedelta(days=night))
        identity = {"stamp": stamp, "fingerprint": "past", "config": {}, "seed": 0, "artifact": artifact.identity()}
        whole = {"timestamp": stamp, "tvm_hash": artifact.key, "night": identity}
        path = lab.home.home.data_file(name, stamp)
        if lab.state.get("foreign"):
            homes.write(path, {**whole, **values})
        else:
            code = lab.state.get("code")
            records = [_record(workload, value, code) for workload, value in values.items()]
            homes.write(path, {**whole, "schema_version": 1, "records": records})


def _record(workload: str, value: float, code: str | None) -> dict[str, Any]:
    labels = {"env_name": "lab", "hw_model": "lab", "engine_version": "1", "execution_config": {}}
    times = {"execution_elapsed_ms_mean": value, "execution_elapsed_ms_std": 0.0}
    info = {"docker_tag": None, "docker_hash": None, "execution_elapsed_ms_median": value}
    info |= {"module_hash": code} if code else {}
    fixed = {"timestamp": "2026-11-21T10:19:13+00:00", "schema_version": 1, "additional_info": info}
    return {**fixed, **point(workload), **labels, **times}


def make_lab(root: Path, **config: Any) -> Lab:
    """A lab without artifacts; `put_artifact(lab.home.root / "shelf", ...)` adds one."""
    home = homes.make_home(root, Path("../shelf"), telemetry_rate=0, **config)
    home.experiment(NAME, run=RUN, analyze=ANALYZE, setup=SETUP)
    homes.write(home.root / "lab.json", {"slow": {}, "workloads": WORKLOADS, "sigma": SIGMA})
    return Lab(home)


def make_lab_for_tries(root: Path, pairs: int = 5) -> Lab:
    """A lab whose experiment is measured in turn, so many pairs a run, and leaves two times that do not scatter.

    TVM 0.27.0 (`new` in its state) is 10 % slower in one of them than 0.26.0 (`old`).
    """
    lab = make_lab(root)
    new, old = (put_artifact(lab.home.root / "shelf", version) for version in ("0.27.0", "0.26.0"))
    lab.change(foreign=True, sigma=0, slow={new.key: {"mlp": 1.1}}, new=new.key, old=old.key)
    measure_in_turn(lab, pairs)
    return lab


def measure_in_turn(lab: Lab, pairs: int = 5) -> None:
    """Let the experiment be measured in turn, in so many pairs a run."""
    fields = {"beside_reference": "runs", "metrics": {"*": {"kind": "time", "unit": "ms", "direction": "lower"}}}
    homes.write(lab.home.code / "experiments" / NAME / "fields.json", fields)
    homes.write(lab.home.home.config("experiment", NAME) / "config.json", {"active": True, "pairs": pairs})
