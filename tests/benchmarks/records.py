"""The store with much history: `python tests/benchmarks/records.py [--nights N] [--records N]`.

240 series over 3,650 nights: how long it takes to open all of them and add up every number, as arrays and as Python
numbers, what the alerts and the graphs of an experiment make of them, and taking in one more night. Beside it, what the
same points cost as rows of SQLite. Seconds of the clock, and of CPU.
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
sys.path[:0] = [str(ROOT), str(ROOT / "shared" / "python"), str(ROOT / "subsystem" / "stat_alerts")]

import numpy as np  # noqa: E402
from judging.table import make_table  # noqa: E402

from tvmdash.experiment import plots  # noqa: E402 - from the repository
from tvmdash.series import store  # noqa: E402
from tvmdash.series.packed import floats, integers  # noqa: E402
from tvmdash.series.store import Series  # noqa: E402

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


def show(words: str, work: Callable[[], object], repeats: int = 7) -> None:
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
        "points": "series, ?, value, std, low, high, samples, code, alike, content",
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
    chance, first = random.Random(0), datetime.datetime(2016, 1, 1, 3, 15, tzinfo=datetime.UTC)
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

        metrics = options.records * len(METRICS)
        nights = options.nights + len(stamps[options.nights :])

        def read(metric: str | None = None, add: Callable[[Series], float] = in_arrays) -> None:
            with store.open_for_reading(index, folder, EXPERIMENT) as opened:
                found = opened.series(EXPERIMENT, metric)
            assert sum(map(add, found)) > 0
            assert sum(len(one.values) for one in found) == nights * (options.records if metric else metrics)

        def rows() -> None:
            with store.open_for_reading(index, folder, EXPERIMENT) as opened:
                assert sum(in_python(opened.points_of(outline)) for outline in opened.outlines(EXPERIMENT)) > 0

        def judged() -> None:
            with store.open_for_reading(index, folder, EXPERIMENT) as opened:
                series, versions = opened.series(EXPERIMENT), {EXPERIMENT: opened.versions(EXPERIMENT)}
            table = make_table(series, stamps, 0, versions)
            assert np.isfinite(table.values).sum() == nights * metrics

        def drawn() -> None:
            history = plots.read_history(EXPERIMENT, (), folder, index)
            assert plots.default_plots(history)
            assert plots.default_summary(history).title

        show(f"open all {metrics} series and add up six columns, as arrays", read)
        show("the same, as Python numbers", lambda: read(add=in_python), 3)
        show("the series of one metric", lambda: read("run_time"))
        show("the table that the alerts judge, over all nights", judged)
        show("the plots and the summary of the experiment, as data", drawn, 1)
        show("the same points as rows of SQLite, series by series", rows, 2)


def in_arrays(one: Series) -> float:
    """The sum of every number of a series."""
    known = (floats(column) for column in (one.values, one.low, one.high, one.std, one.samples))
    return sum(float(np.nansum(column)) for column in known) + float((integers(one.code) > 0).sum())


def in_python(one: Series) -> float:
    """The same, of Python's numbers."""
    known = (one.values, one.low, one.high, one.std, one.samples)
    return sum(sum(value or 0.0 for value in column) for column in known) + sum(map(bool, one.code))


if __name__ == "__main__":
    main()
