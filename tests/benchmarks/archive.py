"""What an archive costs, by the length of a home's history: `python tests/benchmarks/archive.py [NIGHTS ...]`."""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "shared" / "python")]

from dashboard.archive.archive import archive, prune, verify  # noqa: E402

EXPERIMENTS = 10
ARCHIVED_NIGHTS = 12


def add_night(home: Path, night: int) -> None:
    """One data file of about 2 kB and one status a stage for each experiment."""
    samples = random.Random(night)
    for index in range(EXPERIMENTS):
        data = home / f"results/experiments/data/experiment_{index}"
        status = home / f"results/experiments/status/experiment_{index}"
        data.mkdir(parents=True, exist_ok=True)
        status.mkdir(parents=True, exist_ok=True)
        records = [{"series": series, "elapsed_ms": samples.random()} for series in range(24)]
        (data / f"data_{night:08d}T031500Z.json").write_text(json.dumps(records, indent=1))
        for stage in ("run", "analyze", "visualize", "summarize"):
            (status / f"{stage}.json").write_text(json.dumps({"success": True, "message": f"night {night}"}))


def measure(folder: Path, nights: int) -> None:
    """Print seconds and bytes of the first archive, of one of an unchanged home, and of one after a night."""
    home, backup = folder / "home", folder / "backup"
    for night in range(nights):
        add_night(home, night)
    first_s, new_bytes = timed_archive(home, backup, "first")
    report(nights, "first archive, everything new", [first_s], [new_bytes])
    before: list[tuple[float, int]] = []
    after: list[tuple[float, int]] = []
    for night in range(nights, nights + ARCHIVED_NIGHTS):
        before.append(timed_archive(home, backup, f"{night}-before"))
        add_night(home, night)
        after.append(timed_archive(home, backup, f"{night}-after"))
    report(nights, "before a night, nothing new", *map(list, zip(*before, strict=True)))
    report(nights, "after a night", *map(list, zip(*after, strict=True)))
    started = time.monotonic()
    squashed = len(prune(backup, 16))
    report(nights, f"prune of {squashed} archives", [time.monotonic() - started], [])
    started = time.monotonic()
    verify(backup)
    report(nights, "verify of everything", [time.monotonic() - started], [])


def timed_archive(home: Path, backup: Path, name: str) -> tuple[float, int]:
    """Seconds and bytes of one archive."""
    started = time.monotonic()
    result = archive(home, backup, name, exclude=())
    return time.monotonic() - started, result.new_bytes


def report(nights: int, what: str, elapsed_s: list[float], new_bytes: list[int]) -> None:
    """Print the medians of one kind of work."""
    size = f"{statistics.median(new_bytes):12,.0f} bytes" if new_bytes else ""
    print(f"{nights:6} nights  {what:32} {statistics.median(elapsed_s):8.3f} s {size}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nights", nargs="*", type=int, default=[10, 3650])
    parser.add_argument("--folder", help="where the homes are made; default: the temporary folder")
    options = parser.parse_args()
    for nights in options.nights:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            measure(Path(folder), nights)


if __name__ == "__main__":
    main()
