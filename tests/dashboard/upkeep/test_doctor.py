"""`doctor`, `rebuild`, and what a night does by itself with files that do not belong into a home's history."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from pathlib import Path

import pytest

from dashboard.archive.chain import StoredFile, load_chain
from dashboard.upkeep import disk, drill, steadiness, strays
from tests.dashboard.homes import HomeForTests, make_home, read, wait_for, write
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.records import data_stamps
from tvmdash.series import store

LATER = "20990101T000000Z"


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts", schedule="0 0 1 1 *")
    write(made.experiment("good") / "fields.json", {"needs_tvm": False})
    made.subsystem()
    return made


def doctor(home: HomeForTests, *options: str) -> tuple[int, list[str]]:
    done = home.run(*options, verb="doctor")
    return done.code, done.output.splitlines()


def about(lines: list[str], subject: str) -> list[str]:
    return [line for line in lines if line[9:].startswith(f"{subject}: ")]


def copy_data(home: HomeForTests, to: str, experiment: str = "good") -> Path:
    """A copy of the newest night's data as that of another."""
    newest = home.home.data_file("good", data_stamps(home.home.data("good"))[-1])
    target = home.home.data_file(experiment, to)
    target.parent.mkdir(exist_ok=True)
    shutil.copy2(newest, target)
    return target


def indexed(home: HomeForTests) -> list[str]:
    with store.open_for_reading(home.home.store_file, home.home.data("good"), "good") as opened:
        assert not opened.in_memory
        return opened.stamps("good")


def test_a_home_before_its_first_night_has_no_fault(home: HomeForTests) -> None:
    code, lines = doctor(home)
    assert code == 0, "\n".join(lines)
    assert about(lines, "archives") == ["ok       archives: no archive yet."]


def test_a_home_that_is_well_has_no_fault(home: HomeForTests) -> None:
    home.night()
    code, lines = doctor(home)
    assert code == 0, "\n".join(lines)
    assert not [line for line in lines if line.startswith("FAULT")]
    for subject in ("config", "history", "index", "schedule", "archives", "disk", "permissions", "tools", "routes"):
        assert about(lines, subject), subject
    assert "-after succeeded: " in about(lines, "archives")[0]
    assert not list((home.root / "tmp").glob(".restore*")), "what the drill made is removed"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("20200101T000000Z", "it is a copy of the night "),
        (LATER, "it is dated in the future: the clock says "),
    ],
)
def test_a_copied_data_file_is_told_and_set_aside_by_fix(home: HomeForTests, name: str, said: str) -> None:
    home.night()
    stray = copy_data(home, name)
    code, lines = doctor(home)
    assert code == 1
    assert any(f"results/experiments/data/good/data_{name}.json: {said}" in line for line in about(lines, "history"))
    assert stray.exists()
    code, lines = doctor(home, "--fix")
    assert code == 0, "\n".join(lines)
    assert not stray.exists()
    aside = home.path / "results" / "set_aside" / stray.relative_to(home.path / "results")
    assert read(aside)["value"] == 1.5
    why = [json.loads(line) for line in (home.path / "results" / "set_aside" / "why.jsonl").read_text().splitlines()]
    assert [line["path"] for line in why] == [f"experiments/data/good/data_{name}.json"]
    assert doctor(home)[0] == 0


def test_a_night_sets_strays_aside_by_itself_and_says_so(home: HomeForTests) -> None:
    first = home.night()["stamp"]
    home.night()
    copy_data(home, "20200101T000000Z")
    copy_data(home, LATER)
    shutil.copy2(home.home.night_file(first), home.home.night_file(LATER))
    (home.home.data_file("good", "20200102T000000Z")).write_text("{")
    last = home.night()
    notes = [note for note in last["notes"] if "was moved aside" in note]
    assert len(notes) == 4, last["notes"]
    assert LATER not in home.stamps()
    assert indexed(home) == data_stamps(home.home.data("good")) == home.stamps()
    assert doctor(home)[0] == 0
    assert home.night()["notes"] == []


