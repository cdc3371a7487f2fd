"""Programs in a sandbox, which really try to get out of it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pty
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.process import orphans, process, sandbox
from dashboard.process.sandbox import Hole, Sandbox
from tests.dashboard import homes
from tvmdash.errors import DashboardError

ENVIRONMENT = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


@pytest.fixture
def tmp_path(on_disk: Path) -> Path:
    return on_disk


@pytest.fixture
def sealed() -> Iterator[None]:
    """Bubblewrap, where this machine has it and allows it, started by what adopts orphans, as a night does."""
    if obstacle := sandbox.find_obstacle():
        pytest.skip(obstacle)
    orphans.become_subreaper()
    yield
    ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def run(folder: Path, program: str, *visible: Path, **environment: str) -> process.ProcessOutcome:
    """The end of a Python program in a sandbox that may write to `folder`, and its output."""
    folder.mkdir(exist_ok=True)
    return process.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        timeout_s=60.0,
        log=folder.parent / "log",
        sandbox=Sandbox(visible, (folder,)),
    )


@pytest.mark.usefixtures("sealed")
def test_it_reads_what_it_is_shown_and_writes_to_its_folder_alone(tmp_path: Path) -> None:
    shown, hidden, own = tmp_path / "shown", tmp_path / "hidden", tmp_path / "own"
    for folder in (shown, hidden):
        folder.mkdir()
        (folder / "text").write_text("secret")
    program = f"""
import os, pathlib
def attempt(what):
    try:
        return what()
    except OSError as error:
        return type(error).__name__
print(attempt(pathlib.Path({str(shown / "text")!r}).read_text))
print(attempt(pathlib.Path({str(hidden / "text")!r}).read_text))
print(attempt(lambda: pathlib.Path({str(shown / "text")!r}).write_text("changed")))
print(attempt(lambda: pathlib.Path({str(shown / "new")!r}).write_text("new")))
print(attempt(lambda: pathlib.Path("/usr/local/new").write_text("new")))
print(attempt(lambda: pathlib.Path({str(tmp_path / "new")!r}).write_text("its own /tmp")))
print(attempt(lambda: pathlib.Path({str(own / "new")!r}).write_text("mine")))
print([name for name in ("shadow", "ssh", "gshadow") if os.path.exists("/etc/" + name)])
print(os.path.exists(os.path.expanduser("~root/.bashrc")) or sorted(os.listdir("/")))
"""
    outcome = run(own, program, shown)
    lines = outcome.tail.splitlines()
    assert lines[:2] == ["secret", "FileNotFoundError"], outcome.tail
    assert lines[2:5] == ["OSError"] * 3
    assert lines[6] == "4"
    assert lines[7] == "[]"
    interpreter = {Path(prefix).parts[1] for prefix in (sys.prefix, sys.base_prefix)}
    assert {name for name in ("boot", "home", "media", "mnt", "root", "srv") if repr(name) in lines[8]} <= interpreter
    assert (own / "new").read_text() == "mine"
    assert not (tmp_path / "new").exists(), "what it writes elsewhere below /tmp is gone with it"
    assert (shown / "text").read_text() == "secret"


@pytest.mark.usefixtures("sealed")
def test_it_reaches_no_server_on_this_machine_by_network_or_by_file(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "socket"))
        unix.listen()
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind(f"\0tvmdash-{os.getpid()}")
            abstract.listen()
            program = f"""
import socket
for family, address in (
    (socket.AF_INET, {tcp.getsockname()!r}),
    (socket.AF_UNIX, {str(tmp_path / "socket")!r}),
    (socket.AF_UNIX, "\\0tvmdash-{os.getpid()}"),
):
    try:
        socket.socket(family).connect(address)
        print("connected")
    except OSError as error:
        print("refused")
"""
            outcome = run(tmp_path / "own", program)
    assert outcome.tail.splitlines() == ["refused"] * 3


@pytest.mark.usefixtures("sealed")
def test_it_sees_no_other_process_and_none_of_its_own_outlives_it(tmp_path: Path) -> None:
    program = """
