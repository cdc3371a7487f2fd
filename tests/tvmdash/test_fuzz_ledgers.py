"""Ledgers, journals and notes in any state: what is whole in them counts, and nothing is deleted or said twice."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from dashboard.archive import archive as archives
from dashboard.cli import status
from dashboard.night import progress
from dashboard.schedule import watch
from dashboard.trials import queue
from dashboard.upkeep import disk, drill
from tests import fuzzing
from tests.fuzzing import the_same_each_time
from tests.tvmdash.notify import route_homes
from tests.tvmdash.notify.route_homes import NIGHTS, ONE, moved
from tvmdash import common
from tvmdash.common import structured
from tvmdash.dashboard_info import COMPLETE, RUNNING, Home, JobResult, Night, StepResult
from tvmdash.errors import DashboardError
from tvmdash.incidents import annotations
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Recovered, Unsilenced
from tvmdash.incidents.ledger import Event, Incidents, iso_of
from tvmdash.incidents.text import describe
from tvmdash.machine.identity import MachineIdentity, Rename, RenameKind
from tvmdash.notify import slack_history, spells
from tvmdash.notify import state as route_states
from tvmdash.notify.delivery import Outbox
from tvmdash.notify.message import Entry, Item, Kept, Outgoing, State
from tvmdash.notify.message import Occasion as Reason
from tvmdash.signoff import waivers
from tvmdash.trials import files as try_files
from tvmdash.trials import text
from tvmdash.trials.signoff import SignoffState, SignoffWaiver, WaiverEvent
from tvmdash.trials.trial import Asked, Trial, TrialRequest, TrialSeries, TrialState, TrialTvm
from tvmdash.verdict import Level, NightVerdict, read_verdict

NOW = NIGHTS[30]
STEPS = (StepResult("run", "ok", "m", NOW, 3.0), StepResult("analyze", "failed", "m", NOW, 3.0))
JOB = JobResult("experiment", "cnn", "t", "d", STEPS)
NIGHT = Night(NOW, COMPLETE, elapsed_s=100.0, seed=3, jobs=(JOB,), notes=("n",), artifacts=({"key": "k"},))
MESSAGE = Outgoing("id", Reason.NIGHT, NIGHTS[3], "t", (Item("a", ("b",), "", (("x", "y"),)),), Level.REGRESSION)
KEPT = Kept(
    NIGHTS[0],
    ("i1",),
    (
        Entry("told", NIGHTS[1], State.SENT, ("m1", "m2"), 1, iso_of(NIGHTS[1])),
        Entry("waits", NIGHTS[3], State.WAITING, message=MESSAGE),
    ),
)
SENT = {"stamp": NIGHTS[3], "key": "k", "since": 1.0, "state": "sent", "channel": "C", "ts": "1.2", "digest": "d"}
WAIVER = SignoffWaiver(iso_of(NOW), "a", "r", "*", "A", "B", "id", "name", SignoffState.WORSE, 0.1, 2.0)
SIDES = (TrialTvm("pypi:1", "k", "1"), TrialTvm("pypi:2", "l", "2"))
TRY = Trial(
    NIGHTS[1], TrialState.DONE, *SIDES, 0.01, "bench", {"cnn": "f"}, {"cnn": 3},
    series=(TrialSeries("id", "cnn", "run_time", {"workload": "w"}),), requests={NIGHTS[2]: Asked("me", NIGHTS[2])},
)  # fmt: skip
MACHINE = MachineIdentity("bench", NIGHTS[0], "abc", "EPYC", None, (Rename(RenameKind.EXPERIMENT, "a", "b", "x", "y"),))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    made = Home(tmp_path_factory.mktemp("ledgers") / "home")
    for folder in (made.nights, made.output("routes") / "watch", made.output("stat_alerts"), made.backfills):
        folder.mkdir(parents=True)
    waivers.path_of(made).parent.mkdir()
    try_files.queue_of(made).mkdir(parents=True)
    made.config_file.parent.mkdir()
    return made


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Each broken line is logged; of thousands of cases that is too much to be kept."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def say(work: Callable[[], object]) -> str:
    """What is said where it cannot be done."""
    try:
        work()
    except DashboardError as error:
        return str(error)
    return ""


def version_1(value: Any) -> dict[str, Any]:
    return {"schema_version": 1, **structured.to_json(value)}


def list_events() -> list[Event]:
    """Of two incidents of which everything happened."""
    gathered: list[Event] = []
    of = route_homes.RouteHome(Path("/nowhere"))
    of.add = lambda *events: gathered.extend(events)  # type: ignore[method-assign]
    of.opens(3)
    of.opens(5, "i20260506-00bb", moved("a"), moved("b"))
    of.grows(6, moved("mobilenet"))
    of.changes(7, "confirmed")
    of.silences(8, 20, "id-*")
    of.changes(9, "fixed", words="back")
    at = iso_of(NIGHTS[9])
    back = Recovered(("id-cnn_comp-resnet18",), NIGHTS[9])
    return [
        *gathered,
        Event.of(at, "detector", ledgers.RECOVERED, ONE, back),
        Event.of(at, "ann", ledgers.UNSILENCED, "", Unsilenced("id-*")),
    ]


def look_at_annotations(home: Home, path: Path) -> None:
    annotations.list_retired_experiments(home.root, NOW)
    for each in annotations.read(home.root):
        annotations.describe(each)
        each.covers("cnn", "cnn run time")
        each.night({NOW: "abcdef"})


def look_at_incidents(home: Home, path: Path) -> None:
    events = incident_file.read(path)
    ledger = ledgers.fold(events)
    ledger.silences_at(iso_of(NOW))
    ledger.is_muted("s", "n", iso_of(NOW))
    for incident in ledger.incidents.values():
        ledger.silent(incident, iso_of(NOW))
        describe(incident)
    shown = common.dump_json(structured.to_json(Incidents(tuple(ledger.incidents.values()))))
    structured.from_json(Incidents, common.parse_json(shown.encode("utf-8", "replace"), "shown"), "shown")
    assert len({event.key for event in events}) <= len(events)


def look_at_night(home: Home, path: Path) -> None:
    night = home.read_night(NOW)
    status.summarize_status(home, night)
    watch._learn_grace(list(home.last_nights(3)))
    common.dump_json(night.to_json())


def look_at_disk(home: Home, path: Path) -> None:
    list(map(str, disk.examine(home, [], 1)))
    disk.note_free(home, [], NOW)
    assert NOW in path.read_text()


def look_at_machine(home: Home, path: Path) -> None:
    kept = home.machine()
    if kept:
        kept.experiment_of_id("b~desk@release")
        kept.labels_of_id({"env_name": "bench", "workload": "w"})


def look_at_route(home: Home, path: Path) -> None:
    record = Outbox(path, NOW)
    record.begin([], (), NOW)
    assert {entry.key for entry in record} == {entry.key for entry in Outbox(path, NOW)}


def look_at_slack(home: Home, path: Path) -> None:
    assert all(entry.state in State for entry in slack_history.read_messages(path.parent))


def look_at_tries(home: Home, path: Path) -> None:
    rows, _ = queue.list_tries(home)
    queue.format_rows(rows)
    list(map(queue.describe, rows))
    assert common.is_stamp(try_files.make_id(home))


def look_at_spell(home: Home, path: Path) -> None:
    current = spells._read_current(path.parent)
    assert not current or not current.last or common.is_stamp(current.last)


def look_at_trial(home: Home, path: Path) -> None:
    done = try_files.load(path)
    text.format_table(done, every=True)
    text.summarize(done)


def look_at_drill(home: Home, path: Path) -> None:
    drill.is_due(home, datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC))


READERS: dict[str, tuple[str, list[Any] | Any, Callable[[Home, Path], object]]] = {
    "annotations": (
        "results/annotations.jsonl",
        [
            dataclasses.asdict(annotations.make("night", NOW, "w", who="a", at="x", scope="y", series="retired")),
            dataclasses.asdict(annotations.make("commit", "abcdef", "w", who="a", at="x", is_break=True)),
            {"remove": "a123456", "at": "x", "who": "y"},
        ],
        look_at_annotations,
    ),
    "incidents": (
        "results/subsystem/output/stat_alerts/incidents.jsonl",
        [dataclasses.asdict(event) for event in list_events()],
        look_at_incidents,
    ),
    "waivers": (
        "results/signoff/waivers.jsonl",
        [structured.to_json(WaiverEvent(WAIVER)), structured.to_json(WaiverEvent(WAIVER, taken_back=True))],
        lambda home, _: waivers.list_standing(waivers.read(home)[0], "A"),
    ),
    "night": (f"results/nights/{NOW}.json", NIGHT.to_json(), look_at_night),
    "journal": (
        f"results/nights/{NOW}.jsonl", [{"note": "x", "told": True}, {"job": JOB.to_json()}], look_at_night,
    ),
    "disk": (
        "results/disk.jsonl", [{"night": at, "free_bytes": {"/": 10**11}} for at in NIGHTS[:5]], look_at_disk,
    ),
    "drill": ("results/restore_drill.json", version_1(drill.Drill(NOW, "x", 3, 1.0)), look_at_drill),
    "machine": ("results/machine.json", version_1(MACHINE), look_at_machine),
    "now": (
        "results/.now.keep.tmp",
        {"night": NOW, "running": [["cnn, run", "x"]], "done": 1, "total": 3, "usual_s": {"cnn, run": 3.0}},
        lambda home, _: progress.read_now(home, NOW),
    ),
    "route": ("results/subsystem/output/routes/hook.json", version_1(KEPT), look_at_route),
    "routes": (
        "results/subsystem/output/routes/routes.json",
        version_1(route_states.RouteStates(NOW, (route_states.RouteState("a", "email", "x", 3, 1, "07:00", "f"),))),
        lambda home, _: list(map(route_states.format_fault, route_states.read_states(home))),
    ),
    "spell": (
        "results/subsystem/output/routes/watch/current.json",
        {"schema_version": 1, "night": NIGHTS[3], "last": NIGHTS[2]},
        look_at_spell,
    ),
    "slack": (
        "results/subsystem/output/digest/slack.json", {"schema_version": 1, "messages": [SENT]}, look_at_slack,
    ),
    "request": (
        f"results/tries/queue/{NIGHTS[2]}.json", version_1(TrialRequest("git:abc", "me", NIGHTS[2])), look_at_tries,
    ),
    "try": (f"results/tries/{NIGHTS[1]}.json", structured.to_json(TRY), look_at_tries),
    "verdict": (
        "results/subsystem/output/stat_alerts/verdict.json",
        NightVerdict(NOW, Level.REGRESSION, "h").to_json(),
        lambda home, _: read_verdict(home, NOW),
    ),
    "backfill": (
        f"results/backfills/{NOW}.json",
        {"stamp": NOW, "had": ["1"], "unbuilt": {"2": "w"}, "failed": {"cnn on 2": "x"}, "elapsed_s": 3.0},
        look_at_trial,
    ),
    "bisection": (
        "results/bisections/cnn.json",
        {
            "state": "range", "series": "id", "name": "n", "builds": 1, "measurements": 30, "elapsed_s": 3.0,
            "experiment": "cnn", "good": {"id": "1"}, "bad": {"id": "3"}, "candidates": 2, "failed": {"2": "w"},
            "suspects": [{"id": "2"}, {"id": "3"}], "probability": 0.9, "effect": 0.1, "low": 0.09, "high": 0.11,
            "noise": 0.01, "least": 4.0,
        },
        look_at_trial,
    ),
    "comparison": (
        f"results/comparisons/{NIGHTS[1]}.json",
        {
            "a": {"asked": "pypi:1", "artifact": {"key": "k", "version": "1"}}, "elapsed_s": 3.0,
            "b": {"asked": "pypi:2", "artifact": {"key": "l", "version": "2"}},
            "series": [{
                "id": "i", "experiment": "cnn", "metric": "m", "unit": "ms", "labels": {}, "name": "n",
                "rounds": [[1.0, 1.1]], "difference": {"effect": 0.1, "low": 0.09, "high": 0.11, "rounds": 5},
            }],
        },
        look_at_trial,
    ),
    "reproduction": (
        f"results/reproductions/{NIGHTS[1]}.json",
        {
            "verdict": "holds", "stamp": NIGHTS[1], "experiment": "cnn", "night": NIGHTS[0], "elapsed_s": 3.0,
            "artifact": {"version": "1"}, "lines": [{
                "name": "n", "unit": "ms", "old": 1.0, "verdict": "holds", "new": [1.0, 1.01], "id": "i",
                "found": {"old": 1.0, "new": 1.0, "effect": 0.0, "low": 0.9, "high": 1.1, "holds": True},
            }],
        },
        look_at_trial,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@the_same_each_time(15, 3000)
@given(chance=fuzzing.cases(lambda chance: chance))
def test_a_file_in_any_state_is_read_as_far_as_it_can_be(home: Home, name: str, chance: Any) -> None:
    relative, value, look = READERS[name]
    path = home.root / relative
    is_lines = path.suffix == ".jsonl"
    raw = fuzzing.make_lines(chance, value) if is_lines else fuzzing.make_file(chance, value)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    if name == "journal":
        home.night_file(NOW).write_text(common.dump_json(dataclasses.replace(NIGHT, state=RUNNING).to_json()))
    said = say(lambda: look(home, path))
    assert not said or (path.name in said and not is_lines)
    kept = [other for other in path.parent.glob(f"{path.stem}*") if other.read_bytes() == raw]
    assert kept or name in {"disk", "route", "slack"}, "what cannot be read stays"
    for other in path.parent.glob(f"{path.stem}*"):
        other.unlink()


@pytest.mark.parametrize("name", ["annotations", "incidents", "waivers"])
@the_same_each_time(15, 1000)
@given(chance=fuzzing.cases(lambda chance: chance))
def test_what_is_added_behind_a_damaged_end_is_read(home: Home, name: str, chance: Any) -> None:
    relative, lines, _ = READERS[name]
    path = home.root / relative
    path.write_bytes(fuzzing.make_lines(chance, lines)[: chance.randint(0, 3000)])
    before = path.read_bytes()
    if name == "annotations":
        made = annotations.make("night", NOW, "the last", who="a", at="x")
        annotations.append(home.root, dataclasses.asdict(made))
        assert made in annotations.read(home.root)
    elif name == "incidents":
        event = list_events()[0]
        incident_file.append(path, [event])
        assert event.key in {other.key for other in incident_file.read(path)}
    else:
        waivers.append(home, [WaiverEvent(WAIVER)])
        assert waivers.read(home)[0][-1] == WaiverEvent(WAIVER)
    assert path.read_bytes().startswith(before)


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[Path, bytes]]:
    """A home, three archives of it, and their manifests."""
    root = tmp_path_factory.mktemp("backup")
    for number in range(3):
        (root / "home" / f"d{number}").mkdir(parents=True)
        (root / "home" / f"d{number}" / "a").write_text(str(number))
        archives.archive(root / "home", root / "backup", f"n{number}", exclude=())
    return root / "home", root / "backup", {path: path.read_bytes() for path in (root / "backup").rglob("*.json")}


@the_same_each_time(15, 2000)
@given(chance=fuzzing.cases(lambda chance: chance))
def test_damaged_manifests_are_named_and_what_stands_is_not_deleted(
    backup: tuple[Path, Path, dict[Path, bytes]], chance: Any
) -> None:
    _, folder, manifests = backup
    path = chance.choice(sorted(manifests))
    for each, raw in manifests.items():
        each.write_bytes(raw)
    path.write_bytes(fuzzing.damage(chance, manifests[path]))
    is_whole = path.read_bytes() == manifests[path]
    faults = [say(lambda: archives.verify(folder)), say(lambda: is_whole or archives.prune(folder, 1))]
    assert faults == ["", ""] if is_whole else all(str(folder) in fault for fault in faults)
    assert all(each == path or each.read_bytes() == raw for each, raw in manifests.items())
    assert any(each.broken for each in archives.archives(folder)) != is_whole
