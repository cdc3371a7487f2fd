"""Who measures on one machine at a time: the processor alone, cards beside one another, and nobody waits for ever."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dashboard.night import lock
from dashboard.plan.devices import list_cards
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import Job
from tests.dashboard import homes
from tests.dashboard.homes import HomeForTests
from tvmdash.dashboard_info import Home
from tvmdash.machine import nvml


@pytest.fixture(autouse=True)
def _own_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nights of this test are on a machine of their own."""
    monkeypatch.setenv("SLURMD_NODENAME", f"tests-{os.getpid()}-{tmp_path.name}")
    yield
    for path in Path("/run/lock").glob(f"tvm-dashboard.tests-{os.getpid()}-{tmp_path.name}*"):
        path.unlink()


def make_home(root: Path, name: str, *devices: str) -> HomeForTests:
    """A home whose experiment measures on these devices (on the processor: none) until the file `root`/NAME.go."""
    listed = {device: {} for device in devices if device != "cpu"}
    made = homes.make_home(root / name, root / "artifacts", devices=listed)
    waits = f"touch {root}/{name}.begun\nwhile [ ! -e {root}/{name}.go ]; do sleep 0.05; done"
    folder = made.experiment(run=homes.good("run", waits), config={"device": list(devices)} if devices else {})
    homes.write(folder / "fields.json", {"include": ["device"] if devices else [], "needs_tvm": False})
    return made


def has_begun(root: Path, name: str) -> bool:
    return (root / f"{name}.begun").exists()


def let_go(root: Path, *names: str) -> None:
    for name in names:
        (root / f"{name}.go").touch()


def wait_for_line(path: Path, text: str) -> str:
    homes.wait_for(lambda: path.exists() and text in path.read_text(), f"{text!r} in {path}")
    return next(line for line in path.read_text().splitlines() if text in line)


class Nights:
    """Nights that were started, each with its log in `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *devices: str) -> Path:
        """Start the night of a new home; its log."""
        home, log = make_home(self._root, name, *devices), self._root / f"{name}.log"
        with log.open("wb") as file:
            argv = home.command("run", "--no-rebuild-tvm")
            self.running[name] = subprocess.Popen(
                argv, cwd="/", env=homes.environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )
        return log

    def finish(self, name: str) -> None:
        """Let it go on; it ends well."""
        let_go(self._root, name)
        code = self.running.pop(name).wait(timeout=homes.DEADLINE_S)
        assert code == 0, (self._root / f"{name}.log").read_text()

    def begun(self, name: str) -> None:
        """Wait until it measures."""
        homes.wait_for(lambda: has_begun(self._root, name), f"{name} measures", homes.DEADLINE_S)


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    made = Nights(tmp_path)
    yield made
    for night in made.running.values():
        night.kill()
        night.wait()


def test_nights_on_different_cards_measure_at_once(nights: Nights) -> None:
    nights.start("a", "cuda:0")
    nights.start("b", "cuda:1")
    nights.begun("a")
    nights.begun("b")
    nights.finish("b")
    nights.finish("a")


def test_a_night_on_the_same_card_waits_and_says_for_whom_and_since_when(nights: Nights, tmp_path: Path) -> None:
    nights.start("a", "cuda")
    nights.begun("a")
    pid = nights.running["a"].pid
    said = wait_for_line(nights.start("b", "cuda:0"), "Waiting: ")
    assert f"on the card cuda-0: process {pid} on " in said
    assert f", for {tmp_path}/a/home, since 2" in said
    assert not has_begun(tmp_path, "b")
    nights.finish("a")
    nights.begun("b")
    nights.finish("b")


@pytest.mark.parametrize("devices", [(), ("cpu", "cuda:1"), ("opencl",)])
def test_what_measures_on_the_processor_or_on_what_may_be_it_waits_for_all_cards(
    nights: Nights, tmp_path: Path, devices: tuple[str, ...]
) -> None:
    nights.start("a", "cuda:0")
    nights.begun("a")
    said = wait_for_line(nights.start("b", *devices), "Waiting: ")
    assert f"on the card cuda-0: process {nights.running['a'].pid} on " in said
    nights.finish("a")
    nights.begun("b")
    said = wait_for_line(nights.start("c", "cuda:0"), "Waiting: ")
    assert f"process {nights.running['b'].pid} on " in said
    assert f", for {tmp_path}/b/home, since 2" in said
    nights.finish("b")
    nights.begun("c")
    nights.finish("c")


def test_nights_on_cards_that_come_later_do_not_keep_the_processor_s_waiting_for_ever(
    nights: Nights, tmp_path: Path
) -> None:
    nights.start("card", "cuda:0")
    nights.begun("card")
    wait_for_line(nights.start("processor"), "Waiting: ")
    homes.wait_for(lock.is_machine_waited_for, "the processor's night is at the gate")
    said = wait_for_line(nights.start("later", "cuda:1"), "Waiting: ")
    assert f"is about to measure on this machine ({lock.node()}): process " in said
    assert f", for {tmp_path}/processor/home, since 2" in said
    nights.finish("card")
    nights.begun("processor")
    assert not has_begun(tmp_path, "later")
    nights.finish("processor")
    nights.begun("later")
    nights.finish("later")


def test_a_night_that_names_the_machine_otherwise_says_that_others_may_have_measured(tmp_path: Path) -> None:
    home = make_home(tmp_path, "a")
    let_go(tmp_path, "a")
    done = home.run_with({"TVMDASH_NODE": f"{lock.node()}-x"})
    assert done.code == 0, done.output
    (note,) = home.last()["notes"]
    assert note.startswith(f"TVMDASH_NODE names this machine {lock.node()}-x instead of {lock.node()}")
    assert "may measure here at the same time. Set the same TVMDASH_NODE" in note
    done = home.run_with({"TVMDASH_NODE": lock.node()})
    assert home.last()["notes"] == []


_ASK = """
import os
import sys
from dashboard.night import lock
from pathlib import Path
from tvmdash.dashboard_info import Home
lock._FOLDERS = tuple(sys.argv[1:3])
if sys.argv[4:]:
    os.setuid(int(sys.argv[4]))
