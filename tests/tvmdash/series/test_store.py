"""The index over all nights."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from tvmdash import records
from tvmdash.series import store
from tvmdash.series.packed import floats, integers

NIGHTS = [f"202611{day:02}T031500Z" for day in range(1, 6)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    for index, stamp in enumerate(NIGHTS):
        add(made, stamp, {"tvm_hash": f"h{index}", "a": index, "b": {"c": index / 2}})
    return made


def add(folder: Path, stamp: str, value: Any) -> None:
    (folder / f"data_{stamp}.json").write_text(value if isinstance(value, str) else json.dumps(value))


def filled(path: Path, folder: Path) -> int:
    with store.open_for_writing(path) as opened:
        return opened.ingest(folder, "exp")


def series(path: Path | None, folder: Path, *, since: str = "") -> dict[str, tuple[tuple[str, ...], tuple[float, ...]]]:
    with store.open_for_reading(path, folder, "exp") as opened:
        return {one.labels["path"]: (one.stamps, one.values) for one in opened.series("exp", since=since)}


def test_series_run_over_all_nights_in_order(tmp_path: Path, folder: Path) -> None:
    assert filled(tmp_path / "s", folder) == 5
    found = series(tmp_path / "s", folder)
    assert found == {
        "$.a": (tuple(NIGHTS), (0.0, 1.0, 2.0, 3.0, 4.0)),
        "$.b.c": (tuple(NIGHTS), (0.0, 0.5, 1.0, 1.5, 2.0)),
    }
    assert series(None, folder) == found, "without the index, the data files say the same"
    assert series(tmp_path / "nowhere", folder) == found


def test_only_what_is_new_is_read(tmp_path: Path, folder: Path) -> None:
    filled(tmp_path / "s", folder)
    for stamp in NIGHTS:
        add(folder, stamp, "never read again")
    add(folder, "20261106T031500Z", {"a": 9})
    assert filled(tmp_path / "s", folder) == 1
    assert series(tmp_path / "s", folder)["$.a"][1][-2:] == (4.0, 9.0)
    assert filled(tmp_path / "s", folder) == 0


def test_since_leaves_out_earlier_points(tmp_path: Path, folder: Path) -> None:
    add(folder, "20260101T000000Z", {"old": 1})
    filled(tmp_path / "s", folder)
    assert series(tmp_path / "s", folder, since=NIGHTS[3])["$.a"] == ((NIGHTS[3], NIGHTS[4]), (3.0, 4.0))
    assert series(tmp_path / "s", folder, since=NIGHTS[3])["$.old"] == ((), ())


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"records": 3}', '{"a": 1e999}', '{"a": 1' + "0" * 400 + "}", "[" * 5000]
)
def test_a_broken_file_costs_its_own_night_only(
    tmp_path: Path, folder: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    add(folder, NIGHTS[2], text)
    with caplog.at_level(logging.WARNING):
        assert filled(tmp_path / "s", folder) == 5
    assert f"data_{NIGHTS[2]}.json" in caplog.text
    assert series(tmp_path / "s", folder)["$.a"][1] == (0.0, 1.0, 3.0, 4.0)
    with store.open_for_reading(tmp_path / "s", folder, "exp") as opened:
        assert opened.stamps("exp") == [stamp for stamp in NIGHTS if stamp != NIGHTS[2]]


def damaged(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)


def of_another_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize("spoil", [damaged, of_another_version])
def test_an_index_that_cannot_be_used_is_read_around_and_made_anew(tmp_path: Path, folder: Path, spoil: Any) -> None:
    path = tmp_path / "s"
    filled(path, folder)
    wanted = series(path, folder)
    spoil(path)
    assert series(path, folder) == wanted
    assert filled(path, folder) == 5
    assert series(path, folder) == wanted


def test_an_index_that_is_only_busy_is_not_thrown_away(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    filled(path, folder)
    before = path.stat().st_ino

    def busy(_: Path | str) -> sqlite3.Connection:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(store, "_connect", busy)
    with pytest.raises(sqlite3.OperationalError):
        store.open_for_writing(path)
    assert path.stat().st_ino == before


def test_reading_goes_on_while_the_night_writes(tmp_path: Path, folder: Path) -> None:
    path, faults = tmp_path / "s", []
    filled(path, folder)
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            if len(series(path, folder)["$.a"][0]) < 5:
                faults.append("short")

    reader = threading.Thread(target=read)
    reader.start()
    for day in range(10, 28):
        add(folder, f"202611{day}T031500Z", {"a": day})
        filled(path, folder)
    done.set()
    reader.join()
    assert faults == []
    assert len(series(path, folder)["$.a"][0]) == 23


def test_experiments_are_kept_apart(tmp_path: Path, folder: Path) -> None:
    filled(tmp_path / "s", folder)
    with store.open_for_writing(tmp_path / "s") as opened:
        assert opened.ingest(folder, "other") == 5
        assert {one.id for one in opened.series("other")}.isdisjoint(one.id for one in opened.series("exp"))
        assert opened.series("exp", "no_such_metric") == []


def test_versions_of_the_nights_are_kept_and_a_broken_night_has_none(tmp_path: Path, folder: Path) -> None:
    add(folder, NIGHTS[2], "{")
    filled(tmp_path / "s", folder)
    with store.open_for_reading(tmp_path / "s", folder, "exp") as opened:
        assert opened.versions("exp") == {stamp: f"h{index}" for index, stamp in enumerate(NIGHTS) if index != 2}


def test_a_changed_unit_begins_another_series_of_the_same_id(tmp_path: Path) -> None:
    key = records.SeriesKey("exp", "run_time", {"workload": "a.b"})
    with store.open_for_writing(tmp_path / "s") as opened:
        numbers = [
            opened._number(records.PointValue(key, unit, direction="lower", value=1.0)) for unit in ("ms", "s", "ms")
        ]
    assert numbers[0] == numbers[2] != numbers[1]


def test_equal_code_has_equal_numbers_that_fit_the_index() -> None:
    numbers = {store.code_number(text) for text in ("a", "b", "a")}
    assert len(numbers) == 2
    assert all(0 < number < 1 << 31 for number in numbers)


def test_outlines_counts_and_points_are_those_of_the_series(tmp_path: Path, folder: Path) -> None:
    add(folder, "20261106T031500Z", {"tvm_hash": "h6", "a": 9})
    filled(tmp_path / "s", folder)
    with store.open_for_reading(tmp_path / "s", folder, "exp") as opened:
        outlines = {one.labels["path"]: one for one in opened.outlines("exp")}
        whole = {one.labels["path"]: one for one in opened.series("exp")}
        for year, before in (("2026", 0), ("2027", 1)):
            counts = opened.counts("exp", year=year)
            assert {path: counts[one.number] for path, one in outlines.items()} == {
                "$.a": store.Count(6, 6 * before, "20261106T031500Z"),
                "$.b.c": store.Count(5, 5 * before, NIGHTS[4]),
            }
        for path, one in outlines.items():
            assert opened.points_of(one) == whole[path]
        assert opened.points_of(outlines["$.a"], since=NIGHTS[1], until=NIGHTS[3]).values == (1.0, 2.0)
        assert opened.counts("other") == {}


def test_points_are_counted_by_year_in_whatever_order_they_come(tmp_path: Path, folder: Path) -> None:
    filled(tmp_path / "s", folder)
    for stamp in ("20261231T235959Z", "20241231T235959Z", "20250101T000000Z"):
        add(folder, stamp, {"a": 9})
        filled(tmp_path / "s", folder)
    with store.open_for_reading(tmp_path / "s", folder, "exp") as opened:
        (number,) = (one.number for one in opened.outlines("exp") if one.labels["path"] == "$.a")
        for year, past in (("", 0), ("2025", 1), ("2026", 2), ("2027", 8)):
            assert opened.counts("exp", year=year)[number] == store.Count(8, past, "20261231T235959Z")


def test_an_index_made_anew_says_so(tmp_path: Path, folder: Path) -> None:
    born = []
    for _ in range(2):
        filled(tmp_path / "s", folder)
        with store.open_for_reading(tmp_path / "s", folder, "exp") as opened:
            born.append(opened.born)
            assert not opened.in_memory
        filled(tmp_path / "s", folder)
        with store.open_for_reading(tmp_path / "s", folder, "exp") as opened:
            assert opened.born == born[-1]
        (tmp_path / "s").unlink()
    assert born[0] != born[1]
    with store.open_for_reading(None, folder, "exp") as opened:
        assert opened.in_memory


def test_the_machine_and_the_failures_of_each_night_are_kept(tmp_path: Path, folder: Path) -> None:
    machine = {"host": "bench", "hw_model": "EPYC x 2", "cpu_microcode": "0xa1", "governor": None, "affinity": [0, 1]}
    failures = [{"workload": "a.b", "values": {}, "error": "no"}]
    told = {"schema_version": 1, "tvm_hash": "x", "records": [], "failures": failures}
    add(folder, "20261106T031500Z", {**told, "environment": {"machine": machine}})
    add(folder, "20261107T031500Z", {"a": 1, "environment": "of a stranger"})
    filled(tmp_path / "s", folder)
    with store.open_for_reading(tmp_path / "s", folder, "exp") as opened:
        assert opened.machines("exp")["20261106T031500Z"] == "bench, EPYC x 2, microcode 0xa1"
        assert opened.machines("exp")["20261107T031500Z"] == ""
        assert (opened.failures("exp")["20261106T031500Z"], opened.failures("exp")[NIGHTS[0]]) == (1, 0)


def test_all_series_at_once_are_what_each_is_by_itself(tmp_path: Path) -> None:
    """Series that begin late, skip nights, or do not know an interval; the one way reads nights, the other series."""
    golden = json.loads((Path(__file__).resolve().parents[2] / "golden" / "data_v1.json").read_text())
    model = golden["records"][0]
    for day in range(1, 8):
        found = []
        for number in range(4):
            if day % (number + 1) == 0:
                info = {**model["additional_info"], "samples": 10 * number + day}
                if day == 6:
                    info.pop("samples")
                if day == 4:
                    info.pop("execution_elapsed_ms_low", None)
                found.append({**model, "workload": f"network.n{number}", "additional_info": info})
        (tmp_path / f"data_2026110{day}T000000Z.json").write_text(json.dumps({**golden, "records": found}))
    with store.open_for_reading(None, tmp_path, "exp") as opened:
        assert opened.size("exp") == len(opened.outlines("exp"))
        for since, until in (("", "~"), ("20261104T000000Z", "~"), ("20270101T000000Z", "~"), ("", "20261104T000000Z")):
            span = {"since": since, "until": until}
            one_by_one = [opened.points_of(outline, **span) for outline in opened.outlines("exp")]
            assert opened.series("exp", **span) == one_by_one
            assert opened.points_between("exp", since, until) == sum(len(one.stamps) for one in one_by_one)
        timed = {one.labels["workload"]: one for one in opened.series("exp", "run_time")}
        assert [stamp[7] for stamp in timed["network.n2"].stamps] == ["3", "6"]
        assert timed["network.n2"].samples == (23, None)
        assert timed["network.n3"].low == (None,)


@pytest.mark.parametrize("way", ["all series", "one series"])
def test_columns_are_told_as_python_numbers_and_as_arrays(tmp_path: Path, way: str) -> None:
    model = json.loads((Path(__file__).resolve().parents[2] / "golden" / "data_v1.json").read_text())
    for day, code in ((1, "aa"), (2, None), (3, "aa")):
        info = {**model["records"][0]["additional_info"], "samples": day, "module_hash": code}
        info["execution_elapsed_ms_low"] = day / 2
        if code is None:
            for name in ("samples", "module_hash", "execution_elapsed_ms_low"):
                info.pop(name)
        night = {**model, "records": [{**model["records"][0], "additional_info": info}]}
        (tmp_path / f"data_2026110{day}T000000Z.json").write_text(json.dumps(night))
    with store.open_for_reading(None, tmp_path, "exp") as opened:
        if way == "all series":
            (one,) = opened.series("exp", "run_time")
        else:
            (one,) = (opened.points_of(outline) for outline in opened.outlines("exp") if outline.metric == "run_time")
    assert list(one.low) == [0.5, None, 1.5]
    assert (one.low[0], one.low[1], one.low[-1], one.low[1:]) == (0.5, None, 1.5, (None, 1.5))
    assert (len(one.low), one.low == (0.5, None, 1.5), one.low == (0.5, None, 1.0)) == (3, True, False)
    assert (one.samples[1], one.samples[2], list(one.samples)) == (None, 3, [1, None, 3])
    assert repr(floats(one.low)) == "array([0.5, nan, 1.5])"
    assert repr(floats(one.samples)) == "array([ 1., nan,  3.])"
    number = store.code_number("aa")
    assert (list(one.code), integers(one.code).tolist()) == ([number, None, number], [number, 0, number])
    with pytest.raises(IndexError):
        one.low[3]


def test_a_number_that_is_declared_one_night_stays_the_series_that_it_was(tmp_path: Path) -> None:
    nights = [{}, {"mean": {"unit": "ms", "direction": "lower", "kind": "time", "name": "time"}}, {}]
    for at, metrics in enumerate(nights):
        path = tmp_path / f"data_2026112{at}T031500Z.json"
        path.write_text(json.dumps({"tvm_hash": "x", "metrics": metrics, "mean": 2.0}))
    with store.open_for_writing(tmp_path / "store.sqlite") as opened:
        opened.ingest(tmp_path, "e")
        (one,) = opened.series("e")
    assert len(one.stamps) == 3
    assert (one.unit, one.direction, one.kind, one.title) == ("ms", "lower", "time", "time")
