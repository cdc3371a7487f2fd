"""Files of records as a fuzzer leaves them, and what reading one may do: give records or refuse, nothing else."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

from tvmdash import records
from tvmdash.errors import DashboardError
from tvmdash.records import Record
from tvmdash.records.exchange import FORMATS, PlacedRecord, keep, read_records, records_in, write_records

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "data_v1.json"
_PARQUET_SHARE = 0.1
"""DuckDB takes ten times as long as the others."""
_VALUES = (
    b"null", b"NaN", b"1e999", b"-1", b"[]", b"{}", b"true", b"9" * 400, b"\x00", b"\xff\xfe", b'"\\ud800"',
    b'"../../x"', b'"/etc/x"', b'"a/b"', b'"\\u0000"', b'"20261399T999999Z"', b'"' + b"x" * 300 + b'"', b"[" * 200,
)  # fmt: skip


def read_hostile(folder: Path, count: int, seed: int) -> Counter[str]:
    """Read so many mutations of a good file in each format; how many gave records, how many were refused.

    What else is raised goes through. Everything that is written lies below `folder`/kept.
    """
    chance, outcomes = random.Random(seed), Counter[str]()
    seeds = _make_seeds(folder)
    for _ in range(count):
        style = "parquet" if chance.random() < _PARQUET_SHARE else chance.choice([n for n in FORMATS if n != "parquet"])
        path = folder / "in"
        path.write_bytes(_mutate(seeds[style], chance))
        try:
            kept = keep(read_records(path, style), folder / "kept")
        except DashboardError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        for file in kept.written:
            _use(file, folder)
    path.unlink()
    return outcomes


def _use(file: Path, folder: Path) -> None:
    """Do with a data file what a home would, and export it in the format that reads most of it."""
    try:
        list(records.read_data(file, "relax_opt").values())
        write_records(folder / "out.tvm-0.1", records_in(file), "tvm-0.1")
    except DashboardError:
        pass
    else:
        (folder / "out.tvm-0.1").unlink()
    file.unlink()


def _make_seeds(folder: Path) -> dict[str, bytes]:
    value = json.loads(GOLDEN.read_text())
    rows = [PlacedRecord("relax_opt", "20261121T031500Z", value["tvm_hash"], Record.from_json(value["records"][0]))]
    seeds = {}
    for style in FORMATS:
        write_records(folder / "seed", rows, style)
        seeds[style] = (folder / "seed").read_bytes()
        (folder / "seed").unlink()
    return seeds


def _mutate(raw: bytes, chance: random.Random) -> bytes:
    """Bits turned, bytes lost, a value replaced, the end cut off: one such change or several."""
    changed = bytearray(raw)
    for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
        place, kind = chance.randrange(max(1, len(changed))), chance.randrange(5)
        if kind == 0 and changed:
            changed[place] = chance.randrange(256)
        elif kind == 1:
            del changed[place : place + chance.randrange(1, 20)]
        elif kind == 2:
            changed[place:place] = chance.choice(_VALUES)
        elif kind == 3:
            begin = changed.find(b":", place) + 1
            ends = [end for end in (changed.find(b",", begin), changed.find(b"}", begin)) if end > 0]
            changed[begin : min(ends, default=begin)] = chance.choice(_VALUES)
        elif chance.random() < 0.2:
            del changed[place:]
    return bytes(changed)