import os, subprocess, sys
print(len([name for name in os.listdir("/proc") if name.isdigit()]) < 5)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
print(os.environ)
"""
    outcome = run(tmp_path / "own", program, MINE=f"kept {tmp_path}")
    assert outcome.tail.startswith("True"), outcome.tail
    assert "MINE" in outcome.tail
    assert outcome.left_behind == 0
    entry = f"MINE=kept {tmp_path}".encode()
    homes.wait_for(lambda: not [pid for pid in homes.pids() if entry in homes.environment_of(pid)], "its end")


@pytest.mark.usefixtures("sealed")
def test_its_exit_status_signal_and_deadline_are_told_as_without_it(tmp_path: Path) -> None:
    assert run(tmp_path / "own", "raise SystemExit(3)").exit_code == 3
    killed = run(tmp_path / "own", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (killed.exit_code, killed.signal) == (None, signal.SIGSEGV)
    own, log = Sandbox((), (tmp_path / "own",)), tmp_path / "log"
    argv = ["sleep", "1000"]
    late = process.run(argv, cwd=tmp_path / "own", env=ENVIRONMENT, timeout_s=0.3, log=log, sandbox=own)
    assert late.timed_out
    assert late.elapsed_s < 30


@pytest.mark.usefixtures("sealed")
def test_a_link_that_leads_out_is_removed_before_anybody_follows_it(tmp_path: Path) -> None:
    program = """
import os
os.symlink("/etc/hostname", "status.json")
os.symlink("..", "up")
os.mkdir("inner")
os.symlink("../kept", "inner/link")
open("kept", "w").close()
"""
    assert run(tmp_path / "own", program).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "own").rglob("*")) == ["inner", "kept", "link"]


@pytest.mark.usefixtures("sealed")
def test_it_finds_what_any_program_needs(tmp_path: Path) -> None:
    program = """
import multiprocessing, os, pwd, subprocess, tempfile
for folder in ("/tmp", "/var/tmp", "/dev/shm"):
    tempfile.TemporaryFile(dir=folder).write(b"x")
multiprocessing.Lock()
print(pwd.getpwnam("root").pw_uid, os.path.exists("/etc/ld.so.cache"), os.path.exists(os.path.realpath("/usr/bin/c++")))
print(open("/proc/sys/kernel/pid_max").read().strip() != "", len(os.listdir("/sys/devices/system/cpu")) > 0)
subprocess.run(["true"], check=True)
"""
    compiler = Path("/usr/bin/c++").exists()
    assert run(tmp_path / "own", program).tail.splitlines() == [f"0 True {compiler}", "True True"]


@pytest.mark.usefixtures("sealed")
def test_it_changes_no_setting_of_the_kernel_and_no_name_of_the_machine(tmp_path: Path) -> None:
    program = """
import os, socket
opened = []
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
            opened.append(name)
        except OSError:
            pass
for path in ("/proc/sysrq-trigger", "/proc/self/../1/oom_score_adj", "/sys/power/state", "/dev/kmsg", "/dev/mem"):
    try:
        os.close(os.open(path, os.O_WRONLY))
        opened.append(path)
    except OSError:
        pass
try:
    socket.sethostname("stolen")
    opened.append("name")
except OSError:
    pass
print(opened)
"""
    name = socket.gethostname()
    outcome = run(tmp_path / "own", program)
    assert set(outcome.tail.strip("[]").replace("'", "").split(", ")) <= {"", "/proc/self/../1/oom_score_adj"}
    assert socket.gethostname() == name


@pytest.mark.usefixtures("sealed")
def test_it_is_nobody_who_counts_on_this_machine(tmp_path: Path) -> None:
    program = """
import os
for attempt in (lambda: os.setuid(0), lambda: os.chown("/tmp", 1, 1), lambda: os.chroot("/tmp")):
    try:
        attempt()
        print("done")
    except OSError:
        print("refused")
"""
    assert run(tmp_path / "own", program).tail.splitlines() == ["refused"] * 3


@pytest.mark.usefixtures("sealed")
def test_it_starts_no_more_processes_and_fills_no_larger_file_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid():
        pytest.skip("how many processes this user has already depends on the machine")
    limits = ("choom", "-n", "1000", "--", "prlimit", "--nproc=20", "--fsize=1000000", "--core=0", "--")
    monkeypatch.setattr(sandbox, "_LIMITS", limits)
    program = """