with lock.hold_machine(Home(Path(sys.argv[3])), 0.0) or sys.exit("held"):
    print(lock._file("", "lock"))
    print(*lock.list_gaps(), sep="\\n")
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that all users reach, as they do not reach pytest's own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_a_user_without_a_right_to_the_first_lock_folder_uses_the_lock_there_or_is_told(open_folder: Path) -> None:
    first, second = open_folder / "first", open_folder / "second"
    first.mkdir(mode=0o755)
    second.mkdir()
    second.chmod(0o1777)
    user = [str(pwd.getpwnam("nobody").pw_uid)] if os.getuid() == 0 else []  # root may write everywhere

    def ask(*user: str) -> list[str]:
        argv = [sys.executable, "-c", _ASK, str(first), str(second), str(open_folder), *user]
        done = subprocess.run(argv, env=homes.environment(), cwd="/", check=True, capture_output=True, text=True)
        return done.stdout.split("\n", 1)

    first.chmod(0o555)
    place, said = ask(*user)
    assert Path(place).parent == second
    assert said.startswith(f"{first}: this user may not write there, so the machine is locked in {second}: ")
    first.chmod(0o755)
    assert Path(ask()[0]).parent == first  # its owner makes the lock, for all
    first.chmod(0o555)
    place, said = ask(*user)
    assert Path(place).parent == first
    assert not said.strip()


def find_cards(home: HomeForTests, *devices: str, **config: Any) -> tuple[str, ...]:
    folder = home.code / "experiments" / "good"
    job = Job("experiment", "good", folder, folder, {"device": list(devices), **config}, None)
    return list_cards([job], read_home_config(home.home))


def test_a_card_has_one_name_whatever_cuda_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path, "a", "cuda", "cuda:1", "rocm")
    assert find_cards(home, "cuda:1", "cuda") == ("cuda-0", "cuda-1")
    assert find_cards(home, "cuda", env={"CUDA_VISIBLE_DEVICES": "1"}) == ("cuda-1",)
    assert find_cards(home, "cuda:1", env={"CUDA_VISIBLE_DEVICES": "1"}) == ()  # it sees one card only
    assert find_cards(home, "cuda", env={"CUDA_VISIBLE_DEVICES": "MIG-1"}) == ()
    assert find_cards(home, "rocm") == find_cards(home, "cpu", "cuda") == find_cards(home) == ()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,2")
    assert find_cards(home, "cuda:1") == ("cuda-2",)


def make_cards(*models: str, divided: bool = False) -> Any:
    """What NVML says of cards of these models, by number."""
    ask = SimpleNamespace(
        nvmlDeviceGetUUID=lambda handle: f"GPU-{handle}{handle}-x",
        nvmlDeviceGetName=lambda handle: models[handle],
        nvmlDeviceGetMigMode=lambda _: (int(divided), 0),
        nvmlDeviceGetTotalEnergyConsumption=lambda _: 0,
        nvmlShutdown=lambda: None,
        NVMLError=OSError,
    )
    return nvml.Cards(ask, {number: nvml.Card(ask, number) for number in range(len(models))})


def test_a_card_that_nvml_knows_has_its_uuid_for_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "open_cards", lambda: make_cards("H100", "H100"))
    assert nvml.name_cuda_card(1, {}) == "GPU-11-x"
    assert nvml.name_cuda_card(0, {nvml.VISIBLE: "1,0"}) == "GPU-11-x"
    assert nvml.name_cuda_card(0, {nvml.VISIBLE: "GPU-1"}) == "GPU-11-x"
    assert nvml.name_cuda_card(0, {nvml.VISIBLE: "GPU-"}) is None
    assert nvml.name_cuda_card(2, {}) is nvml.name_cuda_card(0, {nvml.VISIBLE: ""}) is None


def test_which_card_it_is_cannot_be_told_where_cuda_orders_by_speed_or_cards_are_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nvml, "open_cards", lambda: make_cards("A10", "H100"))
    assert nvml.name_cuda_card(1, {}) is None
    assert nvml.name_cuda_card(1, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == "GPU-11-x"
    assert nvml.name_cuda_card(0, {nvml.VISIBLE: "GPU-00"}) == "GPU-00-x"
    monkeypatch.setattr(nvml, "open_cards", lambda: make_cards("H100", divided=True))
    assert nvml.name_cuda_card(0, {}) is None


def test_nobody_holds_the_machine_for_a_home_that_gave_up(tmp_path: Path) -> None:
    held = lock.hold_machine(Home(tmp_path), 0.0, ["x"])
    assert held is not None
    with held:
        assert lock.hold_machine(Home(tmp_path), 0.0, ["a", "x"]) is None
        other = lock.hold_machine(Home(tmp_path), 0.0, ["a"])  # the first of the two was let go again
        assert other is not None
        with other:
            assert lock.hold_machine(Home(tmp_path), 0.0) is None
            assert "on the card a: process" in lock.describe_holders()
    assert not lock.is_machine_waited_for()
