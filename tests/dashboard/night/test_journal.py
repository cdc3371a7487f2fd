"""The record of a running night: what it costs, and that it can be read at every moment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.night.journal import Journal
from dashboard.plan.job import Job
from tests.dashboard import homes
from tvmdash.common import structured
from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, OK, RUNNING, Home, Night, StepReason, StepResult

STAMP = "20260101T000000Z"
STAGES = ("precheck", "run", "analyze", "visualize", "summarize")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def begun(home: Home) -> Journal:
    return Journal(home, Night(STAMP, RUNNING))


def job(name: str) -> Job:
    return Job("experiment", name, Path("code"), Path("config"), {}, ArtifactSpec("pypi", "latest"))


def step(stage: str, state: str = OK, message: str = "went well") -> StepResult:
    return StepResult(stage, state, message, STAMP)


class Watched:
    """Adds up what is written of the record, seen from outside: a file that was replaced counts whole."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._known = folder, dict[Path, os.stat_result]()
        self.written_bytes = 0

    def look(self) -> None:
        """Count what changed since the last look."""
        for path in self._folder.glob(f"{STAMP}*"):
            now, before = path.stat(), self._known.get(path)
            grown = before is not None and before.st_ino == now.st_ino and now.st_size > before.st_size
            if before is not None and grown:
                self.written_bytes += now.st_size - before.st_size
            elif before is None or (before.st_ino, before.st_mtime_ns) != (now.st_ino, now.st_mtime_ns):
                self.written_bytes += now.st_size
            self._known[path] = now


def night_of(home: Home, jobs: int, *, noting: bool = False) -> int:
    """The bytes that a night of so many jobs writes of its record."""
    journal = begun(home)
    watched = Watched(home.nights)
    for index in range(jobs):
        for stage in STAGES:
            journal.record(job(f"e{index}"), step(stage))
            watched.look()
        if noting:
            journal.note(f"Compressing the raw measurements of e{index} failed: the disk is full.")
            watched.look()
    journal.close(COMPLETE)
    watched.look()
    assert len(home.read_night(STAMP).jobs) == jobs
    return watched.written_bytes


@pytest.mark.parametrize("noting", [False, True])
@pytest.mark.parametrize("jobs", [10, 60, 200])
def test_a_night_writes_a_small_multiple_of_its_final_record_however_many_jobs_it_has(
    home: Home, jobs: int, noting: bool
) -> None:
    written_bytes = night_of(home, jobs, noting=noting)
    assert written_bytes < 4 * home.night_file(STAMP).stat().st_size


def measure_written_bytes(root: Path, experiments: int) -> int:
    """What a night of so many no-op experiments and all that it starts give to write(2)."""
    home = homes.make_home(root, root / "artifacts")
    for index in range(experiments):
        homes.write(home.experiment(f"e{index}") / "fields.json", {"needs_tvm": False})
    before = read_written_bytes()  # Linux adds to it what children wrote once they are waited for
    done = home.run_with({})
    assert done.code == 0, done.output
    return read_written_bytes() - before


def read_written_bytes() -> int:
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(next(line.partition(":")[2] for line in lines if line.startswith("wchar")))


def test_what_one_more_experiment_makes_a_night_write_is_bounded(tmp_path: Path) -> None:
    """It was 80 kB where the index's log was copied into the index after each experiment, 46 kB without."""
    few, many = (measure_written_bytes(tmp_path / str(count), count) for count in (5, 25))
    assert (many - few) / 20 < 60_000


def test_a_running_night_is_read_with_each_step_as_soon_as_it_has_ended(home: Home) -> None:
    journal = begun(home)
    for index in range(3):
        for stage in STAGES:
            journal.record(job(f"e{index}"), step(stage, FAILED if stage == "summarize" else OK))
            assert home.read_night(STAMP) == journal.night
    journal.note("The disk is nearly full.")
    assert home.read_night(STAMP) == journal.night
    journal.change(artifacts=({"key": "x"},))
    assert home.read_night(STAMP) == journal.night
    assert home.night_stamps() == [STAMP]


