"""A site of any size without a home: the pages that scripts fill, with data as docs/reference/website-data.md says."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

REPO = Path(__file__).resolve().parents[2]
WEBSITE = REPO / "subsystem" / "website"
LAST = datetime.datetime(2026, 11, 21, 3, 15, tzinfo=datetime.UTC)
NIGHTS_OF_A_VERSION = 3
_RENDER = """
import sys; sys.path[:0] = sys.argv[3:]
from pathlib import Path
from files.static import copy_static
from render import page as html
copy_static(html.STATIC, Path(sys.argv[1]))
for page, template in html.WITH_SCRIPTS.items():
    text = html.render(template, html.Frame(page, "", "2026-11-21T06:00:00Z", 36), first_series=sys.argv[2])
    Path(sys.argv[1], page + ".html").write_text(text, encoding="utf-8")
"""


def make_site(folder: Path, *, series: int, nights: int, seed: int = 1) -> Path:
    """A site with so many series of so many nights each; the shards hold all of them, and none is past."""
    folder.mkdir()
    argv = [sys.executable, "-c", _RENDER, str(folder), f"{0:016x}", str(WEBSITE), str(REPO / "shared" / "python")]
    subprocess.run(argv, check=True, timeout=300)
    stamps = [f"{LAST - datetime.timedelta(days=nights - 1 - at):%Y%m%dT%H%M%SZ}" for at in range(nights)]
    rng = np.random.default_rng(seed)
    (folder / "series").mkdir()
    shards = [_shard(number, stamps, rng) for number in range(series)]
    for shard in shards:
        shared = {name: shard[name] for name in ("stamp", "tvm", "tvms", "machine", "machines")}
        own = {
            **{name: each for name, each in shard.items() if name not in shared},
            "at": None,
            "low": 400,
            "high": 400,
        }
        text = json.dumps({"schema_version": 2, **shared, "series": [own]}, separators=(",", ":"))
        script = f'(globalThis.tvmdashFiles ??= {{}})["series/{shard["id"]}.json"]=\n{text}\n'
        (folder / "series" / f"{shard['id']}.js").write_text(script, encoding="ascii")
    _write(folder / "index.json", _index(shards, stamps))
    return folder


def _shard(number: int, stamps: list[str], rng: np.random.Generator) -> dict[str, Any]:
    nights = len(stamps)
    level, noise = float(10 ** rng.uniform(-1, 2)), float(rng.uniform(0.003, 0.02))
    values = level * np.exp(noise * rng.standard_normal(nights))
    step = nights // 2
    values[step:] *= 1.1 if number % 3 else 0.9
    versions = -(-nights // NIGHTS_OF_A_VERSION)
    column = [float(f"{value:.7g}") for value in values]
    return {
        "id": f"{number:016x}", "name": f"exp{number % 10} net{number} run time (opt_level 3)",
        "experiment": f"exp{number % 10}", "metric": "run_time", "unit": "ms", "direction": "lower",
        "labels": {"workload": f"network.net{number}", "engine": ("tvm", "torch")[number % 2], "opt_level": "3"},
        "stamp": stamps, "value": column, "low": [value * 0.996 for value in column],
        "high": [value * 1.004 for value in column], "std": [0.01] * nights, "samples": [10] * nights,
        "tvm": [at // NIGHTS_OF_A_VERSION for at in range(nights)], "tvms": [f"{at:010x}" for at in range(versions)],
        "machine": [0] * nights, "machines": ["bench-1, Linux 6.8.0"], "code": [at // 9 for at in range(nights)],
        "noise": noise, "steps": [{"stamp": stamps[step], "size": 0.1, "kind": "compiler"}],
        "annotations": [], "incidents": [],
    }  # fmt: skip


def _index(shards: list[dict[str, Any]], stamps: list[str]) -> dict[str, Any]:
    names = sorted({shard["experiment"] for shard in shards})
    night = {"state": "ok", "tvm": [shards[0]["tvms"][-1]], "machine": "bench-1, Linux 6.8.0"}
    return {
        "schema_version": 1, "written": "2026-11-21T06:00:00Z", "night": stamps[-1], "title": "Synthetic",
        "max_age_hours": 36, "stamps": stamps[-30:], "nights": dict.fromkeys(stamps[-30:], night),
        "years": sorted({int(stamp[:4]) for stamp in stamps}),
        "experiments": [
            {"name": name, "title": name, "page": f"experiments/{name}.html", "active": True} for name in names
        ],
        "verdicts": {},
        "series": {
            **{key: [shard[key] for shard in shards] for key in ("id", "name", "metric", "unit", "labels")},
            "pack": [shard["id"] for shard in shards],
            "experiment": [names.index(shard["experiment"]) for shard in shards],
            "direction": ["lower"] * len(shards), "last": [shard["value"][-1] for shard in shards],
            "low": [shard["low"][-1] for shard in shards], "high": [shard["high"][-1] for shard in shards],
            "last_stamp": [stamps[-1]] * len(shards), "change": [None] * len(shards), "state": ["steady"] * len(shards),
            "verdict": ["quiet"] * len(shards), "grade": ["A"] * len(shards), "visible": [0.01] * len(shards),
            "points": [len(stamps)] * len(shards), "past": [0] * len(shards), "incident": [None] * len(shards),
        },
    }  # fmt: skip


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, separators=(",", ":")), encoding="ascii")
