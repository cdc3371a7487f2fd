"""A home's index: what can be asked of it in SQL, and that it can be made again of the files at any time."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tvmdash.store.small_home import NIGHTS, key_of, make_small_home, send_in_slack, tell_incident
from tests.tvmtraces.traces_for_tests import write_raw
from tvmdash import verdict
from tvmdash.common.files import lock, mounts
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.series import store as series_store
from tvmdash.store import TABLES, connect, fill, keep_messages, update
from tvmdash.verdict import ledger

EVERYTHING = [f'SELECT * FROM "{name}"' for name in TABLES]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_small_home(tmp_path / "home")


def index(home: Home) -> None:
    with series_store.open_for_writing(home.store_file) as opened:
        fill(home, opened)


def ask(home: Home, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with connect(home.root) as opened:
        return opened.execute(sql, parameters).fetchall()


def everything(home: Home) -> dict[str, list[tuple[Any, ...]]]:
    return {sql: sorted(ask(home, sql), key=repr) for sql in EVERYTHING}


def test_every_table_that_is_told_of_has_rows(home: Home) -> None:
    index(home)
    assert {sql for sql, rows in everything(home).items() if not rows} == set()


def test_a_build_of_a_commit_has_its_time(home: Home) -> None:
    index(home)
    assert ask(home, "SELECT min(commit_time), count(commit_time) FROM tvms") == [("20261121T010000Z", len(NIGHTS))]


@pytest.mark.parametrize("line", [{"messages": 3}, {"messages": [{"route": "mail"}]}])
def test_a_wrong_line_of_messages_costs_itself_only(home: Home, line: dict[str, Any]) -> None:
    ledger.append(home, NIGHTS[0], ledger.MESSAGES, line)
    keep_messages(home, NIGHTS[1])
    keep_messages(home, NIGHTS[2])
    assert sum(ledger.MESSAGES in path.read_text() for path in ledger.list_files(home)) == 1
    index(home)
    assert ask(home, "SELECT count(*) FROM messages WHERE route = 'mail'") == [(1,)]


def test_five_questions_take_a_statement_each(home: Home) -> None:
    index(home)
    worst = ask(
        home,
        "SELECT name, ratio FROM ratios JOIN series USING (series) WHERE night = (SELECT max(night) FROM ratios)"
        " ORDER BY ratio DESC LIMIT 5",
    )
    assert [(name.split()[1], ratio) for name, ratio in worst] == [("resnet18", 1.06), ("mlp", 1.0)]
    since = ask(
        home,
        "SELECT since, level_before, level FROM levels JOIN series USING (series) WHERE workload = 'resnet18'"
        " AND metric = 'run_time' AND until IS NULL",
    )
    assert since == [(NIGHTS[3], 10.0, 10.6)]
    size = ask(
        home,
        "SELECT night, value FROM measurements JOIN series USING (series) WHERE metric = 'code_size'"
        " AND workload = 'mlp' ORDER BY night",
    )
    assert size == [(night, 4096.0) for night in NIGHTS]
    costs = ask(
        home,
        "SELECT workload, avg(value) FROM measurements JOIN series USING (series) WHERE metric = 'compile_time'"
        " GROUP BY workload ORDER BY 2 DESC",
    )
    assert costs == [("resnet18", 900.0), ("mlp", 300.0)]


def test_passes_and_samples_are_asked_beside_the_index(home: Home) -> None:
    assert ask(home, "SELECT name FROM passes") == [], "none is kept"
    write_raw(home.root / "tmp" / "raw" / "nets" / f"raw_{NIGHTS[-1]}", sample_ns=(2_000_000, 4_000_000))
    passes = "SELECT name, sum(duration) AS ns FROM passes WHERE duration > ? GROUP BY name ORDER BY ns DESC"
    with connect(home.root) as opened:
        assert opened.execute(passes, (1,)).fetchall() == [("FoldConstant", 500), ("FuseOps", 300)]
        assert opened.execute("SELECT count(*) FROM samples JOIN trials ON trials.id = trial").fetchall() == [(2,)]
        assert opened.execute("SELECT kind FROM trials WHERE kind = 'try'").fetchall() == [("try",)]
        with pytest.raises(DashboardError, match=r"(?s)no such table: series.*on passes has the views of traces alone"):
            opened.execute("SELECT * FROM passes JOIN series")
        with pytest.raises(DashboardError, match=r"no such table: odd.*measurements.*passes"):
            opened.execute("SELECT * FROM odd")


def test_since_when_a_machine_is_as_it_is_can_be_asked(home: Home) -> None:
    for night in NIGHTS[3:]:
        data = json.loads(home.data_file("nets", night).read_bytes())
        data["environment"]["machine"]["cpu_microcode"] = "0xb"
        home.data_file("nets", night).write_text(json.dumps(data))
    index(home)
    changes = ask(
        home,
        "SELECT json_extract(json, '$.cpu_microcode') AS microcode, min(night) FROM runs JOIN machines USING (facts)"
        " WHERE experiment = 'nets' GROUP BY microcode ORDER BY 2",
    )
    assert changes == [(None, NIGHTS[0]), ("0xb", NIGHTS[3])]
    assert ask(home, "SELECT count(*) FROM machines") == [(2,)], "what most nights say is there once"
    samples = ask(home, "SELECT night, samples, std FROM measurements WHERE std IS NOT NULL AND night = ?", NIGHTS[0])
    assert samples == [(NIGHTS[0], 30, 0.01)] * 2


def test_an_index_made_again_says_the_same(home: Home) -> None:
    index(home)
    before = everything(home)
    home.store_file.unlink()
    assert everything(home) == before
    index(home)
    assert everything(home) == before


def test_what_people_did_since_the_night_is_known(home: Home) -> None:
    settle(home)
    index(home)
    tell_incident(home, "state", {"state": "fixed", "words": "reverted", "end": NIGHTS[-1]})
    assert ask(home, "SELECT state FROM incidents") == [("fixed",)]
    (tried,) = home.tries.glob("*.json")
    tried.with_name(f"{NIGHTS[0]}.json").write_text(tried.read_text().replace(NIGHTS[-1], NIGHTS[0]))
    assert ask(home, "SELECT night FROM trials WHERE kind = 'try' ORDER BY 1") == [(NIGHTS[0],), (NIGHTS[-1],)]


def test_while_a_night_runs_nothing_of_it_is_seen(home: Home) -> None:
    settle(home)
    index(home)
    tell_incident(home, "state", {"state": "fixed", "words": "reverted", "end": NIGHTS[-1]})
    held = lock.take(home.lock_file)
    assert held
    with held:
        assert ask(home, "SELECT state FROM incidents") == [("acknowledged",)]
    assert ask(home, "SELECT state FROM incidents") == [("fixed",)]


def test_an_index_that_has_measurements_alone_is_completed(home: Home) -> None:
    index(home)
    before = everything(home)
    home.store_file.unlink()
    with series_store.open_for_writing(home.store_file) as opened:
        opened.ingest(home.data("nets"), "nets")
    assert everything(home) == before


def settle(home: Home) -> None:
    """Let the home be an hour old: what has only just changed is read again in any case."""
    for path in (home.root / "results").rglob("*"):
        os.utime(path, (path.stat().st_mtime - 3600,) * 2)


@pytest.mark.parametrize("spoil", [b"no database at all", b""], ids=["damaged", "empty"])
def test_a_spoiled_index_is_made_again(home: Home, spoil: bytes) -> None:
    index(home)
    before = everything(home)
    home.store_file.write_bytes(spoil)
    assert everything(home) == before
    index(home)
    assert everything(home) == before


@pytest.mark.parametrize("table", ["_points", "_taken", "_verdicts"])
def test_an_index_whose_inside_is_damaged_is_made_again(home: Home, table: str) -> None:
    settle(home)
    update(home)
    before = everything(home)
    damage(home, table)
    if table == "_points":
        with pytest.raises(DashboardError, match="rebuild HOME"):
            ask(home, "SELECT * FROM measurements")
    elif table == "_taken":
        assert everything(home) == before, "the files are read instead"
    add_night(home, "20261130T031500Z")
    update(home)
    assert set(ask(home, "SELECT series, night FROM verdicts")) >= {row[1::-1] for row in before[VERDICTS]}
    assert len(ask(home, "SELECT * FROM measurements")) > len(before[EVERYTHING[1]])


VERDICTS = 'SELECT * FROM "verdicts"'


def damage(home: Home, table: str) -> None:
    """Fill the first page of a table's tree with nonsense, as a failing disk might."""
    with sqlite3.connect(home.store_file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    with home.store_file.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)


