"""`publish`: the website made again without a night, as after a restore."""

from __future__ import annotations

import dataclasses
import shutil
import sqlite3
from pathlib import Path

import pytest

from dashboard.archive import archive
from dashboard.night import lock
from tests.dashboard.homes import BEGIN, HomeForTests, make_home, says, write
from tvmdash.dashboard_info import Home
from tvmdash.verdict import ledger


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts", schedule="0 0 1 1 *")
    write(made.experiment("good") / "fields.json", {"needs_tvm": False})
    made.subsystem()
    made.subsystem("teller", run=f'{BEGIN}echo told >> "$3/told"\n{says("subsystem")}\n')
    return made


def restore(home: HomeForTests) -> HomeForTests:
    """The home as its newest archive has it, in the place of another."""
    other = dataclasses.replace(home, root=home.root / "restored")
    shutil.copytree(home.code, other.code)
    archive.restore(home.root / "backup", None, other.path)
    shutil.rmtree(other.home.output("website"))  # the real one asks not to be archived
    return other


def test_a_restored_home_has_no_fault_and_gets_its_page_without_a_night(home: HomeForTests) -> None:
    stamp = home.night()["stamp"]
    other = restore(home)
    assert other.home.page() is None
    doctor = other.run("--no-drill", verb="doctor")
    assert doctor.code == 0, doctor.output
    said = f"{other.root}/backup contains no archive. It is so after a restore; the next night makes one."
    assert f"warning  archives: {said}" in doctor.output
    with lock.hold_machine(Home(home.root / "measuring"), 0) or pytest.fail("the machine is held"):
        done = other.run(verb="publish")
    assert done.code == 0, done.output
    page = other.home.page()
    assert page is not None
    assert page.read_text() == f"page of {stamp}\n"
    assert done.output.endswith(f"Page: {page.as_uri()}\n")
    assert other.stamps() == [stamp]
    assert (other.path / "told").read_text() == "told\n", "no other subsystem runs"
    assert "index covers" in other.run("--no-drill", verb="doctor").output
    assert [path.name for path in (other.root / "tmp").iterdir()] == ["cache"]


def test_subsystems_of_the_first_night_after_a_restore_have_all_that_was_kept(home: HomeForTests) -> None:
    home.subsystem("teller", run=f'{BEGIN}cp "$3/results/store.sqlite" "$3/seen.sqlite"\n{says("subsystem")}\n')
    stamp = home.night()["stamp"]
    ledger.append(home.home, stamp, ledger.PAGE, {"sentence": ["good", "Nothing moved"]})
    home.home.store_file.unlink()
    home.night()
    with sqlite3.connect(home.path / "seen.sqlite") as seen:
        assert seen.execute("SELECT sentence FROM nights WHERE night = ?", (stamp,)).fetchone() == ("Nothing moved",)
    seen.close()


def test_what_cannot_be_published_is_said(home: HomeForTests) -> None:
    done = home.run(verb="publish")
    assert (done.code, done.output) == (2, f"{home.path}: no night has run yet. Run one; it makes the website too.\n")
    home.night()
    home.subsystem(run=f"{BEGIN}echo lost >&2\n{says('subsystem', 'no template', success=False)}\nexit 1\n")
    done = home.run(verb="publish")
    assert done.code == 1
    assert done.output.startswith("no template\nlost\n")
    write(home.home.config("subsystem", "website") / "config.json", {"active": False})
    done = home.run(verb="publish")
    assert done.code == 2
    assert "config/subsystem/website/config.json: website is not an active subsystem of this home." in done.output