def test_a_night_that_is_well_reads_no_old_file_again(home: HomeForTests, monkeypatch: pytest.MonkeyPatch) -> None:
    home.night()
    home.night()
    seen: list[Path] = []
    original = common.read_json
    monkeypatch.setattr(common, "read_json", lambda path, **more: seen.append(path) or original(path, **more))
    assert list(strays.find_strays(home.home, common.utc_now(), only_new=True)) == []
    assert [path.parent.name for path in seen] in ([], ["nights"])


def test_status_shows_the_last_night_though_one_is_dated_ahead(home: HomeForTests) -> None:
    stamp = home.night()["stamp"]
    value = read(home.home.night_file(stamp))
    write(home.home.night_file(LATER), {**value, "stamp": LATER})
    output = home.run(verb="status").output
    assert output.startswith(f"Night {stamp}")
    assert "1 nights are dated in the future" in output


def test_a_clock_that_is_behind_moves_nothing(home: HomeForTests) -> None:
    first = home.night()
    for day in range(5):
        stamp = f"2099010{day + 1}T000000Z"
        write(home.home.night_file(stamp), {**first, "stamp": stamp})
    before = home.stamps()
    assert home.run().code == 0
    (tonight,) = set(home.stamps()) - set(before)
    last = read(home.home.night_file(tonight))
    assert any("5 nights are dated later. If the clock is wrong, set it; " in note for note in last["notes"])
    code, lines = doctor(home, "--fix")
    assert code == 1
    assert about(lines, "clock")
    assert set(before) < set(home.stamps())
    code, lines = doctor(home, "--clock-is-right", "--fix")
    assert code == 0, "\n".join(lines)
    assert home.stamps() == [first["stamp"], tonight]
    assert len(list((home.path / "results" / "set_aside" / "nights").iterdir())) == 5
    assert home.run().code == 0
    assert doctor(home)[0] == 0


def test_data_that_were_moved_by_hand_are_left_alone(home: HomeForTests) -> None:
    home.night()
    newest = data_stamps(home.home.data("good"))[-1]
    os.rename(copy_data(home, newest, experiment="other"), home.home.data_file("other", "20200101T000000Z"))
    os.rename(home.home.data_file("good", newest), home.home.data_file("good", "20200101T000000Z"))
    assert not [line for line in about(doctor(home)[1], "history") if line.startswith("FAULT")]


def test_data_of_another_experiment_is_told(home: HomeForTests) -> None:
    home.night()
    newest = data_stamps(home.home.data("good"))[-1]
    copy_data(home, newest, experiment="other")
    assert any("it is a copy of the experiment good" in line for line in about(doctor(home)[1], "history"))


def test_an_index_that_lacks_nights_is_told_and_made_anew(home: HomeForTests) -> None:
    home.night()
    home.night()
    full = indexed(home)
    for path in home.path.glob("results/store.sqlite*"):
        path.unlink()
    code, lines = doctor(home)
    assert code == 0
    assert "good: 2 of 2 nights are missing" in about(lines, "index")[0]
    assert home.run(verb="rebuild").output.startswith("good: 2 nights, 1 series.\n")
    assert indexed(home) == full
    assert "every night" in about(doctor(home)[1], "index")[0]


def test_a_broken_archive_is_found_by_the_drill(home: HomeForTests) -> None:
    home.night()
    held = load_chain(home.root / "backup" / "archives").state()
    sha256 = next(entry.sha256 for entry in held.values() if isinstance(entry, StoredFile))
    content = home.root / "backup" / "objects" / sha256[:2] / sha256
    content.chmod(0o600)
    content.write_bytes(b"rot")
    code, lines = doctor(home)
    assert code == 1
    assert "could not be restored" in about(lines, "archives")[0]
    assert doctor(home, "--no-drill")[0] == 1, "what the last drill found stays until another one is good"


def test_a_night_tries_to_restore_once_a_week(home: HomeForTests) -> None:
    home.night()
    assert drill.read_drill(home.home) is None
    old = common.stamp_of(common.utc_now() - datetime.timedelta(days=8))
    write(home.home.night_file(old), {**home.last(), "stamp": old})
    home.night()
    first = drill.read_drill(home.home)
    assert first is not None
    assert (first.fault, first.archive) == ("", f"{home.stamps()[-1]}-after")
    home.night()
    assert drill.read_drill(home.home) == first