import os, time
started = 0
try:
    for _ in range(50):
        if os.fork() == 0:
            time.sleep(1000)
        started += 1
except BlockingIOError:
    pass
print(started < 25)
try:
    open("large", "wb").truncate(2_000_000)
except OSError:
    print("too large")
print(open("/proc/self/oom_score_adj").read().strip(), flush=True)
os._exit(0)
"""
    assert run(tmp_path / "own", program).tail.splitlines() == ["True", "too large", "1000"]


@pytest.mark.usefixtures("sealed")
def test_it_has_no_terminal_to_type_into(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    program = "import os\ntry:\n  os.open('/dev/tty', os.O_RDWR)\n  print('typing')\nexcept OSError:\n  print('none')"
    argv = Sandbox((), (own,)).wrap([sys.executable, "-c", program], own)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    with open(terminal, "rb", buffering=0) as file, contextlib.suppress(OSError):
        assert file.read(100).strip() == b"none"
    os.waitpid(pid, 0)


@pytest.mark.usefixtures("sealed")
def test_what_it_leaves_belongs_to_this_user_and_gives_nobody_its_rights(tmp_path: Path) -> None:
    program = "import os, shutil\nshutil.copy('/bin/true', 'tool')\nos.chmod('tool', 0o6755)\nos.mkdir('new')"
    assert run(tmp_path / "own", program).exit_code == 0
    for path in (tmp_path / "own", tmp_path / "own" / "new", tmp_path / "own" / "tool"):
        assert path.stat().st_uid == os.getuid()
    assert (tmp_path / "own" / "tool").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    ("field", "without", "hole"),
    [
        ("_ALONE", "--unshare-net", Hole.NETWORK),
        ("_ALONE", "--unshare-pid", Hole.PROCESS),
        ("_LIMITS", f"--nproc={sandbox.MOST_PROCESSES}", Hole.LIMIT),
    ],
)
@pytest.mark.usefixtures("sealed")
def test_a_sandbox_that_does_not_hold_is_found_from_inside_and_nothing_is_run_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, without: str, hole: Hole
) -> None:
    words = tuple(word for word in getattr(sandbox, field) if word != without)
    monkeypatch.setattr(sandbox, field, words)
    sandbox.run_self_test.cache_clear()
    try:
        assert sandbox.run_self_test().holes == (hole,)
        with pytest.raises(DashboardError, match="failed its self-test: a program in it can"):
            run(tmp_path / "own", "open('ran', 'w')")
    finally:
        sandbox.run_self_test.cache_clear()
    assert not (tmp_path / "own" / "ran").exists()


def test_its_limits_fit_several_of_the_largest_builds_and_leave_the_machine_alone() -> None:
    most_processes = 32768  # the kernel's least kernel.pid_max on more than one processor
    assert 3 * 700 < sandbox.MOST_PROCESSES < most_processes // 4
    assert 3 * 4e9 < sandbox.MOST_FILE_BYTES < 100e9, "a disk on which TVM is built has 100 GB"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can remain root")
@pytest.mark.usefixtures("sealed")
def test_a_sandbox_of_root_is_found_from_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "NOBODY", 0)
    sandbox.run_self_test.cache_clear()
    try:
        assert Hole.ROOT in sandbox.run_self_test().holes
    finally:
        sandbox.run_self_test.cache_clear()


@pytest.mark.skipif(os.getuid() != 0, reason="only root shows what others cannot read")
@pytest.mark.usefixtures("sealed")
def test_what_only_root_can_read_is_named_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir(mode=0o700)
    with pytest.raises(DashboardError, match=r"shown: mode 700, .* Run: chmod -R o\+rX"):
        run(tmp_path / "own", "", tmp_path / "shown")


def test_without_bubblewrap_the_obstacle_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sandbox.run_self_test.cache_clear()
    try:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert "apt install bubblewrap" in sandbox.find_obstacle()
        (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        (tmp_path / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{ENVIRONMENT['PATH']}")
        sandbox.run_self_test.cache_clear()
        assert "No permissions to create new namespace" in sandbox.find_obstacle()
    finally:
        sandbox.run_self_test.cache_clear()
