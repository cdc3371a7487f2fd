"""What a night costs with little and with much history: `python3 tests/benchmarks/history.py [NIGHTS ...]`.

Makes a home of 10 experiments with 24 series each, and the website, for each number of nights, lets one night index
and draw what is there, and measures the next one: wall and CPU seconds with all of its children, and bytes written.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
EXPERIMENTS = 10
SOURCE = """
import sys
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer

class Steady(Experiment):
    engines = (Engine("python", facts=lambda: EngineFacts("1", "abc")),)
    axes = (Axis("size", "workload_args"), Axis("mode", "build_config"))

    def points(self, config):
        return [Point(f"toy.w{w}", {"size": w, "mode": m}, group="all", target="cpu", engine="python")
                for w in range(4) for m in range(6)]

    def prepare(self, point, config, seed):
        data = list(range(1000))
        return Prepared(timer=python_timer(lambda: sum(data)))

if __name__ == "__main__":
    sys.exit(Steady().main())
"""
STAGES = ("run", "analyze", "visualize", "summarize")


def make_home(root: Path, artifacts: Path) -> tuple[Path, Path]:
    """A home and its experiments' folder."""
    home, code = root / "home", root / "experiments"
    for number in range(EXPERIMENTS):
        folder, config = code / f"steady{number}", home / "config" / "experiments" / f"steady{number}"
        folder.mkdir(parents=True)
        config.mkdir(parents=True)
        (folder / "steady.py").write_text(SOURCE)
        (folder / "fields.json").write_text('{"include": ["timing"]}')
        for stage in STAGES:
            script = folder / f"{stage}.sh"
            script.write_text(f'#!/usr/bin/env bash\nset -euo pipefail\nexec python3 steady.py {stage} "$@"\n')
            script.chmod(0o755)
        (config / "config.json").write_text('{"active": true, "number": 1, "repeat": 7}')
    website = home / "config" / "subsystem" / "website"
    website.mkdir(parents=True)
    (website / "config.json").write_text('{"active": true}')
    top = {"tmp_data_dir": "tmp", "backup_dir": "backup", "setup_dir": "setup", "artifact_dir": str(artifacts)}
    (home / "config" / "config.json").write_text(json.dumps(top))
    return home, code


def add_history(home: Path, nights: int) -> None:
    """Copies of the one night that is there, a day apart, with noise, before it."""
    last = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    stamps = [f"{last - datetime.timedelta(days=day):%Y%m%dT%H%M%SZ}" for day in range(nights - 1)]
    noise = random.Random(0)
    for folder in (home / "results" / "experiments" / "data").iterdir():
        model: dict[str, Any] = json.loads(next(folder.glob("data_*.json")).read_text())
        for stamp in stamps:
            night = copy.copy(model)
            night["timestamp"] = stamp
            night["records"] = [_varied(record, noise.gauss(1, 0.02)) for record in model["records"]]
            (folder / f"data_{stamp}.json").write_text(json.dumps(night))
    (model_night,) = (home / "results" / "nights").glob("*.json")
    for stamp in stamps:
        shutil.copy(model_night, model_night.with_name(f"{stamp}.json"))


def _varied(record: dict[str, Any], factor: float) -> dict[str, Any]:
    info = {**record["additional_info"]}
    info["execution_elapsed_ms_median"] *= factor
    return {**record, "additional_info": info}


def run_night(home: Path, code: Path) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and MB written of one night, children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    argv = [sys.executable, "-m", "dashboard", "run", str(home), "--experiments-dir", str(code), "--no-rebuild-tvm"]
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'shared' / 'python'}"}
    subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, (after.ru_oublock - before.ru_oublock) * 512 / 1e6


def main() -> None:
    """Print a row for each number of nights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nights", type=int, nargs="*", default=[10, 3650])
    parser.add_argument("--artifacts", type=Path, required=True, help="a folder with a TVM artifact in it")
    arguments = parser.parse_args()
    print("nights  first night, s  next night: wall, s  CPU, s  MB written")
    for nights in arguments.nights:
        with tempfile.TemporaryDirectory() as folder:
            home, code = make_home(Path(folder), arguments.artifacts.absolute())
            run_night(home, code)
            add_history(home, nights)
            first = run_night(home, code)[0]
            wall, cpu, written = run_night(home, code)
            print(f"{nights:6}  {first:14.1f}  {wall:19.1f}  {cpu:6.1f}  {written:10.1f}", flush=True)


if __name__ == "__main__":
    main()
