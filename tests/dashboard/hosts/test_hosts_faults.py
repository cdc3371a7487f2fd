"""What a night says of each thing that goes wrong on a host, and what it does: real workers, real situations."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard import homes, host_homes, remeasure_homes
from tests.dashboard.homes import HomeForTests
from tests.dashboard.hosts.test_copies import put_tvm
from tests.dashboard.hosts.test_hosts_night import WAITS, add_experiment, read_host

STRAY = """
mkdir -p "{there}/home/results/experiments/data/other"
echo {{}} > "{there}/home/results/experiments/data/other/data_$TVMDASH_NIGHT.json"
"""


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    """A home whose one experiment is measured on the host box."""
    made = homes.make_home(tmp_path, tmp_path / "artifacts")
    add_experiment(made, hosts=("box",))
    return made


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """While the block lasts, `folder` is a disk of that size with what was in it."""
    aside = folder.with_name(f"{folder.name}.aside")
    folder.mkdir(parents=True, exist_ok=True)
    os.rename(folder, aside)
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted here; it needs root")
    try:
        shutil.copytree(aside, folder, symlinks=True, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def read_message(home: HomeForTests, stage: str) -> str:
    return str(home.status("plain~box", stage)["message"])


def forget_acknowledgement(home: HomeForTests, stamp: str) -> Path:
    """The host's home, which does not know any more that it has handed over that night."""
    there = host_homes.folder(home, "box")
    (there / "acknowledged" / stamp).unlink()
    return there / "home"