def test_what_was_not_examined_and_that_nobody_is_told_are_said(home: HomeForTests) -> None:
    home.night()
    _, lines = doctor(home)
    said = "`watch` has no route on which to tell that nights stopped; it only prints it. Cron mails that"
    assert about(lines, "routes")[0].startswith(f"warning  routes: {said}")
    home.configure(timeouts={"rum": 3})
    _, lines = doctor(home)
    said = "warning  doctor: archives, disk, permissions and machine were not examined, because the config has errors."
    assert about(lines, "doctor")[0].startswith(said)
    assert not about(lines, "archives")


def test_what_is_remembered_of_the_disk_does_not_grow_for_ever(home: HomeForTests) -> None:
    kept = home.path / "results" / "disk.jsonl"
    kept.parent.mkdir(parents=True)
    kept.write_text("".join(f'{{"night": "n{at}", "free_bytes": {{"{home.path}": 1}}}}\n' for at in range(1000)))
    disk.note_free(home.home, [], "tonight")
    lines = kept.read_text().splitlines()
    assert 365 < len(lines) < 1000, "a year"
    assert "tonight" in lines[-1]


def test_a_disk_says_in_how_many_nights_it_is_full(home: HomeForTests) -> None:
    for _ in range(4):
        home.night()
    (growth,) = disk.find_growth(home.home, [])
    assert len(growth.free_bytes) == 4
    filling = disk.Growth(home.path, (100, 90, 80, 95, 70, 60))
    assert filling.count_nights_left(50, 10) == 4
    assert disk.Growth(home.path, (50, 60, 70, 80)).count_nights_left(50, 10) is None
    assert disk.Growth(home.path, (50, 40)).count_nights_left(50, 10) is None
    lines = [{"night": f"n{at}", "free_bytes": {str(home.path): (60 - at) * 10**12}} for at in range(6)]
    (home.path / "results" / "disk.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in lines) + "damaged\n" + "[" * 5000 + "\n"
    )
    (told,) = disk.examine(home.home, [], 0)
    assert told.severity == "fault"
    assert "1.00 TB a night: full in 0 nights" in told.text


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "powersave"}, "the CPU governor is powersave"),
        ({"sys/devices/system/cpu/intel_pstate/no_turbo": "0"}, "turbo is on"),
        ({"sys/devices/system/cpu/cpufreq/boost": "1"}, "boost is on"),
        ({"sys/devices/system/cpu/smt/active": "1"}, "SMT is on"),
        ({"proc/meminfo": "SwapTotal: 2000000 kB\nSwapFree: 1000000 kB\n"}, "are swapped out"),
        ({}, "no known cause"),
    ],
)
def test_what_makes_a_machine_noisy_is_told_with_what_steadies_it(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text + "\n")
    (found,) = steadiness.examine(tmp_path, look_s=0.0)
    assert said in found.text
    assert bool(found.remedy) == bool(files)


def test_a_config_that_everybody_may_write_is_closed_by_fix(home: HomeForTests) -> None:
    home.night()
    home.home.config_file.chmod(0o646)
    assert doctor(home)[0] == 1
    assert doctor(home, "--fix")[0] == 0
    assert home.home.config_file.stat().st_mode & 0o777 == 0o644


def test_without_a_schedule_and_with_a_bad_config_the_rest_is_told(home: HomeForTests) -> None:
    home.night()
    home.configure(schedule="", timeouts={"rum": 1})
    code, lines = doctor(home)
    assert code == 1
    assert "$.timeouts.rum" in about(lines, "config")[0]
    assert about(lines, "schedule")[0].startswith("warning")
    assert about(lines, "history")


def test_a_link_that_leads_nowhere_and_a_moment_that_there_is_not_are_told_and_set_aside(home: HomeForTests) -> None:
    home.night()
    data, stamps = home.home.data("good"), home.stamps()
    (data / "data_20260101T000000Z.json").symlink_to("nowhere")
    (home.home.nights / "20260102T000000Z.json").symlink_to("20260102T000000Z.json")
    shutil.copy2(home.home.data_file("good", stamps[0]), data / "data_20260230T000000Z.json")
    backfill = home.home.backfill("good")
    backfill.mkdir(parents=True)
    shutil.copy2(home.home.data_file("good", stamps[0]), backfill / "data_20261301T000000Z.json")
    code, lines = doctor(home)
    assert code == 1
    assert len(about(lines, "history")) == 4
    assert any("20260230T000000Z is not a valid time" in line for line in lines)
    assert doctor(home, "--fix")[0] == 0
    aside = home.path / "results" / "set_aside"
    assert (aside / "experiments" / "data" / "good" / "data_20260230T000000Z.json").is_file()
    assert (aside / backfill.relative_to(home.path / "results") / "data_20261301T000000Z.json").is_file()
    assert os.path.lexists(aside / "nights" / "20260102T000000Z.json")
    assert home.home.data_stamps("good") == stamps
    home.night()