def test_which_notes_the_failures_tell_is_kept_with_them(home: Home) -> None:
    journal = begun(home)
    journal.note("The disk is nearly full.")
    journal.note("TVM cannot be had.", told=True)
    journal.note("TVM cannot be had.", told=True)
    assert home.read_night(STAMP) == journal.night
    journal.write_whole()
    journal.note("Last.")
    read = home.read_night(STAMP)
    assert read == journal.night
    assert read.notes == ("The disk is nearly full.", "TVM cannot be had.", "Last.")
    assert read.untold_notes == ("The disk is nearly full.", "Last.")


def test_a_record_of_before_tells_all_its_notes(home: Home) -> None:
    value = Night(STAMP, COMPLETE, notes=("one: two",)).to_json()
    del value["told_notes"]
    assert Night.from_json(value, Path("x.json")).untold_notes == ("one: two",)


def test_steps_that_the_same_thing_stopped_have_the_same_cause_whatever_they_say() -> None:
    lost = {"reason": StepReason.NO_TVM, "subject": "main from R"}
    one, other = (StepResult("run", BLOCKED, words, STAMP, **lost) for words in ("#1#", "#2#"))
    assert one.cause == other.cause
    assert StepResult("run", BLOCKED, "#1#", STAMP).cause != StepResult("run", BLOCKED, "#2#", STAMP).cause
    assert structured.from_json(StepResult, one.to_json(), "x.json") == one


def test_what_a_killed_night_had_written_of_a_line_is_left_out(home: Home) -> None:
    journal = begun(home)
    journal.record(job("whole"), step("run", message='of "two"\nlines\udcff'))
    with home.night_journal(STAMP).open("ab") as file:
        file.write(b'\n{"job": {"kind": "experim')
    (found,) = home.read_night(STAMP).jobs
    assert (found.name, found.steps[0].message) == ("whole", 'of "two"\nlines?')
    journal.record(job("next"), step("run"))
    assert [one.name for one in home.read_night(STAMP).jobs] == ["whole", "next"]


def test_a_journal_that_the_record_already_holds_adds_nothing(home: Home) -> None:
    journal = begun(home)
    journal.record(job("e"), step("run"))
    journal.note("Once.")
    lines = home.night_journal(STAMP).read_bytes()
    journal.write_whole()
    home.night_journal(STAMP).write_bytes(lines)  # as where it was killed between the two
    assert home.read_night(STAMP) == journal.night
    done = journal.close(COMPLETE)
    home.night_journal(STAMP).write_bytes(lines.replace(b"Once.", b"Never."))
    assert home.read_night(STAMP) == done


@pytest.mark.parametrize(
    "line",
    ["null", "5", '"x"', "[]", "{}", '{"note": 5}', '{"job": []}', '{"job": {"kind": "experiment"}}', "\x00", "["],
)
def test_a_foreign_line_costs_itself_only_and_is_named(home: Home, line: str, caplog: pytest.LogCaptureFixture) -> None:
    begun(home).record(job("cnn"), step("run"))
    with home.night_journal(STAMP).open("a") as file:
        file.write(f"\n{line}\n" + '{"note": "after it", "told": false, "of a newer dashboard": 1}')
    night = home.read_night(STAMP)
    assert (night.notes, [step.stage for step in night.jobs[0].steps]) == (("after it",), ["run"])
    assert line == "{}" or f"{home.night_journal(STAMP)}:3: " in caplog.text


def test_a_pipe_in_place_of_a_journal_is_not_waited_for(home: Home) -> None:
    begun(home)
    os.mkfifo(home.night_journal(STAMP))
    assert home.read_night(STAMP).state == RUNNING


@pytest.mark.parametrize("place", ["run.json", "run.log", ""])
def test_a_status_that_cannot_be_written_is_told_and_stops_no_night(home: Home, tmp_path: Path, place: str) -> None:
    taken = home.status("experiment", "cnn") / place
    taken.parent.mkdir(parents=True)
    (taken / "x").mkdir(parents=True) if place else taken.write_text("x")
    journal = begun(home)
    journal.record(job("cnn"), step("run"))
    journal.record(job("cnn"), step("analyze"))
    night = home.read_night(STAMP)
    assert [each.stage for each in night.jobs[0].steps] == ["run", "analyze"]
    assert str(taken) in night.notes[0]
    assert night.notes[0].endswith("Move away what lies there.")