def add_night(home: Home, night: str) -> None:
    """Data of one more night, and another verdict on the first."""
    first = home.data_file("nets", NIGHTS[0])
    home.data_file("nets", night).write_text(first.read_text().replace(NIGHTS[0], night))
    verdict_before = ledger.read_night(home, NIGHTS[0])[ledger.VERDICT]
    ledger.append(home, NIGHTS[0], ledger.VERDICT, {**verdict_before, "headline": "again"})


@pytest.mark.parametrize("version", [13, 99], ids=["older", "newer"])
def test_the_index_of_another_version_is_read_around_and_made_again(home: Home, version: int) -> None:
    index(home)
    before = everything(home)
    with sqlite3.connect(home.store_file) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    assert everything(home) == before
    index(home)
    assert everything(home) == before


def test_what_a_later_night_says_replaces_what_was_said(home: Home) -> None:
    index(home)
    tell_incident(home, "state", {"state": "fixed", "words": "reverted", "end": NIGHTS[-1]})
    record = json.loads(home.night_file(NIGHTS[0]).read_bytes())
    home.night_file(NIGHTS[0]).write_text(json.dumps({**record, "state": "interrupted"}))
    ledger.append(home, NIGHTS[1], ledger.PAGE, {"sentence": ["good", "Nothing moved"], "series": {}, "summaries": []})
    index(home)
    assert ask(home, "SELECT state, is_open, ended FROM incidents") == [("fixed", 0, NIGHTS[-1])]
    assert ask(home, "SELECT state FROM nights ORDER BY night LIMIT 1") == [("interrupted",)]
    assert ask(home, "SELECT sentence FROM nights WHERE night = ?", NIGHTS[1]) == [("Nothing moved",)]


