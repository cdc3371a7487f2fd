"""The ledger of incidents: nothing is forgotten, nothing is told twice, people have the last word."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.incidents import command as incidents
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Moved
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import DETECTOR, Event, Ledger, Silence
from tvmdash.incidents.text import describe, format_incident
from tvmdash.text import format_percent, format_percent_range

AT = "2026-07-05T03:15:00Z"
ONE, TWO = "i20260704-aaaa", "i20260704-bbbb"


def moved(series: str = "s1", *, worse: bool = True, effect: float = 0.05, **changes: object) -> Moved:
    before = {"series": series, "name": f"exp {series} run time", "metric": "run_time", "unit": "ms", "worse": worse}
    values = {"before": 1.0, "after": 1.0 + effect, "effect": effect, "low": effect - 0.01, "high": effect + 0.01}
    return Moved(**{**before, **values, **changes})  # type: ignore[arg-type]


def opened(name: str = ONE, *series: Moved, **changes: object) -> Event:
    data = {
        "kind": "change",
        "begin": "20260704T031500Z",
        "after": "20260703T031500Z",
        "found": "20260705T031500Z",
        "versions": ["aaa", "bbb"],
        "blame": "compiler",
        "moved": [asdict(one) for one in (series or (moved(),))],
        "fleet": "times on m",
        **changes,
    }
    return Event(AT, DETECTOR, ledgers.OPENED, name, data)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    incidents.output_of(tmp_path).mkdir(parents=True)
    incident_file.append(file_of(tmp_path), [opened(), opened(TWO, moved("s2"))])
    return tmp_path


def file_of(home: Path) -> Path:
    return incidents.output_of(home) / ledgers.LEDGER_FILE


def run(home: Path, *arguments: str) -> int:
    return incidents.main([str(home), *arguments])


def test_every_state_is_kept_with_who_and_when_and_the_last_one_counts() -> None:
    events = [
        opened(),
        ledgers.changed(ONE, "acknowledged", at="2026-07-05T08:00:00Z", who="ann", words="looking"),
        ledgers.changed(ONE, "fixed", at="2026-07-09T03:15:00Z", who=DETECTOR, end="20260708T031500Z"),
    ]
    incident = ledgers.fold(events).incidents[ONE]
    assert [(change.who, change.state) for change in incident.changes] == [
        (DETECTOR, "new"),
        ("ann", "acknowledged"),
        (DETECTOR, "fixed"),
    ]
    assert (incident.state, incident.end, incident.is_open) == ("fixed", "20260708T031500Z", False)


def test_an_incident_opened_again_has_no_end() -> None:
    events = [opened(), ledgers.changed(ONE, "fixed", at=AT, who="a", end="20260708T031500Z")]
    events.append(ledgers.changed(ONE, "acknowledged", at=AT, who="a"))
    assert ledgers.fold(events).incidents[ONE].end is None


def test_series_join_once_and_recover_one_by_one() -> None:
    joined = Event(AT, DETECTOR, ledgers.JOINED, ONE, {"moved": [asdict(moved("s1")), asdict(moved("s9"))]})
    back = Event(AT, DETECTOR, ledgers.RECOVERED, ONE, {"series": ["s9"], "since": "20260708T031500Z"})
    incident = ledgers.fold([opened(), joined, back]).incidents[ONE]
    assert [(one.series, one.recovered) for one in incident.moved] == [("s1", None), ("s9", "20260708T031500Z")]


def test_only_what_got_worse_and_is_not_settled_is_open() -> None:
    events = [opened(), opened(TWO, moved(worse=False, effect=-0.1))]
    events.append(opened("i3", kind="machine", blame="machine", size=0.1, moved=[]))
    events.append(opened("i4", kind="machine", blame="unknown", size=0.1, moved=[]))
    assert [one.id for one in ledgers.fold(events).open()] == [ONE, "i4"]


def test_what_is_written_is_read_again_in_the_order_of_its_moments(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "l.jsonl"
    late = ledgers.changed(ONE, "fixed", at="2026-08-01T00:00:00Z", who="b\u00f6")
    incident_file.append(path, [late])
    incident_file.append(path, [opened()])
    written = [json.loads(json.dumps(asdict(event))) for event in (opened(), late)]
    assert [asdict(event) for event in incident_file.read(path)] == written
    assert incident_file.read(tmp_path / "none") == []


def test_a_torn_line_costs_itself_only_and_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "l.jsonl"
    incident_file.append(path, [opened()])
    with path.open("ab") as file:
        file.write(b'{"at": "2026-07-05T03:15')
    incident_file.append(path, [opened(TWO)])
    with caplog.at_level(logging.WARNING):
        assert [event.incident for event in incident_file.read(path)] == [ONE, TWO]
    assert f"{path}:2" in caplog.text
    assert len(path.read_bytes().splitlines()) == 3


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "3",
        '{"at": 3, "who": "a", "event": "state", "incident": "i", "data": {}}',
        '{"at": "x", "who": "a", "event": "opened", "incident": "i", "data": {}}',
        '{"at": "x", "who": "a", "event": "opened", "incident": "i", "data": {"versions": [1]}}',
        '{"at": "x", "who": "a", "event": "silenced", "incident": "", "data": {}}',
        json.dumps({"at": "x", "who": "a", "event": "state", "incident": ONE, "data": {}}),
        json.dumps({"at": "x", "who": "a", "event": "state", "incident": ONE, "data": {"state": "conquered"}}),
        json.dumps({"at": "yesterday", "who": "a", "event": "joined", "incident": ONE, "data": {"moved": []}}),
        json.dumps({"at": "x", "who": "a", "event": "of a later dashboard", "incident": ONE, "data": {}}),
    ],
)
def test_a_foreign_line_is_passed_over(tmp_path: Path, line: str) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text(line + "\n")
    incident_file.append(path, [opened()])
    events = incident_file.read(path)
    assert [event.incident for event in events] == [ONE]
    assert list(ledgers.fold(events).incidents) == [ONE]


def test_the_same_event_has_the_same_key_and_another_has_not() -> None:
    assert opened().key == opened().key
    assert len({opened().key, opened(TWO).key, opened(ONE, moved("s2")).key}) == 3


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(DashboardError, match="unknown state 'gone'"):
        ledgers.changed(ONE, "gone", at=AT, who="a")


def test_a_silence_covers_an_incident_whose_series_all_match_until_it_ends() -> None:
    one = ledgers.fold([opened(ONE, moved("s1"), moved("s2"))]).incidents[ONE]

    def silence(pattern: str) -> Silence:
        return Silence(pattern, "2026-07-10T00:00:00Z", "2026-07-01T00:00:00Z", "ann")

    assert silence("exp s*").covers(one, AT)
    assert silence(ONE).covers(one, AT)
    assert not silence("exp s1*").covers(one, AT), "the other series would be lost"
    assert not silence("*").covers(one, "2026-07-10T00:00:00Z")
    assert not silence("*").covers(one, "2026-06-30T00:00:00Z")


def test_a_silence_that_was_ended_covers_nothing_from_then_on() -> None:
    def said(at: str, event: str, **data: object) -> Event:
        return Event(f"2026-07-0{at}T00:00:00Z", "ann", event, "", {"pattern": "exp s*", **data})

    until = {"until": "2026-07-20T00:00:00Z"}
    events = [opened(), said("1", "silenced", **until), said("5", "unsilenced"), said("8", "silenced", **until)]
    other = Event("2026-07-06T00:00:00Z", "ann", "unsilenced", "", {"pattern": "exp*"})
    ledger = ledgers.fold([*events, other])
    silent = {
        day: ledger.silent(ledger.incidents[ONE], f"2026-07-{day:02}T12:00:00Z") is not None for day in (4, 5, 7, 9)
    }
    assert silent == {4: True, 5: False, 7: False, 9: True}
    assert [one.until[:10] for one in ledger.silences] == ["2026-07-05", "2026-07-20"]


def test_a_silence_of_everything_does_not_hide_the_machine() -> None:
    machine = ledgers.fold([opened(kind="machine", size=0.1, moved=[])]).incidents[ONE]
    assert not Silence("exp*", "2027", "2026", "a").covers(machine, AT)


def test_an_incident_is_found_by_the_beginning_of_its_id() -> None:
    ledger = ledgers.fold([opened(), opened(TWO)])
    assert ledger.find("i20260704-b").id == TWO
    with pytest.raises(DashboardError, match=f"may be {ONE}, {TWO}"):
        ledger.find("i2026")
    with pytest.raises(DashboardError, match="is not an incident"):
        Ledger().find("x")


@pytest.mark.parametrize(
    ("arguments", "state"),
    [
        (("ack", ONE, "looking"), "acknowledged"),
        (("expect", ONE, "bigger model"), "expected"),
        (("close", ONE, "reverted"), "fixed"),
        (("close", ONE, "noise", "--as", "false_alarm"), "false_alarm"),
    ],
)
def test_people_settle_incidents(
    home: Path, arguments: tuple[str, ...], state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(home, *arguments, "--who", "ann") == 0
    assert state.replace("_", " ") in capsys.readouterr().out
    incident = incidents.ledger_of(home).incidents[ONE]
    assert incident.state == state
    assert (incident.changes[-1].who, incident.changes[-1].words) == ("ann", arguments[2])
    assert (incident.end is None) == (state == "acknowledged")
    assert run(home, "show", ONE) == 0
    assert f"ann: {state}. {arguments[2]}" in capsys.readouterr().out


def test_the_list_has_open_incidents_and_with_all_every_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(home, "close", ONE)
    run(home, "silence", "exp s2*", "known", "--days", "3")
    capsys.readouterr()
    assert run(home) == 0
    shown = capsys.readouterr().out
    assert TWO in shown
    assert ONE not in shown
    assert "silence of exp s2* until" in shown
    run(home, "list", "--all")
    assert ONE in capsys.readouterr().out


def test_a_silence_without_days_lasts_two_weeks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "utc_now", lambda: common.parse_stamp("20260701T031500Z"))
    run(home, "silence", "exp s2*", "known")
    (silence,) = incidents.ledger_of(home).silences_at("2026-07-15T03:14:00Z")
    assert silence.until == "2026-07-15T03:15:00Z"


def test_a_silence_is_ended_by_its_pattern_and_the_ledger_knows_who_did(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(home, "silence", "exp s2*", "--days", "3") == 0
    assert run(home, "silence", "exp s1") == 0
    assert run(home, "unsilence", "exp s2*", "mended", "--who", "ann") == 0

    capsys.readouterr()
    last = incident_file.read(file_of(home))[-1]
    assert (last.who, last.event, last.data) == ("ann", "unsilenced", {"pattern": "exp s2*", "words": "mended"})
    run(home)
    shown = capsys.readouterr().out
    assert ("silence of exp s1 until" in shown, "exp s2*" in shown) == (True, False)
    assert run(home, "unsilence", "exp s2*") == 2
    assert capsys.readouterr().err.endswith("exp s1.\n"), "what is in force is named"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nope"), "is not an incident"),
        (("unsilence", "*"), "no silence has the pattern '*'. In force: none."),
        (("silence", "*", "--days", "0"), "a silence must end"),
        (("silence", "*", "--days", "1000"), "a silence must end"),
        (("ack", ONE, "--who", "detector"), "reserved for the detector"),
        (("explain", ONE), "no such file"),
    ],
)
def test_what_cannot_be_is_said_with_its_remedy(
    home: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = file_of(home).read_bytes()
    assert run(home, *arguments) == 2
    assert words in capsys.readouterr().err
    assert file_of(home).read_bytes() == before


def test_a_home_without_the_subsystem_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "list") == 2
    assert "stat_alerts" in capsys.readouterr().err


def test_two_who_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    children = []
    for child in range(4):
        pid = os.fork()
        if pid == 0:
            for line in range(25):
                incident_file.append(path, [ledgers.changed(f"i{child}-{line}", "fixed", at=AT, who="w" * 500)])
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    assert len({json.loads(line)["incident"] for line in path.read_text().splitlines()}) == 100


@pytest.mark.parametrize(
    ("effect", "words"), [(0.0512, "+5.1 %"), (-0.0062, "−0.62 %"), (1.204, "+120 %"), (0.0095, "+0.95 %")]
)
def test_percents_have_the_digits_they_deserve(effect: float, words: str) -> None:
    assert format_percent(effect) == words


def test_an_incidents_parts_are_its_words() -> None:
    incident = ledgers.fold([opened(ONE, moved(z=6.31, nights=4))]).incidents[ONE]
    told = format_incident(incident)
    assert describe(incident) == "\n".join([*told.lines, f"{told.since} Incident {ONE}."])
    assert told.lines


def test_a_range_of_percents_has_its_unit_once() -> None:
    assert format_percent_range(-0.0062, 0.0512) == "−0.62 to +5.1 %"


@pytest.mark.parametrize(
    ("before", "after", "unit", "told"),
    [(0.0, 5.0, "", "+5.00"), (-0.2, 0.3, "ms", "+0.500 ms"), (0.0, -1500.0, "ms", "−1.50 s")],
)
def test_a_series_that_is_not_positive_is_told_in_its_own_unit(
    before: float, after: float, unit: str, told: str
) -> None:
    jumped = moved(relative=False, effect=4.2, before=before, after=after, unit=unit)
    incident = ledgers.fold([opened(ONE, jumped)]).incidents[ONE]
    assert format_headline(incident).endswith(f" {told}")
    assert "%" not in describe(incident)


def test_what_a_bisection_found_is_told_with_the_incident(home: Path, tmp_path: Path) -> None:
    culprit = {"id": "1b565e7c3" + "0" * 31, "title": "Fold less", "author": "Ada", "date": "2026-07-04T10:00:00Z"}
    numbers = {"effect": 0.051, "low": 0.047, "high": 0.055, "probability": 0.97, "elapsed_s": 60.0}
    rest = {"series": "s1", "name": "n", "builds": 4, "measurements": 48, "suspects": [culprit], "state": "found"}
    file = tmp_path / "found.json"
    file.write_text(json.dumps({**rest, **numbers}))
    assert run(home, "bisected", ONE, str(file), "--who", "ann") == 0
    answer = incidents.ledger_of(home).find(ONE).bisected
    assert answer is not None
    assert [suspect.title for suspect in answer.suspects] == ["Fold less"]
    assert (answer.effect, answer.probability, answer.count) == (0.051, 0.97, 1)
    file.write_text(json.dumps({**rest, **numbers, "state": "budget"}))
    assert run(home, "bisected", ONE, str(file)) == 2, "a bisection without an answer is not written down"


def test_what_is_joined_is_told_as_one_and_split_again_as_two(home: Path) -> None:
    before = incidents.ledger_of(home).incidents
    assert run(home, "join", ONE, TWO, "one pass", "--who", "ann") == 0
    one, two = incidents.ledger_of(home).incidents.values()
    assert [(each.series, each.part) for each in one.moved] == [("s1", ""), ("s2", TWO)]
    assert (two.moved, two.into, two.is_open, format_headline(two)) == ((), ONE, False, f"Joined to {ONE}")
    assert [(each.who, each.words) for each in one.remarks] == [("ann", f"{TWO} joined; one pass")]
    assert run(home, "split", TWO) == 0
    after = incidents.ledger_of(home).incidents
    assert {name: replace(each, remarks=()) for name, each in after.items()} == before


def test_what_is_split_is_an_incident_of_its_own_and_joined_again_one(home: Path) -> None:
    third = opened("i3", moved("a"), moved("b"), moved("c"))
    incident_file.append(file_of(home), [third])
    assert run(home, "split", "i3", "--series", "[bc]") == 0
    ledger = incidents.ledger_of(home)
    assert [each.series for each in ledger.incidents["i3"].moved] == ["a"]
    new = ledger.incidents["i3-2"]
    assert ([each.series for each in new.moved], new.origin, new.is_open, new.begin) == (
        ["b", "c"], "i3", True, third.data["begin"],
    )  # fmt: skip
    assert run(home, "split", "i3-2", "--series", "c") == 0
    assert incidents.ledger_of(home).incidents["i3-2-2"].origin == "i3"
    assert run(home, "join", "i3", "i3-2") == 0
    assert run(home, "join", "i3", "i3-2-2") == 0
    whole = incidents.ledger_of(home).incidents["i3"]
    assert [each.series for each in whole.moved] == ["a", "b", "c"]
    assert len(incidents.ledger_of(home).open()) == 3


def test_a_part_goes_along_where_its_incident_is_joined(home: Path) -> None:
    incident_file.append(file_of(home), [opened("i3", moved("s3"))])
    assert run(home, "join", TWO, "i3") == 0
    assert run(home, "join", ONE, TWO) == 0
    assert incidents.ledger_of(home).incidents["i3"].into == ONE
    assert run(home, "split", "i3") == 0
    ledger = incidents.ledger_of(home).incidents
    assert [[each.series for each in one.moved] for one in ledger.values()] == [["s1", "s2"], [], ["s3"]]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["join", ONE, ONE], "one incident already"),
        (["join", ONE, "late"], "cannot have one cause"),
        (["join", ONE, "machine"], "not of one kind"),
        (["join", ONE, "done"], "is settled"),
        (["join", ONE, "same"], "series in common"),
        (["join", ONE, "part"], f"joined to {TWO} already"),
        (["join", "part", ONE], "Name that one"),
        (["ack", "part"], "Name that one"),
        (["note", "part", "seen"], "Name that one"),
        (["split", ONE], "matches none"),
        (["split", ONE, "--series", "*"], "matches all"),
        (["split", "nobody"], "is not an incident"),
    ],
)
def test_what_has_not_one_cause_is_not_joined(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], fault: str
) -> None:
    late = {"begin": "20260720T031500Z", "after": "20260719T031500Z"}
    more = [
        opened("late", moved("s5"), **late), opened("machine", moved("s6"), kind="machine"),
        opened("done", moved("s7")), opened("same"), opened("part", moved("s8")),
        ledgers.changed("done", "fixed", at=AT, who="ann", end="20260708T031500Z"),
    ]  # fmt: skip
    incident_file.append(file_of(home), more)
    assert run(home, "join", TWO, "part") == 0
    before = file_of(home).read_bytes()
    assert run(home, *arguments) == 2
    assert fault in capsys.readouterr().err
    assert file_of(home).read_bytes() == before
