"""What happens to whole nights: killed, interrupted, two at once, a full disk, broken history, no TVM."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.dashboard import homes
from tests.site_files import read_script
from tvmdash.common.files import removal
from tvmdash.dashboard_info.pages import LIVE_FILE, LiveState


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tvm_artifact_folder)


def waiting(home: homes.HomeForTests, stage: str) -> str:
    """A stage that does its work, marks that it is there, leaves processes of every kind, and never ends.

    When it is started again, to save what the killed night measured, it ends well.
    """
    extra = (
        f"sleep 1000 & setsid sleep 1000 & (setsid sh -c 'sleep 1000 & exit' &)\ntouch '{home.root}/waits'\nsleep 1000"
    )
    again = f"if test -e '{home.root}/waits'; then {homes.says(stage)}; exit 0; fi"
    return f"{homes.BEGIN}{homes.WORK[stage]}\n{again}\n{extra}\n"


def wait_there(home: homes.HomeForTests) -> None:
    homes.wait_for((home.root / "waits").exists, "the stage begins")


def read_live(home: homes.HomeForTests) -> dict[str, Any]:
    """What the website's readers are told of the night."""
    return dict(read_script(home.home.output("website") / LIVE_FILE))


class Reader(threading.Thread):
    """Reads what people read of a home, over and over, and keeps what was ever not as it must be."""

    def __init__(self, home: homes.HomeForTests, name: str) -> None:
        super().__init__()
        self._home, self._name, self._stop_now = home, name, threading.Event()
        self.faults: list[str] = []
        self.rounds = 0

    def run(self) -> None:
        places = self._home.home
        while not self._stop_now.is_set():
            self.rounds += 1
            try:
                assert places.graph(self._name).joinpath("graph.svg").read_text().startswith("graph of 2")
                assert places.read_summary(self._name) is not None
                assert places.output("website").joinpath("index.html").read_text().startswith("page of 2")
                for stage in ("precheck", *homes.STAGES):
                    assert "success" in self._home.status(self._name, stage)
            except (OSError, ValueError, AssertionError) as error:
                self.faults.append(repr(error))
            time.sleep(0.001)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_now.set()
        self.join()


@pytest.mark.parametrize(
    "stage",
    [
        "run",
        "subsystem",
        *(pytest.param(stage, marks=pytest.mark.slow) for stage in ("setup", "analyze", "visualize", "summarize")),
    ],
)
def test_a_night_killed_in_any_stage_loses_nothing_and_leaves_no_process(home: homes.HomeForTests, stage: str) -> None:
    home.experiment("cnn", setup=homes.good("setup"))
    home.experiment("a-first")
    home.subsystem("website", run=homes.good("subsystem"))
    home.subsystem("wait")
    home.night()
    if stage == "subsystem":
        home.subsystem("wait", run=waiting(home, "subsystem"))
    else:
        scripts = {"setup": homes.good("setup"), stage: waiting(home, stage)}
        home.experiment("cnn", config={"rerun_setup": True}, **scripts)
    with Reader(home, "cnn") as reader:
        with homes.killed_at_end(home.start()) as night:
            wait_there(home)
            homes.wait_for(lambda: len(home.processes()) >= 3, "the processes of the stage")
            night.kill()
            night.wait()
            homes.wait_for(lambda: home.processes() == [], "the watchdog ends what the night left", deadline_s=120)
        first, killed = home.stamps()
        assert home.last()["state"] == "running"
        shown = home.run(verb="status")
        assert (shown.code, "was interrupted" in shown.output) == (1, True)
        home.experiment("cnn", setup=homes.good("setup"))
        home.subsystem("wait")
        home.night()
    assert reader.rounds > 10
    assert reader.faults == []
    third = home.stamps()[2]
    measured = stage not in {"setup", "run"}
    assert home.home.data_stamps("cnn") == [first, *([killed] if measured else []), third]
    assert home.home.data_stamps("a-first") == [first, *([killed] if stage != "setup" else []), third]
    record = homes.read(home.home.night_file(killed))
    assert record["state"] == "interrupted"
    assert any(killed in note for note in home.last()["notes"])
    if stage != "setup":
        data = homes.read(home.home.data_file("a-first", killed))
        assert (data["timestamp"], data["night"]["stamp"], data["value"]) == (killed, killed, 1.5)
        assert data["night"]["artifact"]["key"].startswith("wheel-")
        assert data["tvm_hash"]
        assert data["night"]["seed"] == record["seed"]
        assert (home.root / "tmp" / "raw" / "cnn" / f"raw_{killed}.zip").is_file()
    assert not list((home.root / "tmp").glob("2*"))


