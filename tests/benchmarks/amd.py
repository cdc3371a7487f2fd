"""AMD's own rocpd beside ours over one database of AMD's, in one run; TVMDASH_ROCM_SYSTEMS names its source.

CPU seconds, the least of three, from nothing: opening the database is in them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "shared" / "python")]

import duckdb  # noqa: E402, F401 - its import is not timed
import numpy  # noqa: E402, F401

from tests.tvmtraces import amd_source  # noqa: E402
from tvmtraces import connect  # noqa: E402
from tvmtraces.sealing import seal  # noqa: E402

CALLS = 100_000
STATEMENTS = (
    "SELECT * FROM top",
    "SELECT name, count(*) AS calls, sum(duration) AS total FROM kernels GROUP BY name ORDER BY total DESC",
    "SELECT * FROM kernels LIMIT 5",
    "SELECT count(*) FROM regions",
)


def measure(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(3):
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


def main() -> None:
    schema = amd_source.schemas()["current"]
    rocpd = amd_source.import_rocpd(schema)
    with tempfile.TemporaryDirectory() as name:
        path, sealed = Path(name) / "amd.db", Path(name) / "sealed"
        amd_source.write(path, schema, [0], processes=1, calls=CALLS, holes=False)
        seal(path, sealed)

        def ask_theirs(sql: str) -> None:
            opened = rocpd.RocpdImportData([str(path)])
            opened.execute(sql).fetchall()
            opened.connection.close()

        def ask_ours(sql: str, place: Path) -> None:
            with connect(place) as traces:
                traces.execute(sql).fetchall()

        print(f"{CALLS:,} of each kind, CPU seconds: AMD's rocpd, ours, ours of the sealed run")
        for sql in STATEMENTS:
            works = [lambda: ask_theirs(sql), lambda: ask_ours(sql, path), lambda: ask_ours(sql, sealed)]  # noqa: B023
            print("  ".join(f"{measure(work):6.3f}" for work in works), sql, flush=True)


if __name__ == "__main__":
    main()
