"""The store with much history: `python tests/benchmarks/records.py [--nights N] [--records N]`.

240 series over 3,650 nights: how long opening all of them takes, one of them, and taking in one more night. Beside it,
what the same points cost as rows of SQLite. Seconds of the clock, and of CPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "shared" / "python")]

from tvmdash import store  # noqa: E402

EXPERIMENT = "relax_opt"
METRICS = ("execution_elapsed_ms_median", "compile_time", "code_size", "device_memory_usage")


def data(stamp: str, points: int, chance: random.Random) -> dict[str, Any]:
    """A night's data.json of `points` records with four metrics each."""
    model = json.loads((ROOT / "tests" / "golden" / "data_v1.json").read_text(encoding="utf-8"))
    found = []
    for number in range(points):
        info = {**model["records"][0]["additional_info"], **{name: chance.gauss(100, 1) for name in METRICS}}
        for name in METRICS[2:]:
            info[name] = int(info[name])
        found.append({**model["records"][0], "additional_info": info, "workload": f"network.number{number}"})
    return {**model, "timestamp": stamp, "records": found}


def show(words: str, work: Callable[[], object], repeats: int = 3) -> None:
    """Print the best of `repeats`."""
    found = []
    for _ in range(repeats):
        begun, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - begun, time.process_time() - cpu))
    walls, cpus = zip(*found, strict=True)
    print(f"{words:60}{min(walls):9.3f} ({min(cpus):.3f})", flush=True)


def repeat(index: Path, model: str, stamps: Sequence[str]) -> None:
    """Put the points of one night that is in the index under other stamps, too: years of data files take minutes."""
    columns = {
        "nights": "experiment, ?, tvm_hash, failures, error, machine",
        "points": "series, ?, value, std, low, high, samples, code",
        "packed": "experiment, ?, points",
    }
    with sqlite3.connect(index) as database:
        for table in columns:
            query = f"CREATE TEMP TABLE model_{table} AS SELECT * FROM {table} WHERE stamp = ?"
            database.execute(query, (model,))
        for stamp in stamps:
            for table, chosen in columns.items():
                database.execute(f"INSERT INTO {table} SELECT {chosen} FROM model_{table}", (stamp,))
    database.close()


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=3650)
    parser.add_argument("--records", type=int, default=60)
    options = parser.parse_args()
    chance, first = random.Random(0), datetime.datetime(2016, 1, 1, 3, 15, tzinfo=datetime.timezone.utc)
    stamps = [f"{first + datetime.timedelta(days=day):%Y%m%dT%H%M%SZ}" for day in range(options.nights + 5)]
    with tempfile.TemporaryDirectory() as name:
        folder, index = Path(name) / "data", Path(name) / "store.sqlite"
        folder.mkdir()
        (folder / f"data_{stamps[0]}.json").write_text(json.dumps(data(stamps[0], options.records, chance)))
        with store.open_for_writing(index) as opened:
            opened.ingest(folder, EXPERIMENT)
            repeat(index, stamps[0], stamps[1 : options.nights])
            for stamp in stamps[options.nights :]:
                (folder / f"data_{stamp}.json").write_text(json.dumps(data(stamp, options.records, chance)))
                show("take in one more night", lambda: opened.ingest(folder, EXPERIMENT), 1)
        print(f"{index.stat().st_size / 1e6:.0f} MB")

        def read(metric: str | None = None) -> None:
            with store.open_for_reading(index, folder, EXPERIMENT) as opened:
                found = opened.series(EXPERIMENT, metric)
                points = sum(len(series.values) for series in found)
                assert points == (len(stamps) * options.records * (1 if metric else len(METRICS)))

        def rows() -> None:
            with store.open_for_reading(index, folder, EXPERIMENT) as opened:
                for outline in opened.outlines(EXPERIMENT):
                    opened.points_of(outline)

        show(f"open all {options.records * len(METRICS)} series", read)
        show("open the series of one metric", lambda: read("run_time"))
        show("the same points as rows of SQLite, series by series", rows)


if __name__ == "__main__":
    main()