def test_a_night_killed_while_it_saves_an_earlier_one_leaves_no_process_either(home: homes.HomeForTests) -> None:
    hang = home.root / "hang"
    hang.touch()
    lines = f"touch {home.root}/waits\nif test -e {hang}; then setsid sleep 1000 & sleep 1000; fi"
    home.experiment("cnn", analyze=homes.good("analyze", lines))
    for _ in range(2):
        with homes.killed_at_end(home.start()) as night:
            wait_there(home)
            night.kill()
            homes.wait_for(lambda: home.processes() == [], "the watchdog ends what the night left", deadline_s=120)
            (home.root / "waits").unlink()
    hang.unlink()
    home.night()
    assert home.home.data_stamps("cnn") == home.stamps()
    assert len(home.stamps()) == 2


def test_processes_of_a_killed_night_are_ended_before_what_they_fill_is_removed(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.night()
    killed = "20260101T000000Z"
    folders = [home.root / "tmp" / killed, home.home.graph("cnn").with_name(".cnn.abcd1234.new")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "home").write_text(str(home.path))
    fill = "while :; do for n in $(seq 200); do mkdir -p $0; : > $0/$n; done; done"
    env = {"PATH": os.environ["PATH"], "TVMDASH_STAGE_ID": f"{home.path}:{killed}/1"}
    fillers = [subprocess.Popen(["sh", "-c", fill, str(folder)], env=env) for folder in folders]
    try:
        homes.wait_for(lambda: all((folder / "200").exists() for folder in folders), "the processes are at work")
        done = home.run()
        assert done.code == 0, done.output
        assert [filler.wait(timeout=120) for filler in fillers] == [-signal.SIGKILL] * 2
        assert not [folder for folder in folders if folder.exists()]
    finally:
        for filler in fillers:
            filler.kill()
            filler.wait()


def test_whatever_killed_nights_left_half_written_is_removed_by_the_next(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.subsystem("stat_alerts")
    home.night()
    results, tmp = home.path / "results", home.root / "tmp"
    left = [
        home.home.output("stat_alerts") / ".state.json.abcd1234.tmp",
        home.home.output("stat_alerts") / "incidents" / ".x.json.abcd1234.tmp",
        results / "experiments" / "telemetry" / "cnn" / ".telemetry_20260101T000000Z.json.abcd1234.tmp",
        home.home.data("cnn") / ".data_20260101T000000Z.json.abcd1234.tmp",
        home.home.backfill("cnn") / ".data_20260101T000000Z.json.abcd1234.tmp",
        tmp / "20260101T000000Z" / "experiment-cnn" / "run" / "half",
        tmp / ".20260102T000000Z.abcd1234.new" / "home",
        tmp / "raw" / "cnn" / ".raw_20260101T000000Z.abcd1234.new" / "half",
    ]
    kept = [
        home.home.output("stat_alerts") / ".mine.tmp",
        tmp / "20260103T000000Z" / "somebody's own",
        tmp / "20260104T000000Z" / "home",
    ]
    for path in (*left, *kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of another home")
    home.night()
    assert [path for path in left if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []
    assert sorted(path.name for path in tmp.glob("*2026010*")) == ["20260103T000000Z", "20260104T000000Z"]


def test_a_folder_that_another_home_claims_at_this_moment_stays_its_own(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    with removal.new_folder_beside(home.root / "tmp" / "20260101T000000Z") as claimed:
        home.night()
        assert claimed.is_dir()
    assert not claimed.exists()


def test_what_a_failed_run_left_is_not_saved_after_a_kill(home: homes.HomeForTests) -> None:
    failing = f"{homes.BEGIN}{homes.WORK['run']}\n{homes.says('run', 'wrong answer', success=False)}\n"
    home.experiment("a-well")
    home.experiment("a-wrong", run=failing)
    home.experiment("b", run=waiting(home, "run"))
    with homes.killed_at_end(home.start()) as night:
        wait_there(home)
        night.kill()
    home.experiment("a-wrong")
    home.experiment("b")
    homes.wait_for(lambda: home.processes() == [], "the watchdog ends what the night left")
    home.night()
    killed, second = home.stamps()
    assert home.home.data_stamps("a-wrong") == [second]
    assert home.home.data_stamps("a-well") == [killed, second]
    assert (home.root / "tmp" / "raw" / "a-wrong" / f"raw_{killed}.zip").is_file()


def test_a_night_whose_saving_fails_is_saved_by_a_later_start(home: homes.HomeForTests) -> None:
    home.experiment("cnn", analyze=waiting(home, "analyze"))
    with homes.killed_at_end(home.start()) as night:
        wait_there(home)
        night.kill()
    home.experiment("cnn")
    zips = home.root / "tmp" / "raw"
    zips.write_text("in the way")
    done = home.run()
    assert "its measurements are not saved yet" in done.output
    zips.unlink()
    home.night()
    assert home.stamps()[0] in home.home.data_stamps("cnn")
    assert (zips / "cnn" / f"raw_{home.stamps()[0]}.zip").is_file()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", ["run", "analyze"])
def test_an_interrupted_night_ends_at_once_with_130(home: homes.HomeForTests, number: int, stage: str) -> None:
    home.experiment("cnn", **{stage: waiting(home, stage)})
    home.experiment("other")
    with homes.killed_at_end(home.start()) as night:
        wait_there(home)
        night.send_signal(number)
        output, _ = night.communicate(timeout=120)
    assert night.returncode == 130, output
    assert "was interrupted" in output
    assert home.processes() == []
    assert home.last()["state"] == "interrupted"
    home.experiment("cnn")
    home.night()
    assert home.home.data_stamps("cnn") == (home.stamps() if stage == "analyze" else home.stamps()[1:])


def test_an_interrupted_night_closes_its_record_however_often_it_is_told(home: homes.HomeForTests) -> None:
    home.experiment("cnn", run=waiting(home, "run"))
    with homes.killed_at_end(home.start()) as night:
        wait_there(home)
        while night.poll() is None:
            night.send_signal(signal.SIGTERM)
            time.sleep(0.002)
        output, _ = night.communicate(timeout=120)
    assert night.returncode == 130, output
    assert home.last()["state"] == "interrupted"


def test_two_nights_at_once_are_refused_with_75(home: homes.HomeForTests) -> None:
    home.experiment("cnn", run=waiting(home, "run"))
    live = home.home.output("website") / LIVE_FILE
    live.parent.mkdir(parents=True)
    live.touch()
    with homes.killed_at_end(home.start()) as night:
        wait_there(home)
        second = home.run()
        assert second.code == 75
        assert f"process {night.pid} on " in second.output
        assert "another night is using this home" in second.output
        assert night.poll() is None
        shown = home.run(verb="status")
        assert "is still running" in shown.output
        assert re.search(r"Now: experiment cnn, run, since 2\d{3}-\d\d-\d\d \d\d:\d\d UTC\.", shown.output)
        assert "1 of 5 steps done" in shown.output
        assert read_live(home)["state"] == LiveState.RUNNING
        assert "It took" not in shown.output
        night.send_signal(signal.SIGTERM)
        assert night.wait(timeout=120) == 130
    assert "Now:" not in home.run(verb="status").output
    assert not (home.path / "results" / ".now.keep.tmp").exists()
    assert read_live(home)["state"] == LiveState.INTERRUPTED
    home.experiment("cnn")
    home.night()


def test_without_tvm_experiments_are_blocked_and_subsystems_run(home: homes.HomeForTests, tmp_path: Path) -> None:
    home.experiment("cnn")
    home.subsystem("website")
    home.night()
    good = home.stamps()[0]
    home.configure(artifact_dir=str(tmp_path / "none"))
    done = home.run()
    assert done.code == 1
    assert "no tested TVM" in done.output
    assert set(home.states("cnn").values()) == {"ok", "blocked"}
    assert "no TVM to measure" in home.status("cnn", "run")["message"]
    assert home.status("website", "run", kind="subsystem")["state"] == "ok"
    assert home.home.data_stamps("cnn") == [good]
    assert home.home.read_summary("cnn") == ("Sum", f"of {good}")


def test_a_night_without_any_backup_fails_and_says_so_first(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.subsystem("website")
    (home.root / "backup").mkdir()
    (home.root / "backup" / "archives").write_text("in the way")
    done = home.run()
    assert done.code == 1, done.output
    shown = home.run(verb="status")
    assert shown.code == 1
    for output in (done.output, shown.output):
        first = next(line for line in output.splitlines() if line.startswith("Night "))
        assert ": The backup failed. " in first
    missing = home.last()["missing_backups"]
    assert [one["moment"] for one in missing] == ["before", "after"]
    assert all(str(home.root / "backup") in one["error"] for one in missing)
    assert home.home.data_stamps("cnn") == home.stamps(), "what was measured is kept all the same"


def test_a_home_that_loses_its_backup_to_another_one_fails_its_night(home: homes.HomeForTests) -> None:
    archives = home.root / "backup" / "archives"
    archives.mkdir(parents=True)
    free = home.root / "free"
    lines = f'touch "{home.root}/waits"; until test -e "{free}"; do sleep 0.05; done'
    home.experiment("cnn", summarize=homes.good("summarize", lines))
    with homes.killed_at_end(home.start()) as night, (archives / ".lock").open("w") as lock:
        wait_there(home)
        fcntl.flock(lock, fcntl.LOCK_EX)
        free.touch()
        output, _ = night.communicate(timeout=homes.DEADLINE_S)
    assert night.returncode == 1, output
    assert "after the night failed. " in output
    (missing,) = home.last()["missing_backups"]
    assert (missing["moment"], "Use a separate backup_dir for each home" in missing["error"]) == ("after", True)


def test_what_blocks_several_experiments_is_said_once(home: homes.HomeForTests, tmp_path: Path) -> None:
    for name in ("cnn", "lstm", "vgg"):
        home.experiment(name)
    home.configure(artifact_dir=str(tmp_path / "none"), randomize=False)
    done = home.run()
    shown = home.run(verb="status")
    for output in (done.output[done.output.index("Night 2") :], shown.output):
        assert output.count("no tested TVM") == 1
        assert "experiments cnn, lstm and vgg blocked: no TVM to measure: " in output
    last = home.last()
    assert [note for index, note in enumerate(last["notes"]) if index in last["told_notes"]] == last["notes"]
    causes = {(step["reason"], step["subject"]) for job in last["jobs"] for step in job["steps"][1:]}
    assert {reason for reason, _ in causes} == {"no_tvm"}
    assert len(causes) == 1


def test_a_setup_that_fails_blocks_its_job_and_keeps_the_earlier_one(home: homes.HomeForTests) -> None:
    home.experiment("cnn", setup=homes.good("setup"))
    home.experiment("other")
    home.night()
    kept = sorted((home.root / "setup" / "cnn").iterdir())
    failing = f'{homes.BEGIN}touch "$2/half"\n{homes.says("setup", "no compiler", success=False)}\nexit 1\n'
    home.experiment("cnn", setup=failing)
    assert home.run().code == 1
    assert home.status("cnn", "setup")["message"] == "no compiler"
    assert home.status("cnn", "run")["message"] == "setup failed"
    assert set(home.states("other").values()) == {"ok"}
    assert sorted((home.root / "setup" / "cnn").iterdir()) == kept
    home.experiment("cnn", setup=homes.good("setup"))
    home.night()
    assert home.states("cnn")["setup"] == "skipped"


def test_a_first_setup_that_fails_is_tried_again(home: homes.HomeForTests) -> None:
    failing = f"{homes.BEGIN}test -e '{home.root}/compiler'\n{homes.WORK['setup']}\n{homes.says('setup')}\n"
    home.experiment("cnn", setup=failing)
    assert home.run().code == 1
    (home.root / "compiler").touch()
    home.night()
    assert home.states("cnn")["setup"] == "ok"


def test_broken_files_in_the_history_cost_only_themselves(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.subsystem("website")
    for _ in range(2):
        home.night()
    first, second = home.stamps()
    home.home.data_file("cnn", first).write_text('{"trunc')
    home.home.night_file(first).write_text("[]")
    home.home.data("cnn").joinpath("data_backup.json").write_text("not ours")
    home.home.nights.joinpath("1.bak").write_text("not ours")
    home.home.store_file.write_bytes(b"damaged" * 1000)
    time.sleep(1.1)  # a night moved aside sets its stamp free, and its archive has the second's name already
    notes = home.night()["notes"]
    third = home.stamps()[-1]
    assert home.stamps() == [second, third]
    assert [note.partition(" was moved aside ")[0] for note in notes] == [
        f"nights/{first}.json", f"experiments/data/cnn/data_{first}.json",
    ]  # fmt: skip
    from tvmdash.series import store

    with store.open_for_reading(home.home.store_file, home.home.data("cnn"), "cnn") as opened:
        (series,) = opened.series("cnn")
    assert series.stamps == (second, third)
    assert [night.stamp for night in home.home.last_nights(5)] == [third, second]
    home.home.night_file(third).write_text('{"stamp": 5')
    shown = home.run(verb="status")
    assert (shown.code, str(home.home.night_file(third)) in shown.output) == (2, True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted disk of 24 MB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", place], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


FILL = 'head -c 100000000 /dev/zero > "{place}" 2>/dev/null || true'


def test_a_full_working_disk_fails_one_job_in_words(home: homes.HomeForTests, small_disk: Path) -> None:
    home.configure(tmp_data_dir=str(small_disk))
    home.experiment("b-fills", run=homes.good("run", 'head -c 100000000 /dev/zero > "$2/big"'))
    home.experiment("a-before")
    home.subsystem("website")
    done = home.run()
    assert done.code == 1, done.output
    message = home.status("b-fills", "run")["message"]
    assert "no status.json" in message
    assert f"The disk with {small_disk} is full" in message
    assert "No space left" in home.status("b-fills", "run")["log_tail"]
    assert home.status("website", "run", kind="subsystem")["state"] == "ok"
    assert home.last()["state"] == "complete"
    home.experiment("b-fills")
    home.night()
    assert home.stamps()[1] in home.home.data_stamps("a-before")


def test_a_full_home_is_said_and_its_statuses_are_still_written(
    tmp_path: Path, tvm_artifact_folder: Path, small_disk: Path
) -> None:
    home = homes.make_home(small_disk, tvm_artifact_folder)
    home.configure(tmp_data_dir=str(tmp_path / "t"), backup_dir=str(tmp_path / "b"), setup_dir=str(tmp_path / "s"))
    home.experiment("a-first")
    home.experiment("cnn")
    home.subsystem("website")
    home.night()
    first = home.stamps()[0]
    big = small_disk / "big"
    home.experiment("a-first", run=homes.good("run", FILL.format(place=big)))
    done = home.run()
    assert done.code == 0, "what was kept for a full disk is enough for a small night"
    assert f"The disk with {home.path} is full" in done.output
    assert home.last()["state"] == "complete"
    assert home.home.data_stamps("cnn") == home.stamps()
    assert home.home.graph("cnn").joinpath("graph.svg").read_text() == f"graph of {home.stamps()[1]}\n"
    assert home.home.data_file("cnn", first).is_file()
    big.unlink()
    home.experiment("a-first")
    home.night()
    assert home.processes() == []


def test_a_home_that_is_filled_to_the_last_byte_still_gets_through_the_night(
    tmp_path: Path, tvm_artifact_folder: Path, small_disk: Path
) -> None:
    home = homes.make_home(small_disk, tvm_artifact_folder)
    home.configure(tmp_data_dir=str(tmp_path / "t"), backup_dir=str(tmp_path / "b"), setup_dir=str(tmp_path / "s"))
    home.experiment("cnn", visualize=homes.good("visualize", 'head -c 100000 /dev/zero > "$3/large"'))
    home.night()
    (first,) = home.stamps()
    fill = FILL.format(place="{}")
    for index in range(3):
        home.experiment(f"e{index}", run=homes.good("run", fill.format(small_disk / f"big{index}")))
    home.experiment("z-last", run=homes.good("run", fill.format(small_disk / "big3")))
    ran = tmp_path / "ran"
    home.subsystem("website", run=homes.good("subsystem", f"touch {ran}"))
    done = home.run()
    assert done.code == 1, done.output
    assert "is a bug" not in done.output
    assert "No space left on device" in done.output
    assert ran.exists()
    assert home.home.data_stamps("cnn") == [first]
    assert home.home.graph("cnn").joinpath("graph.svg").read_text() == f"graph of {first}\n"
    assert "success" in home.status("cnn", "visualize")
    for big in small_disk.glob("big*"):
        big.unlink()
    home.experiment("z-last")
    for index in range(3):
        home.experiment(f"e{index}")
    home.night()


def test_a_disk_with_too_little_room_stops_the_night_before_it_begins(home: homes.HomeForTests) -> None:
    home.configure(min_free_mb=10**9)
    home.experiment("cnn")
    done = home.run()
    assert done.code == 2
    assert "less than min_free_mb" in done.output
    assert home.stamps() == []


def test_a_home_that_cannot_be_written_is_said(home: homes.HomeForTests) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    home.path.chmod(0o555)
    done = home.run()
    home.path.chmod(0o755)
    assert (done.code, "Nights need write permission" in done.output) == (2, True)
