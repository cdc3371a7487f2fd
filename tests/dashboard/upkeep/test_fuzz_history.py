"""Histories in any state: commands and the next night say what is wrong, and nothing that was measured is lost."""

from __future__ import annotations

import collections
import contextlib
import io
import json
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given

from dashboard.cli.main import main
from tests import fuzzing
from tests.dashboard import homes, result_homes
from tests.fuzzing import the_same_each_time

DATA = {
    "schema_version": 1, "tvm_hash": "c0ffee", "environment": {"machine": result_homes.MACHINE}, "failures": [],
    "records": [result_homes.record("cnn.net", 1.5)],
}  # fmt: skip
STAMPS = (
    "00010101T000000Z", "99991231T235959Z", "20260230T031500Z", "20261121T235960Z", "00000000T000000Z",
    "20990101T000000Z", "19700101T000000Z", "20261121t031500z", "20261121T031500Z",
)  # fmt: skip
COMMANDS = (
    ("status",), ("watch", "--verbose"), ("doctor", "--no-drill"), ("results",), ("incidents", "list"), ("retire",),
    ("mute",), ("annotate", "list"), ("tries",), ("routes",), ("check",), ("plan",), ("rebuild",),
    ("doctor", "--no-drill", "--fix"),
)  # fmt: skip
OF_CODE = {"doctor", "check", "plan"}
LEFT_ALONE = (".log", ".svg", ".html", ".lock")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tvm_artifact_folder: Path) -> tuple[homes.HomeForTests, Path]:
    """A home with three nights, and a copy of what it was then."""
    home = homes.make_home(tmp_path_factory.mktemp("history"), tvm_artifact_folder, schedule="0 3 * * *")
    home.experiment("foreign")
    leave = f"printf '%s' '{json.dumps(DATA)}' > \"$3/data.json\""
    home.experiment("ours", analyze=f"{homes.BEGIN}{leave}\n{homes.says('analyze')}\n")
    home.subsystem("page")
    for _ in range(3):
        home.night()
    shutil.copytree(home.path, home.root / "kept", symlinks=True)
    return home, home.root / "kept"


@the_same_each_time(3, 50)
@given(fuzzing.cases(lambda chance: chance))
def test_commands_and_the_next_night_lose_nothing(made: tuple[homes.HomeForTests, Path], chance: random.Random) -> None:
    home, kept = made
    shutil.rmtree(home.path)
    shutil.copytree(kept, home.path, symlinks=True)
    files = [path for path in (home.path / "results").rglob("*") if path.is_file() and path.suffix not in LEFT_ALONE]
    done = [spoil(chance, path) for path in chance.sample(sorted(files), chance.choice((1, 1, 2, 3)))]
    before = count_measured(home)
    for command in COMMANDS:
        code, output = call(home, command)
        assert code in {0, 1, 2}, (command, done, output)
    assert count_measured(home) == before, done
    night = home.run()
    assert night.code in {0, 1, 2}, (done, night.output)
    assert before <= count_measured(home), done
    if night.code != 2:
        assert call(home, ("results",))[0] == 0, done


def spoil(chance: random.Random, path: Path) -> str:
    """Damage the file, put something else in its place, or add it once more as that of another night."""
    stamp = path.stem.removeprefix("data_")
    is_nights = stamp != path.stem or path.parent.name == "nights"
    how = chance.choice(("damage", "damage", "else", "copy" if is_nights else "damage"))
    if how == "else":
        return f"{path}: {fuzzing.put_something_else(chance, path)}"
    raw = path.read_bytes()
    if how == "copy":
        other = chance.choice(STAMPS)
        copy = path.with_name(path.name.replace(stamp, other))
        copy.write_bytes(raw.replace(stamp.encode(), other.encode()) if chance.random() < 0.5 else raw)
        return str(copy)
    if path.suffix == ".json":
        raw = fuzzing.make_file(chance, json.loads(raw))
    elif path.suffix == ".jsonl":
        raw = fuzzing.make_lines(chance, [json.loads(line) for line in raw.splitlines()])
    else:
        raw = fuzzing.damage(chance, raw)
    path.write_bytes(raw)
    return f"{path}: {raw[:200]!r}"


def count_measured(home: homes.HomeForTests) -> collections.Counter[bytes]:
    """What there is of data and of records of nights, wherever it lies; of a link, where it leads."""
    results = home.path / "results"
    folders = [results / "experiments" / "data", results / "nights", results / "set_aside"]
    files = [path for folder in folders for path in folder.rglob("*") if path.name != "why.jsonl"]
    links = [os.readlink(path).encode() for path in files if path.is_symlink()]
    return collections.Counter([*links, *(path.read_bytes() for path in files if _is_plain(path))])


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def call(home: homes.HomeForTests, command: Sequence[str]) -> tuple[object, str]:
    """Perform the command here; its exit code and all that it said."""
    verb, *options = command
    said = io.StringIO()
    folders = [*home._folders(), *homes._unbuilt(verb)] if verb in OF_CODE else []
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            code: object = main([verb, str(home.path), *folders, *options])
        except SystemExit as ended:
            code = ended.code
    return code, said.getvalue()
