"""Of many sealed runs a question opens those alone that can hold what its filters leave: all others are broken here."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tvmtraces.traces_for_tests import BEGIN_NS, write_raw
from tvmdash.errors import DashboardError
from tvmtraces import Filters, Window, connect
from tvmtraces.sealing import seal

HOSTS, NIGHTS, EXPERIMENTS = ("", "box", "epyc"), ("20261120T031500Z", "20261121T031500Z"), ("cnn", "gemm")
DAY_NS = 86_400 * 10**9
QUESTION = "SELECT count(*) FROM kernels"
CALLS = 3
"""Of each run."""


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run for each host, night and experiment, in folders as a home has them."""
    root, patch = tmp_path_factory.mktemp("traces"), pytest.MonkeyPatch()
    for at, (host, experiment) in enumerate(itertools.product(HOSTS, EXPERIMENTS)):
        job = f"{experiment}~{host}" if host else experiment
        for days, night in enumerate(NIGHTS):
            begun_ns = BEGIN_NS + days * DAY_NS + at * 10**9
            patch.setenv("TVMDASH_NIGHT", night)
            patch.setenv("TVMDASH_JOB", job)
            patch.setattr(time, "time_ns", itertools.count(begun_ns).__next__)
            place = root / "raw" / f"{job}_{night}"
            write_raw(place, host=f"node-{host or 'home'}", begun_ns=begun_ns)
            seal([place], root / "sealed" / job / f"raw_{night}")
    patch.undo()
    return root / "sealed"


def list_runs(sealed: Path) -> list[str]:
    return sorted(path.parent.relative_to(sealed).as_posix() for path in sealed.glob("*/*/catalogue.json"))


def break_runs(sealed: Path, target: Path, kept: Sequence[str]) -> Path:
    """A copy in which every Parquet file but those of the runs `kept` has its size and nothing else."""
    for path in (path for path in sealed.rglob("*") if path.is_file()):
        copy = target / path.relative_to(sealed)
        copy.parent.mkdir(parents=True, exist_ok=True)
        run = path.parent.relative_to(sealed).as_posix()
        is_whole = path.suffix == ".json" or run in kept
        copy.write_bytes(path.read_bytes() if is_whole else bytes(path.stat().st_size))
    return target


def pick(sealed: Path, *parts: str) -> list[str]:
    """The runs in whose folders' names all parts stand."""
    return [run for run in list_runs(sealed) if all(part in f"{run}/" for part in parts)]


CASES = (
    (Filters(nights=[NIGHTS[1]]), (NIGHTS[1],)),
    (Filters(hosts=["node-box"]), ("~box/",)),
    (Filters(hosts=["epyc"]), ("~epyc/",)),
    (Filters(experiments=["gemm*"]), ("gemm",)),
    (Filters(experiments=["cnn~box"], nights=["20261120*"]), ("cnn~box/", NIGHTS[0])),
    (Filters(hosts=["b[oO]x"], experiments=["gemm*"], nights=[NIGHTS[1]]), ("gemm~box/", NIGHTS[1])),
    (Filters(hosts=["nobody"]), ("nothing",)),
)


@pytest.mark.parametrize(("filters", "parts"), CASES)
def test_a_question_opens_the_runs_that_it_names_alone(
    sealed: Path, tmp_path: Path, filters: Filters, parts: tuple[str, ...]
) -> None:
    needed = pick(sealed, *parts)
    broken = break_runs(sealed, tmp_path, needed)
    with connect(broken, filters=filters) as traces:
        assert traces.execute(QUESTION).fetchall() == [(CALLS * len(needed),)]


def test_what_sensors_said_is_looked_for_where_a_chosen_process_ran_alone(sealed: Path, tmp_path: Path) -> None:
    needed = pick(sealed, "cnn~box/", NIGHTS[0])
    filters = Filters(experiments=["cnn~box"], nights=[NIGHTS[0]])
    with connect(break_runs(sealed, tmp_path, needed), filters=filters) as traces:
        assert traces.execute("SELECT count(*) FROM telemetry").fetchall() == [(1,)]


def test_a_question_about_a_time_opens_the_runs_of_that_time_alone(sealed: Path, tmp_path: Path) -> None:
    begin_ns = BEGIN_NS + DAY_NS - 10**9
    filters = Filters(window=Window(str(begin_ns), str(begin_ns + DAY_NS)))
    later = pick(sealed, NIGHTS[1])
    with connect(break_runs(sealed, tmp_path, later), filters=filters) as traces:
        assert traces.execute(QUESTION).fetchall() == [(CALLS * len(later),)]


def test_what_a_question_needs_is_opened(sealed: Path, tmp_path: Path) -> None:
    """Else the tests above could not fail."""
    broken = break_runs(sealed, tmp_path, pick(sealed, "cnn~box/"))
    with (
        pytest.raises(DashboardError, match="verify"),
        connect(broken, filters=Filters(experiments=["gemm~box"])) as traces,
    ):
        traces.execute(QUESTION).fetchall()