def test_a_file_that_is_broken_costs_its_own_rows_only(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    home.night_file(NIGHTS[2]).write_text("{")
    home.data_file("nets", NIGHTS[1]).write_text("[]")
    (file,) = ledger.list_files(home)
    file.write_bytes(b'{"torn\n' + file.read_bytes())
    next(home.tries.glob("*.json")).write_text('{"stamp": 3}')
    index(home)
    assert [row[0] for row in ask(home, "SELECT night FROM nights WHERE state IS NOT NULL")] == [
        night for night in NIGHTS if night != NIGHTS[2]
    ]
    assert ask(home, "SELECT count(*) FROM runs WHERE error IS NOT NULL") == [(1,)]
    assert ask(home, "SELECT count(*) FROM verdicts") == [(2 * len(NIGHTS),)]
    assert "$.stamp: 3" in caplog.text
    assert "could not" in caplog.text or "passed over" in caplog.text


@pytest.mark.parametrize("text", ['{"series": 3}', "[1]", '{"a": {"asked": 1}}', '{"series": [{"id": {}}]}'])
def test_a_comparison_of_any_shape_costs_its_own_rows_only(home: Home, text: str) -> None:
    folder = home.root / "results" / "comparisons"
    folder.mkdir()
    (folder / f"{NIGHTS[0]}.json").write_text(text)
    index(home)
    assert ask(home, "SELECT DISTINCT kind FROM trials ORDER BY kind") == [("remeasure",), ("try",)]


def test_a_comparison_is_a_trial(home: Home) -> None:
    series = {"id": "s", "experiment": "nets", "metric": "run_time", "unit": "ms", "labels": {}, "name": "mlp"}
    found = {"effect": 0.05, "low": 0.04, "high": 0.06, "p": 0.001, "rounds": 6, "real": True}
    sides = {side: {"asked": f"pypi:{side}", "artifact": {}} for side in "ab"}
    folder = home.root / "results" / "comparisons"
    folder.mkdir()
    value = {**sides, "series": [{**series, "difference": found}, {**series, "id": "t", "difference": None}]}
    (folder / f"{NIGHTS[0]}.json").write_text(json.dumps({**value, "elapsed_s": 7.5}))
    index(home)
    assert ask(home, "SELECT a, b, measured_s FROM trials WHERE kind = 'compare'") == [("pypi:a", "pypi:b", 7.5)]
    assert ask(home, "SELECT series, effect, low, high, pairs FROM trial_series WHERE trial LIKE 'compare%'") == [
        ("s", 0.05, 0.04, 0.06, 6)
    ]


def test_what_a_night_measured_again_is_a_trial_for_each_two_artifacts(home: Home) -> None:
    index(home)
    told = "SELECT a, b, state, measured_s FROM trials WHERE kind = 'remeasure' ORDER BY a"
    assert ask(home, told) == [("", "b", "complete", 20.0), ("a", "b", "complete", 60.0)]
    ((series, effect, pairs),) = ask(
        home, "SELECT series, effect, pairs FROM trial_series WHERE trial LIKE 'remeasure%'"
    )
    assert (series, pairs) == (key_of("mlp"), 3)
    assert effect == pytest.approx((1.02**2 * 1.05) ** (1 / 3) - 1)


def test_who_asks_the_store_does_not_load_what_sends() -> None:
    program = (
        "import sys, tvmdash.store; print({'ssl', 'tvmdash.notify.service', 'pandas', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_messages_of_routes_and_in_slack_stand_in_one_table(home: Home) -> None:
    index(home)
    assert ask(home, "SELECT * FROM messages WHERE night = ? ORDER BY route, key", NIGHTS[-1]) == [
        ("mail", "night", NIGHTS[-1], "sent", 1, "2026-11-25T05:00:00Z", ""),
        ("slack exp_reports", NIGHTS[-1], NIGHTS[-1], "sent", 1, "2026-11-25T03:25:00Z", ""),
    ]


def test_messages_that_their_own_files_have_forgotten_are_known_for_ever(home: Home) -> None:
    nights = [f"2026{month:02}{day:02}T031500Z" for month in (3, 4, 5) for day in range(1, 29)]
    for number in range(0, len(nights), 40):
        send_in_slack(home, "digest", nights[number : number + 40])
        keep_messages(home, NIGHTS[0])
        index(home)
    before = everything(home)
    (home.output("digest") / "outbox.json").unlink()
    (home.output("routes") / "mail.json").unlink()
    home.store_file.unlink()
    index(home)
    assert everything(home) == before
    sent = "SELECT night FROM messages WHERE route = 'slack digest' AND state = 'sent' ORDER BY night"
    assert [night for (night,) in ask(home, sent)] == nights
    lines = sum(path.read_bytes().count(b"\n") for path in ledger.list_files(home))
    keep_messages(home, NIGHTS[-1])
    assert sum(path.read_bytes().count(b"\n") for path in ledger.list_files(home)) == lines, "said once"


def test_a_message_that_was_not_sent_yet_is_what_its_file_says(home: Home) -> None:
    path = home.output("routes") / "mail.json"
    waiting = {
        "schema_version": 1,
        "since": NIGHTS[0],
        "entries": [{"key": "w", "night": NIGHTS[-1], "state": "waiting"}],
    }
    path.write_text(json.dumps(waiting))
    keep_messages(home, NIGHTS[-1])
    index(home)
    assert ask(home, "SELECT key, state FROM messages WHERE route = 'mail'") == [("w", "waiting")]
    path.write_text(json.dumps({**waiting, "entries": []}))
    index(home)
    assert ask(home, "SELECT key, state FROM messages WHERE route = 'mail'") == []


def test_a_wrong_verdict_in_the_ledger_costs_its_own_night_only(home: Home) -> None:
    ledger.append(home, NIGHTS[1], ledger.VERDICT, {"series": 3, "level": "odd"})
    index(home)
    assert ask(home, "SELECT count(DISTINCT night) FROM verdicts") == [(len(NIGHTS) - 1,)]


def test_a_reader_can_neither_write_nor_reach_another_file(home: Home, tmp_path: Path) -> None:
    index(home)
    for sql in ("DELETE FROM runs", "CREATE TABLE mine (x)", f"ATTACH '{tmp_path / 'other.db'}' AS other"):
        with pytest.raises(DashboardError, match="SQL"):
            ask(home, sql)
    assert not (tmp_path / "other.db").exists()
    home.store_file.unlink()
    with pytest.raises(DashboardError, match="SQL"):
        ask(home, "DELETE FROM runs")
    with pytest.raises(DashboardError, match="series, measurements"):
        ask(home, "SELECT * FROM levls")
    with pytest.raises(DashboardError, match="is no home"):
        connect(tmp_path)


def test_rows_come_as_a_data_frame(home: Home) -> None:
    index(home)
    with connect(home.root) as opened:
        frame = opened.execute("SELECT night, value FROM measurements WHERE value > ?", (10.5,)).df()
    assert list(frame.columns) == ["night", "value"]
    assert set(frame["night"]) == set(NIGHTS)


def test_readers_see_the_last_whole_state_while_a_night_writes(home: Home) -> None:
    index(home)
    runs = ask(home, "SELECT count(*) FROM runs")
    folder = home.data("nets")
    newest = folder / "data_20261130T031500Z.json"
    newest.write_text((folder / f"data_{NIGHTS[0]}.json").read_text().replace(NIGHTS[0], "20261130T031500Z"))
    with series_store.open_for_writing(home.store_file) as opened:

        def several() -> Any:
            yield folder, "nets"
            assert ask(home, "SELECT count(*) FROM runs") == runs, "in the middle"
            yield home.data("other"), "other"

        opened.ingest_all(several())
    assert ask(home, "SELECT count(*) FROM runs") == [(runs[0][0] + 1,)]


def test_on_a_network_file_system_the_index_has_no_log(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    index(home)
    before = everything(home)
    monkeypatch.setattr(mounts, "find_network_type", lambda path: "nfs4")
    index(home)
    with sqlite3.connect(home.store_file) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()
    assert everything(home) == before


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("36 35 0:31 / /srv/my\\040home rw - nfs4 server:/x rw", "nfs4"),
        ("36 35 0:31 / /srv/my\\040home rw shared:1 - ext4 /dev/sda rw", ""),
        ("36 35 0:31 / /srv rw - cifs //server/x rw\n37 36 8:1 / /srv/my\\040home rw - xfs /dev/sdb rw", ""),
        ("36 35 8:1 / /srv/my\\040home rw - xfs /dev/sdb rw\n37 36 0:31 / /srv rw - cifs //server/x rw", ""),
        ("36 35 0:31 / /srv/\u65e5 rw - nfs s:/x rw", ""),
        ("36 35 8:1 / /srv rw - xfs /dev/sdb rw\n37 36 0:31 / /srv/my\\040home/results rw - nfs s:/x rw", "nfs"),
    ],
    ids=["network", "local", "local in network", "order does not matter", "a name beside it", "deepest counts"],
)
def test_the_deepest_mount_says_what_a_path_lies_on(
    line: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mountinfo"
    file.write_text(f"1 1 8:1 / / rw - ext4 /dev/sda rw\n{line}\n")
    monkeypatch.setattr(mounts, "_MOUNTS", file)
    assert mounts.find_network_type(Path("/srv/my home/results")) == found


def test_a_verdict_comes_out_of_the_ledger_as_it_went_in() -> None:
    series = (
        verdict.JudgedSeries("a", verdict.Standing.STEADY, verdict.Evidence.HISTORY, effect=0.012345678, visible=0.02),
        verdict.JudgedSeries("b", verdict.Standing.GONE),
        verdict.JudgedSeries("c", verdict.Standing.MOVED, verdict.Evidence.EXACT, incident="i1"),
    )
    told = verdict.NightVerdict("20261121T031500Z", verdict.Level.STEADY, "Nothing moved", 3, 2, 1, series=series)
    kept = verdict.KeptVerdict.of(told)
    assert verdict.KeptVerdict.from_json(json.loads(json.dumps(kept.to_json())), Path("x")) == kept
    assert kept.series[0].effect == 0.01235
    assert kept.to_json()["series"][1] == ["b", "gone"]
    with pytest.raises(DashboardError, match=r"\$\.data\.series\[0\]\.standing"):
        verdict.KeptVerdict.from_json({**kept.to_json(), "series": [["a", "odd", None]]}, Path("x"))


def test_the_first_verdict_that_is_kept_keeps_the_one_before(home: Home) -> None:
    for file in ledger.list_files(home):
        file.unlink()
    old, new = (verdict.NightVerdict(night, verdict.Level.STEADY, f"of {night}") for night in NIGHTS[-2:])
    verdict.write_verdict(home, old)
    for file in ledger.list_files(home):
        file.unlink()  # as a dashboard without a ledger left it
    verdict.write_verdict(home, new)
    verdict.write_verdict(home, new)
    lines = [line for file in ledger.list_files(home) for line in ledger.read_file(file)]
    assert [(line.night, line.data["headline"]) for line in lines] == [
        (each.night, each.headline) for each in (old, new)
    ]


def test_the_newest_of_many_verdicts_is_found_without_their_words(home: Home) -> None:
    index(home)
    plan = ask(home, "EXPLAIN QUERY PLAN SELECT max(night) FROM verdicts")
    assert any("_verdicts" in row[3] for row in plan)
    assert not [row[3] for row in plan if "_standings" in row[3] or "_evidences" in row[3]]


def test_a_night_of_240_series_adds_little(tmp_path: Path) -> None:
    home = make_small_home(tmp_path / "home", points=60, nights=NIGHTS[:1])
    index(home)
    before = count_bytes(home)
    make_small_home(tmp_path / "home", points=60, nights=NIGHTS[1:])
    index(home)
    added = (count_bytes(home) - before) / len(NIGHTS[1:])
    assert ask(home, "SELECT count(*) FROM _series") == [(241,)], (
        "times, their ratios, compile times, sizes; one foreign"
    )
    assert ask(home, "SELECT count(*) FROM verdicts") == [(120 * len(NIGHTS),)]
    assert added < 42_000


def test_a_night_of_240_series_that_are_judged_adds_little_more(tmp_path: Path) -> None:
    home = make_small_home(tmp_path / "home", points=240, nights=NIGHTS[:1], times_alone=True)
    index(home)
    before = count_bytes(home)
    make_small_home(tmp_path / "home", points=240, nights=NIGHTS[1:], times_alone=True)
    index(home)
    assert ask(home, "SELECT count(*) FROM verdicts") == [(240 * len(NIGHTS),)]
    assert (count_bytes(home) - before) / len(NIGHTS[1:]) < 60_000


def test_what_a_night_adds_are_lines_and_rows_no_files(tmp_path: Path) -> None:
    home = make_small_home(tmp_path / "home", points=4, nights=NIGHTS[:1])
    index(home)
    before = list_derived(home)
    make_small_home(tmp_path / "home", points=4, nights=NIGHTS[1:])
    index(home)
    assert list_derived(home) == before


def list_derived(home: Home) -> set[str]:
    """The files of a home without those of each night: its record and its data."""
    files = (path for path in (home.root / "results").rglob("*") if path.is_file())
    return {path.name for path in files if not any(night in path.name for night in NIGHTS)}


def count_bytes(home: Home) -> int:
    with sqlite3.connect(home.store_file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return sum(path.stat().st_size for path in [home.store_file, *ledger.list_files(home)])