def test_a_host_without_a_python_that_serves_is_named_with_the_remedy(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    homes.script(home.root / "bin" / "python3", "#!/bin/sh\necho 310 3.10.2 tag complete /usr/bin/python3.10\n")
    ssh = (home.root / "bin" / "ssh").read_text().replace("env -i", f"env -i TVMDASH_PYTHON={home.root}/bin/python3")
    homes.script(home.root / "bin" / "ssh", ssh)
    assert home.run_with(env).code == 1
    words = "box: connection closed. Last output: worker.sh: Python 3.11 to 3.14 is required, but only "
    assert read_host(home)["state"] == "away"
    assert read_message(home, "run").startswith(words)
    assert "3.10.2) was found. Install a supported version" in read_message(home, "run")


def test_a_host_whose_clock_is_off_measures_and_the_night_says_so(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    host_homes.shift_clock(host_homes.folder(home, "box"), -600)
    assert home.run_with(env).code == 0
    (host, stamp) = read_host(home), home.stamps()[-1]
    assert host["state"] == "measured"
    assert -605 < float(str(host["clock_offset_s"])) < -595
    (note,) = home.last()["notes"]
    assert note.startswith("box: its clock is ")
    assert note.endswith(" s behind. Synchronize it with a time server (chrony, systemd-timesyncd).")
    assert homes.read(home.home.data_file("plain~box", stamp))["timestamp"] == stamp


def test_a_host_whose_clock_is_behind_hands_over_an_earlier_night_all_the_same(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    assert home.run_with(env).code == 0
    (first,) = home.stamps()
    forget_acknowledgement(home, first)
    host_homes.shift_clock(host_homes.folder(home, "box"), -2 * 86400)
    assert home.run_with(env).code == 0
    assert read_host(home)["late"] == [first]


def test_a_disk_that_is_full_before_the_night_is_named_with_the_host(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    there = host_homes.folder(home, "box")
    with small_disk(there, "1m"):
        assert home.run_with(env).code == 1
        assert not list((there / "code").iterdir())
    assert read_host(home)["state"] == "away"
    assert read_message(home, "run").startswith("box: connection closed. Last output: tar: ")
    words = f"{there}: could not unpack the dashboard's code; 0 MB are free. Free some space."
    assert words in read_message(home, "run")


def test_a_disk_that_fills_up_in_run_fails_the_job_and_names_the_host(home: HomeForTests) -> None:
    add_experiment(home, hosts=("box",), run=homes.good("run", 'head -c 100000000 /dev/zero > "$2/big"'))
    env = host_homes.add_hosts(home, "box")
    there = host_homes.folder(home, "box")
    with small_disk(there, "20m"):
        assert home.run_with(env).code == 1
    assert read_message(home, "run") == (
        "box: run.sh exited with status 1. It wrote no status.json. "
        f"The disk with {there}/home is full; free some space."
    )
    assert read_host(home)["state"] == "measured"


@pytest.mark.slow
def test_what_cannot_be_handed_over_for_a_full_disk_comes_with_the_next_night(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    outbox = host_homes.folder(home, "box") / "outbox"
    with small_disk(outbox, "4k"):
        assert home.run_with(env).code == 1
    assert read_host(home)["state"] == "lost"
    words = f"box: {outbox.parent}: No space left on device. Free some space on the disk with {outbox.parent}."
    assert read_message(home, "run") == f"{words} Its measurements will be delivered with the next night."
    assert home.run_with(env).code == 0
    assert read_host(home)["late"] == home.stamps()[:1]
    assert len(list(home.home.data("plain~box").iterdir())) == 2


def test_what_a_hosts_own_night_notes_is_told_at_home(home: HomeForTests) -> None:
    there = host_homes.folder(home, "box")
    blocks = f'mkdir -p "{there}/home/tmp/raw" && : > "{there}/home/tmp/raw/plain~box"'
    add_experiment(home, hosts=("box",), run=homes.good("run", blocks))
    assert home.run_with(host_homes.add_hosts(home, "box")).code == 0
    (note,) = home.last()["notes"]
    assert note.startswith("box: Compressing the raw measurements of plain~box failed: ")


def test_results_that_the_home_cannot_take_are_set_aside_and_named(home: HomeForTests) -> None:
    stray = STRAY.format(there=host_homes.folder(home, "box"))
    add_experiment(home, hosts=("box",), run=homes.good("run", stray))
    env = host_homes.add_hosts(home, "box")
    assert home.run_with(env).code == 1
    (aside,) = (home.root / "tmp" / "hosts").glob("refused-box-*.tar")
    words = "it contains an unexpected entry, 'data/other/data_{stamp}.json'. The archive is kept as {aside}."
    assert read_host(home)["state"] == "damaged"
    assert read_message(home, "run").startswith("box: could not import the result archive ")
    assert read_message(home, "run").endswith(words.format(stamp=home.stamps()[0], aside=aside))
    assert aside.stat().st_size > 0


@pytest.mark.slow
def test_late_results_that_the_home_cannot_take_cost_tonights_nothing(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    assert home.run_with(env).code == 0
    stamp = home.stamps()[0]
    there = forget_acknowledgement(home, stamp)
    homes.write(there / f"results/experiments/data/other/data_{stamp}.json", {})
    assert home.run_with(env).code == 0
    host = read_host(home)
    assert (host["state"], host["late"]) == ("measured", [])
    (note,) = home.last()["notes"]
    assert (
        f"it contains an unexpected entry, 'data/other/data_{stamp}.json'. The archive is kept as "
        f"{home.root}/tmp/hosts/refused-box-" in note
    )


def test_the_same_results_again_change_nothing_and_others_for_that_night_are_named(home: HomeForTests) -> None:
    env = host_homes.add_hosts(home, "box")
    assert home.run_with(env).code == 0
    first = home.stamps()[0]
    before = home.home.data_file("plain~box", first).read_bytes()
    forget_acknowledgement(home, first)
    assert home.run_with(env).code == 0
    assert home.last()["notes"] == [f"box delivered its measurements of {first}."]
    there = forget_acknowledgement(home, first)
    homes.write(there / f"results/experiments/data/plain~box/data_{first}.json", {"value": 9.0})
    assert home.run_with(env).code == 0
    assert home.last()["notes"][0] == (
        f"box: its results for plain~box, {first}, differ from those already stored and were ignored."
    )
    assert home.home.data_file("plain~box", first).read_bytes() == before


def test_what_an_interrupted_worker_had_measured_comes_home_with_the_next_night(home: HomeForTests) -> None:
    home.configure(randomize=False)
    add_experiment(home, "slow", hosts=("box",), run=WAITS.replace("{root}", str(home.root)))
    env = host_homes.add_hosts(home, "box")
    with homes.killed_at_end(home.start(env=env)) as night:
        homes.wait_for(lambda: list(home.root.glob("began-slow~box")), "the host measures")
        (worker,) = host_homes.find_workers(home, "box")
        os.kill(worker, signal.SIGINT)
        assert night.wait(homes.DEADLINE_S) == 1
    host = read_host(home)
    assert (host["state"], host["why"]) == ("lost", "box: the night on the host was interrupted.")
    (home.root / "go").touch()
    assert home.run_with(env).code == 0
    first, _ = home.stamps()
    assert read_host(home)["late"] == [first]
    assert home.home.data_file("plain~box", first).is_file()


@pytest.mark.parametrize("what", ["damaged", pytest.param("another", marks=pytest.mark.slow)])
def test_a_host_with_another_tvm_or_a_damaged_one_measures_tonights(what: str, home: HomeForTests) -> None:
    (home.code / "experiments" / "plain" / "fields.json").unlink()
    tonights = put_tvm(home.root / "artifacts")
    env = host_homes.add_hosts(home, "box")
    there = put_tvm(host_homes.folder(home, "box") / "home" / "artifacts").path
    if what == "damaged":
        (there / "site" / "libtvm.so").write_bytes(b"x")
    else:
        shutil.rmtree(there)
        remeasure_homes.put_artifact(there.parent, "0.28.0")
    done = home.run_with(env)
    assert done.code == 0, done.output
    data = homes.read(home.home.data_file("plain~box", home.stamps()[0]))
    assert (data["tvm_hash"], data["night"]["artifact"]["key"]) == ("0.27.0", tonights.key)


def test_a_host_without_tonights_tvm_is_said_to_have_measured_nothing(home: HomeForTests) -> None:
    (home.code / "experiments" / "plain" / "fields.json").unlink()
    remeasure_homes.put_artifact(home.root / "artifacts", "0.27.0")
    done = home.run_with(host_homes.add_hosts(home, "box"))
    assert done.code == 1
    assert "Hosts: box measured nothing in " in done.output
    assert home.status("plain~box", "run")["message"] == (
        f"box: no TVM to measure: {host_homes.folder(home, 'box')}/home/artifacts: no tested TVM for 0.27.0 of"
        " pypi. Run once without --no-rebuild-tvm."
    )


@pytest.mark.slow
def test_a_disk_that_is_full_at_home_is_not_said_of_the_host(home: HomeForTests) -> None:
    fill = 'head -c 3000000 /dev/urandom > "$2/big"'
    add_experiment(home, hosts=("box",), run=homes.good("run", fill))
    env = host_homes.add_hosts(home, "box")
    with small_disk(home.root / "tmp", "5500k"):
        assert home.run_with(env).code == 1
    assert read_host(home)["state"] == "lost"
    assert read_message(home, "run") == (
        f"box: could not store the results from this host: {home.root}/tmp/hosts: No space left on device. It sends "
        "them again with the next night."
    )
    add_experiment(home, hosts=("box",))
    assert home.run_with(env).code == 0
    assert read_host(home)["late"] == home.stamps()[:1]
