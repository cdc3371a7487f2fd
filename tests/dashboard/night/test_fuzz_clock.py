"""Clocks that are turned, by seconds or by decades, between nights and in them: nothing measured is lost."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.archive import archive
from tests.dashboard import homes
from tests.fuzzing import the_same_each_time
from tvmdash import common

DAY_S = 86400.0
TURNS = (0.0, 0.0, 1.0, -1.0, -3600.0, 7 * DAY_S, -400 * DAY_S, 3650 * DAY_S, -15000 * DAY_S, 27000 * DAY_S)
CLOCKS = st.lists(st.lists(st.sampled_from(TURNS), min_size=1, max_size=6), min_size=4, max_size=4)


@the_same_each_time(1, 25)
@given(CLOCKS)
def test_nights_by_any_clock_lose_nothing(
    tmp_path_factory: pytest.TempPathFactory, tvm_artifact_folder: Path, clocks: list[list[float]]
) -> None:
    root = tmp_path_factory.mktemp("clock")
    home = homes.make_home(
        root, tvm_artifact_folder, schedule="0 3 * * *", keep_raw_nights=2, keep_archives=3, randomize=True
    )
    leave = 'printf \'{"value": 1.5, "by": "%s"}\' "$TVMDASH_NIGHT" > "$2/raw.json"'
    home.experiment("good", run=f"{homes.BEGIN}{leave}\n{homes.says('run')}\n")
    home.subsystem("page")
    for number, clock in enumerate(clocks, start=1):
        before = count_data(home)
        done = home.run_at(clock)
        assert done.code == 0, done.output
        now = count_data(home)
        assert not before - now
        assert sum(now.values()) == number
        stamp = next(iter(now - before))[1]
        assert common.is_stamp(stamp)
        assert (root / "tmp" / "raw" / "good" / f"raw_{stamp}.zip").is_file()
        assert not [each.broken for each in archive.archives(root / "backup") if each.broken]
        for verb, *options in (("status",), ("watch", "--verbose"), ("doctor", "--no-drill"), ("rebuild",)):
            looked = home.run_at(clock[-1:], *options, verb=verb)
            assert looked.code in {0, 1}, looked.output


def count_data(home: homes.HomeForTests) -> collections.Counter[tuple[bytes, str]]:
    """The data files of the home, also those that were set aside, with the night that they say they are of."""
    files = (home.path / "results").rglob("data_*.json*")
    return collections.Counter((path.read_bytes(), homes.read(path)["night"]["stamp"]) for path in files)