def run_days_before(home: HomeForTests, days: float) -> str:
    """A night by a clock that is so far behind; its stamp."""
    before = set(home.stamps())
    done = home.run_at([-days * 86400.0])
    assert done.code == 0, done.output
    (tonight,) = set(home.stamps()) - before
    return tonight


def test_nights_that_a_clock_set_aside_return_once_it_has_passed_them(home: HomeForTests) -> None:
    later = [home.night()["stamp"], home.night()["stamp"]]
    kept = {stamp: home.home.data_file("good", stamp).read_bytes() for stamp in later}
    behind = run_days_before(home, 30)
    assert home.stamps() == [behind]
    assert data_stamps(home.home.data("good")) == [behind]
    still_behind = run_days_before(home, 20)
    assert home.stamps() == [behind, still_behind], "they are still to come"
    # The second of two nights in one second is dated the next one: four nights may take less than that.
    wait_for(lambda: common.stamp_of(common.utc_now()) > later[-1], "the clock has passed them")
    last = home.night()
    assert home.stamps() == [behind, still_behind, *later, last["stamp"]]
    assert {stamp: home.home.data_file("good", stamp).read_bytes() for stamp in later} == kept
    notes = [note for note in last["notes"] if "was moved back from" in note]
    assert len(notes) == 4, last["notes"]
    assert indexed(home) == data_stamps(home.home.data("good")) == home.stamps()
    assert doctor(home)[0] == 0
    assert home.night()["notes"] == []


def test_doctor_tells_of_nights_that_the_clock_has_passed_and_moves_them_back(home: HomeForTests) -> None:
    stamp = home.night()["stamp"]
    run_days_before(home, 30)
    code, lines = doctor(home)
    assert code == 0
    told = [line for line in about(lines, "history") if "the clock has passed it" in line]
    assert len(told) == 2, lines
    assert stamp not in home.stamps()
    doctor(home, "--fix")
    assert stamp in home.stamps()
    assert home.home.data_file("good", stamp).is_file()


def test_nights_that_a_person_called_misdated_do_not_return(home: HomeForTests) -> None:
    first = home.night()
    now = common.utc_now()
    ahead = [common.stamp_of(now + datetime.timedelta(days=day)) for day in range(1, 6)]
    for stamp in ahead:
        write(home.home.night_file(stamp), {**first, "stamp": stamp})
    assert doctor(home, "--clock-is-right", "--fix")[0] == 0
    assert strays.find_returning(home.home, now + datetime.timedelta(days=30)) == []


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"at": NaN}',
        b'{"at": "2020-01-01T00:00:00Z", "path": "../../night/20200102T000000Z.json", "now": "x", "why": ""}',
        b'{"at": "2020-01-01T00:00:00Z", "path": "nights/20200102T000000Z.json", "now": "../../x", "why": ""}',
        b'{"at": "2020-01-01T00:00:00Z", "path": "/tmp/20200102T000000Z.json", "now": "x", "why": ""}',
        b'{"at": "2020-01-01T00:00:00Z", "path": "", "now": "", "why": ""}',
        b'{"at": "2020-01-01T00:00:00Z", "path": "nights/20200230T000000Z.json", "now": "x", "why": ""}',
    ],
)
def test_a_line_of_another_kind_brings_nothing_back(line: bytes, tmp_path: Path) -> None:
    aside = tmp_path / "results" / strays.FOLDER
    aside.mkdir(parents=True)
    (aside / "why.jsonl").write_bytes(line + b"\n")
    assert strays.find_returning(Home(tmp_path), common.utc_now()) == []
