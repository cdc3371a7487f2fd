"""Whatever stages leave, however it is shaped: later nights begin and end, and nobody else's data is lost."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from dashboard.night import folders, raw_data, recovery
from dashboard.night.context import Context
from dashboard.plan.job import CodeFolders, Job
from dashboard.plan.plan import make_plan
from dashboard.process import sandbox
from tests.dashboard import homes, strange_trees
from tests.dashboard.strange_trees import INSTEAD, SHAPES
from tests.thorough import THOROUGH
from tvmdash import common
from tvmdash.common.files import trees

NIGHTS = 3 if THOROUGH else 2
STAGES = ("setup", *homes.STAGES)


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    return on_disk


def plants(stage: str, shapes: Collection[str]) -> str:
    """A good stage that leaves the shapes in its destination; `run` also small ones in its folder and its TMPDIR."""
    places = {f'"{homes.DESTINATION[stage]}"': shapes}
    if stage == "run":
        shallow = [shape for shape in shapes if shape in SHAPES and shape not in ("deep", "chain")]
        places = {'"$PWD/left"': shallow, '"$TMPDIR"': shallow, **places}
    script = homes.good(stage)
    for place, left in places.items():
        script += f"mkdir -p {place}; python3 strange_trees.py {place} {shlex.join(left)}\n"
    return script


def add_planter(
    home: homes.HomeForTests, name: str, stages: Collection[str], shapes: Collection[str], *, sandboxed: bool
) -> None:
    """An experiment whose `stages` leave all of the shapes."""
    scripts = {stage: plants(stage, shapes) for stage in stages}
    folder = home.experiment(name, config={"sandbox": sandboxed}, **scripts)
    shutil.copy(strange_trees.__file__, folder / "strange_trees.py")


def add_planting_subsystem(home: homes.HomeForTests, name: str, shapes: Collection[str]) -> None:
    folder = home.subsystem(name, run=plants("subsystem", shapes))
    shutil.copy(strange_trees.__file__, folder / "strange_trees.py")


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> Iterator[homes.HomeForTests]:
    made = homes.make_home(tmp_path, tvm_artifact_folder)
    made.experiment("innocent")
    made.subsystem("page")
    yield made
    trees.remove(tmp_path)  # pytest's own way ends at the depth of a thousand folders


def test_every_shape_in_every_stage_costs_later_nights_nothing(home: homes.HomeForTests) -> None:
    kinds = ("open", *(() if sandbox.find_obstacle() else ("shut",)))
    quick = [shape for shape in SHAPES if shape != "chain"]  # 1,200 links: in the last stage and the subsystem only
    for kind in kinds:
        add_planter(home, f"{kind}-first", STAGES[:-1], quick, sandboxed=kind == "shut")
        add_planter(home, f"{kind}-last", STAGES[-1:], SHAPES, sandboxed=kind == "shut")
        for shape in INSTEAD:
            add_planter(home, f"{kind}-{shape.replace(' ', '-')}", ["run"], [shape], sandboxed=kind == "shut")
    add_planting_subsystem(home, "planter", SHAPES)
    add_planting_subsystem(home, "misleading", ["deep instead"])
    for night in range(1, NIGHTS + 1):
        check_night(home, night, kinds)
    assert [path for path in (home.root / "tmp").iterdir() if common.is_stamp(path.name)] == []
    assert home.run(verb="check").code == 0


def check_night(home: homes.HomeForTests, number: int, kinds: Collection[str]) -> None:
    done = home.run()
    assert done.code == 1, done.output
    assert home.last()["state"] == "complete"
    assert set(home.states("innocent").values()) == {"ok"}
    for name in ("innocent", *(f"{kind}-{which}" for kind in kinds for which in ("first", "last"))):
        assert len(home.home.data_stamps(name)) == number, name
    for name, state in (("page", "ok"), ("planter", "ok"), ("misleading", "failed")):
        assert home.states(name)["run"] == state
    for kind in kinds:
        assert home.states(f"{kind}-first")["visualize"] == "failed", "a graph that is a pipe is no graph"
        assert home.states(f"{kind}-last")["summarize"] == "failed"
        assert {home.states(f"{kind}-{shape.replace(' ', '-')}")["run"] for shape in INSTEAD} == {"failed"}


IN_PLACE_OF_THE_NIGHTS_OWN = {
    "pipes-as-logs": 'rm "$2/../run.log"; mkfifo "$2/../run.log" "$2/../analyze.log"',
    "endless-log": 'ln -sf /dev/zero "$2/../run.log"',
    "pipe-as-fingerprint": 'rm "$2/../fingerprint"; mkfifo "$2/../fingerprint"',
    "odd-fingerprint": r"printf '\377' > \"$2/../fingerprint\"",
    "secret-fingerprint": 'chmod 000 "$2/../fingerprint"',
    "elsewhere": 'other=$(mktemp -d "$TVMDASH_HOME/../XXXXXX"); mv "$2"/* "$other"; rmdir "$2"; ln -s "$other" "$2"',
}


def test_what_a_stage_puts_in_place_of_the_nights_own_files_costs_nobody_else_anything(
    home: homes.HomeForTests,
) -> None:
    for name, command in IN_PLACE_OF_THE_NIGHTS_OWN.items():
        home.experiment(name, run=f"{homes.good('run')}{command}\n")
    for _ in range(2):
        done = home.run()
        assert done.code == 1, done.output
        assert set(home.states("innocent").values()) == {"ok"}
        assert home.last()["state"] == "complete"
        assert home.states("pipes-as-logs")["analyze"] == "failed"
        assert set(home.states("pipe-as-fingerprint").values()) == {"ok"}
    (note,) = home.last()["notes"]
    assert "Not all raw measurements of elsewhere were kept: run is a link" in note
    assert not list((home.root / "tmp" / "raw" / "elsewhere").glob("*"))


def test_what_a_killed_night_left_of_every_shape_costs_the_next_nights_nothing(home: homes.HomeForTests) -> None:
    add_planter(home, "planter", ["setup", "run"], SHAPES, sandboxed=False)
    waits = f"touch '{home.root}/waits'\nsleep 1000\n"
    home.experiment("zzz", run=f"{homes.good('run')}{waits}")
    with homes.killed_at_end(home.start()) as night:
        homes.wait_for((home.root / "waits").exists, "the stage waits", homes.DEADLINE_S)
        night.kill()
        night.wait()
    homes.wait_for(lambda: home.processes() == [], "the watchdog ends what the night left")
    home.experiment("zzz")
    for _ in range(2):
        home.night()
    assert home.home.data_stamps("innocent") == home.home.data_stamps("planter") == home.stamps()
    assert any("saved its measurements of innocent, planter and zzz" in note for note in notes_of(home, 1))
    assert [path for path in (home.root / "tmp").iterdir() if common.is_stamp(path.name)] == []


def notes_of(home: homes.HomeForTests, number: int) -> list[str]:
    return [*home.home.read_night(home.stamps()[number]).notes]


def test_what_cannot_be_dealt_with_of_a_dead_night_is_moved_aside_and_told(
    home: homes.HomeForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.night()
    tmp = home.root / "tmp"
    dead = tmp / "20261101T000000Z"
    for name in ("innocent", "stuck"):
        homes.write(dead / f"experiment-{name}" / "run" / "raw.json", {"value": 1.5})
        homes.write(dead / f"experiment-{name}" / "run" / "status.json", {"success": False, "message": "-"})
    (dead / "home").write_text(str(home.path))
    keep_raw = raw_data.keep_raw

    def stumble(context: Context, job: Job, raw: Path) -> list[trees.Problem]:
        if job.name == "stuck":
            raise RecursionError("a shape that nobody thought of")
        return keep_raw(context, job, raw)

    monkeypatch.setattr(raw_data, "keep_raw", stumble)
    plan = make_plan(home.home, CodeFolders(home.code / "experiments", home.code / "subsystem"))
    (note,) = [note for note in recovery.recover(plan) if "experiment-stuck" in note]
    assert "could not be dealt with (a shape that nobody thought of)" in note
    assert f"moved aside to {tmp}/set_aside/{dead.name}/experiment-stuck" in note
    assert (tmp / "raw" / "innocent" / f"raw_{dead.name}.zip").is_file()
    assert not dead.exists()
    home.night()
    assert not any("experiment-stuck" in note for note in notes_of(home, -1)), "it is told once"
    for verb in ("check", "doctor"):
        assert f"{tmp}/set_aside/{dead.name}" in home.run(verb=verb).output


def test_a_nights_folder_that_cannot_be_removed_is_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night = tmp_path / "20261101T000000Z"
    homes.write(night / "experiment-x" / "run" / "raw.json", {})
    monkeypatch.setattr(trees, "remove", lambda path: False)
    (told,) = folders.remove(night)
    (aside,) = folders.list_set_aside(tmp_path)
    assert str(aside) in told
    assert (aside / "experiment-x" / "run" / "raw.json").is_file()
    assert folders._list_stamped(tmp_path) == []
