"""How long writing a million slices takes, in CPU seconds and bytes: python3 tests/benchmarks/perfetto.py [--slices N].

The aim is one CPU second for Perfetto. `columns`: slices in columns, one after the other in one lane, as a reader has
them; `overlapping`: nine of ten meet another, so that each has to be placed; `one by one`: as objects.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "shared" / "python"))

from tvmtraces.convert import (
    Event,
    Names,
    Slice,
    Slices,
    Written,
    write_perfetto,
    write_rocpd,
)
from tvmtraces.convert.events import names

MOMENT = 1_795_000_000_000_000_000


def slices(count: int, longest: int) -> Slices:
    """Operators of one lane that begin 1 to 3 microseconds after one another."""
    chance = numpy.random.default_rng(7)
    starts = MOMENT + numpy.cumsum(chance.integers(1_000, 3_000, count))
    called = Names(chance.integers(0, 200, count), [f"fused_operator_{number}" for number in range(200)])
    texts = [names([text] * count) for text in ("relax_opt [4711]", "operators", "operator")]
    return Slices(texts[0], texts[1], called, texts[2], starts, chance.integers(100, longest, count))


def measure(label: str, write: Callable[[Path, Iterable[Event]], Written], events: Iterable[Event], count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        written = write(Path(folder) / "trace.out", events)
        spent = time.process_time() - started
        size = sum(path.stat().st_size for path in written.paths)
    print(f"{label:24} {spent * 1e6 / count:6.2f} CPU s for a million slices, {size / count:6.1f} bytes a slice")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slices", type=int, default=1_000_000)
    count = parser.parse_args().slices
    apart, overlapping = slices(count, 1_000), slices(count, 9_000)
    columns = (apart.name.texts(), apart.start_ns.tolist(), apart.duration_ns.tolist())
    single = [
        Slice("p", "operators", name, "operator", start, last) for name, start, last in zip(*columns, strict=True)
    ]
    measure("perfetto, columns", write_perfetto, [apart], count)
    measure("perfetto, overlapping", write_perfetto, [overlapping], count)
    measure("perfetto, one by one", write_perfetto, iter(single), count)
    for label, write in (("rocpd", write_rocpd),):
        measure(label, write, [apart], count)


if __name__ == "__main__":
    main()
