"""Every way in which a stage can go wrong, side by side in one night, and the good night after it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes

OK = homes.says
HIDDEN = f"1000.{os.getpid()}"
"""What a process sleeps that clears its environment and is found by nothing else."""


@dataclass(frozen=True)
class Fault:
    """An experiment whose `stage` has the script `text`; `words` must be in what is said of it."""

    name: str
    stage: str
    text: str
    words: tuple[str, ...]
    config: dict[str, Any] = field(default_factory=dict)


def after(stage: str, *lines: str) -> str:
    """A script that does its work and then these lines."""
    return "\n".join([homes.BEGIN + homes.WORK[stage], *lines, ""])


def leaving(name: str, command: str, *words: str) -> Fault:
    """A run whose status.json is what `command` makes of `$s`."""
    return Fault(f"status-{name}", "run", after("run", 's="$2/status.json"', command), ("status.json", *words))


def data(name: str, text: str, *words: str) -> Fault:
    """An analyze whose data.json holds `text`."""
    lines = f"{homes.BEGIN}printf '%s' '{text}' > \"$3/data.json\"\n{OK('analyze')}\n"
    return Fault(f"data-{name}", "analyze", lines, ("data.json", *words))


SHORT = {"timeouts": {"analyze": 1}}
STUBBORN = "trap '' TERM\nwhile :; do sleep 0.2; done"
FAULTS = (
    Fault(
        "hangs",
        "analyze",
        f"{homes.BEGIN}echo before; sleep 1000",
        ("timed out after 1 s", "timeouts.analyze"),
        SHORT,
    ),
    Fault("ignores-sigterm", "analyze", homes.BEGIN + STUBBORN, ("timed out after 1 s",), SHORT),
    Fault("good-then-hangs", "analyze", after("analyze", OK("analyze"), "sleep 1000"), ("timed out after 1 s",), SHORT),
    Fault("stops-itself", "analyze", f"{homes.BEGIN}kill -STOP $$", ("timed out after 1 s",), SHORT),
    Fault("killed", "run", after("run", OK("run"), "kill -KILL $$"), ("SIGKILL", "out of memory?")),
    Fault("segfaults", "run", f"{homes.BEGIN}kill -SEGV $$", ("SIGSEGV",)),
    Fault(
        "exits-after-success",
        "run",
        after("run", OK("run"), "exit 7"),
        ("reported success but exited with status 7", "its results were discarded"),
    ),
    Fault("says-failure", "run", after("run", OK("run", "no GPU here", success=False), "exit 1"), ("no GPU here",)),
    Fault("says-failure-exits-0", "run", after("run", OK("run", "no GPU here", success=False)), ("no GPU here",)),
    Fault("no-status", "run", after("run"), ("run.sh exited with status 0", "wrote no status.json")),
    Fault("dies", "run", f"{homes.BEGIN}echo the reason >&2; exit 3", ("exited with status 3", "wrote no status.json")),
    Fault("interpreter", "run", "#!/usr/bin/no-such-shell\n", ("interpreter", "no-such-shell")),
    leaving("empty", ': > "$s"', "empty"),
    leaving("truncated", """printf '{"success": tr' > "$s\"""", "not JSON at line 1"),
    leaving("not-utf8", """printf '{"success": true, "message": "\\377"}' > "$s\"""", "not UTF-8 at byte"),
    leaving("half-a-pair", """printf '%s' '{"success": true, "message": "\\ud800"}' > "$s\"""", "unpaired surrogate"),
    leaving("list", 'echo "[true]" > "$s"', "list is not an object"),
    leaving("number", 'echo 1 > "$s"', "int is not an object"),
    leaving("success-text", """echo '{"success": "true", "message": ""}' > "$s\"""", "$.success", "'true'"),
    leaving("no-message", """echo '{"success": true}' > "$s\"""", "$.message"),
    leaving("twice", """echo '{"success": true, "success": true, "message": ""}' > "$s\"""", "duplicate key"),
    leaving("huge", 'truncate -s 100M "$s"', "larger than"),
    leaving("link", 'echo "{}" > "$2/real"; ln -s real "$s"', "not a regular file"),
    leaving("folder", 'mkdir "$s"', "not a regular file"),
    leaving("pipe", 'mkfifo "$s"', "not a regular file"),
    leaving("deep", """head -c 90000 /dev/zero | tr '\\0' '[' > "$s\"""", "levels deep"),
    data("not-json", "nonsense", "not JSON"),
    data("nan", '{"x": NaN}', "NaN"),
    data("infinity", '{"x": -Infinity}', "Infinity"),
    data("too-large", '{"x": 1e999}', "1e999", "range"),
    data("many-digits", '{"x": 1' + "0" * 400 + "}", "digits"),
    data("list", "[1, 2]", "list is not an object"),
    data("metrics", '{"metrics": {"x": {"unit": 5}}, "x": 1}', "data.json: $.metrics.x.unit: 5 is not a string"),
    data("record", '{"schema_version": 1, "tvm_hash": "x", "records": [{"workload": 3}]}', "$.records[0]"),
    data("deep", '{"x": ' + "[" * 900 + "]" * 900 + "}", "levels deep"),
    Fault("data-missing", "analyze", f"{homes.BEGIN}{OK('analyze')}\n", ("did not write data.json",)),
    Fault("summary-missing", "summarize", f"{homes.BEGIN}{OK('summarize')}\n", ("did not write summary.json",)),
    Fault(
        "summary-wrong",
        "summarize",
        f"""{homes.BEGIN}echo '{{"title": 1}}' > "$3/summary.json"\n{OK("summarize")}\n""",
        ("summary.json", "$.title"),
    ),
    Fault(
        "graph-pipe",
        "visualize",
        after("visualize", 'mkfifo "$3/pipe"', OK("visualize")),
        ("pipe", "cannot be copied"),
    ),
)
MENDED = {
    "prints-much": (
        after("run", "head -c 200000000 /dev/zero | tr '\\0' x", OK("run")),
        "MB of its output omitted",
    ),
    "leaves-children": (after("run", "sleep 1000 & sleep 1000 &", OK("run")), "2 background processes"),
    "detaches": (after("run", "setsid sh -c '(sleep 1000 &)' &", "sleep 0.1", OK("run")), "1 background processes"),
    "double-fork": (
        after("run", "(setsid sh -c 'sleep 1000 & exit' &) ; sleep 0.1", OK("run")),
        "background processes",
    ),
    "hides": (after("run", f"env -i setsid sleep {HIDDEN} & sleep 0.1", OK("run")), "1 background processes"),
    "keeps-the-pipe": (after("run", "(trap '' TERM HUP; sleep 1000) &", OK("run")), "background processes"),
}
SUBSYSTEMS = {
    "report-pipe": ('mkfifo "$2/report.json"', ("report.json", "not a regular file")),
    "status-folder": ('mkdir "$2/status.json"', ("status.json", "not a regular file")),
}


@dataclass(frozen=True)
class Tried:
    home: homes.HomeForTests
    before: str
    stamp: str
    done: homes.Finished


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory, tvm_artifact_folder: Path) -> Tried:
    """A good night of the same experiments, then the night with all the faults."""
    home = homes.make_home(tmp_path_factory.mktemp("faults"), tvm_artifact_folder, parallel_stages=8)
    for name in (*(fault.name for fault in FAULTS), *MENDED, "aaa", "zzz"):
        home.experiment(name)
    for name in (*SUBSYSTEMS, "last"):
        home.subsystem(name)
    home.night()
    before = home.stamps()[0]
    for fault in FAULTS:
        home.experiment(fault.name, config=fault.config, **{fault.stage: fault.text})
    for name, (text, _) in MENDED.items():
        home.experiment(name, run=text)
    for name, (line, _) in SUBSYSTEMS.items():
        end = "" if "status" in name else homes.says("subsystem")
        home.subsystem(name, run=f"{homes.BEGIN}{line}\n{end}\n")
    done = home.run()
    assert done.code == 1, done.output
    return Tried(home, before, home.stamps()[1], done)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fails_its_job_in_words_and_loses_nothing(tried: Tried, fault: Fault) -> None:
    home = tried.home
    status = home.status(fault.name, fault.stage)
    assert (status["success"], status["state"], status["stamp"]) == (False, "failed", tried.stamp)
    for word in fault.words:
        assert word in status["message"], status["message"]
    assert len(status["message"]) < 5000
    log = home.log(fault.name, fault.stage)
    assert log.is_file()
    assert log.stat().st_size < 300 << 10
    later = homes.STAGES[homes.STAGES.index(fault.stage) + 1 :]
    assert [home.status(fault.name, stage)["state"] for stage in later] == ["blocked"] * len(later)
    assert home.home.data_file(fault.name, tried.before).is_file()
    assert home.home.data_file(fault.name, tried.stamp).exists() == (fault.stage in {"visualize", "summarize"})
    if fault.stage != "summarize":
        assert home.home.stamp_of(home.home.graph(fault.name)) == tried.before
    assert home.home.read_summary(fault.name) == ("Sum", f"of {tried.before}")
    assert fault.name in tried.done.output


@pytest.mark.parametrize("name", MENDED)
def test_what_is_mended_is_said_and_does_not_fail(tried: Tried, name: str) -> None:
    status = tried.home.status(name, "run")
    assert (status["state"], MENDED[name][1] in status["message"]) == ("ok", True), status["message"]
    assert tried.home.status(name, "summarize")["stamp"] == tried.stamp
    assert tried.home.log(name, "run").stat().st_size < 300 << 10


@pytest.mark.parametrize("name", SUBSYSTEMS)
def test_a_subsystem_that_leaves_something_odd_fails_in_words(tried: Tried, name: str) -> None:
    status = tried.home.status(name, "run", kind="subsystem")
    assert status["state"] == "failed"
    for word in SUBSYSTEMS[name][1]:
        assert word in status["message"]


def test_every_other_job_ran(tried: Tried) -> None:
    for name in ("aaa", "zzz"):
        assert set(tried.home.states(name).values()) == {"ok"}
        assert tried.home.home.data_file(name, tried.stamp).is_file()
    assert tried.home.status("last", "run", kind="subsystem")["stamp"] == tried.stamp
    assert tried.home.last()["state"] == "complete"


def test_no_process_is_left(tried: Tried) -> None:
    assert tried.home.processes() == []
    assert [pid for pid in homes.pids() if HIDDEN.encode() in command_of(pid)] == []


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_the_end_of_the_log_is_in_the_status(tried: Tried) -> None:
    assert tried.home.status("dies", "run")["log_tail"] == "the reason"
    assert tried.home.log("dies", "run").read_text() == "the reason\n"
    assert tried.home.status("hangs", "analyze")["log_tail"] == "before"


def test_raw_measurements_are_kept_where_a_later_stage_failed(tried: Tried) -> None:
    raw = tried.home.root / "tmp" / "raw"
    for name in ("data-nan", "summary-missing", "exits-after-success"):
        assert (raw / name / f"raw_{tried.stamp}.zip").is_file()


def test_the_page_of_the_terminal_names_failures_and_exit_code_is_1(tried: Tried) -> None:
    assert "experiments failed" in tried.done.output
    assert "experiment hangs FAILED: analyze: analyze.sh timed out after 1 s" in tried.done.output


@pytest.fixture(scope="module")
def mended(tried: Tried) -> Callable[[], dict[str, Any]]:
    """The night after the faults are mended."""
    home = tried.home
    for name in (*(fault.name for fault in FAULTS), *MENDED):
        home.experiment(name)
    for name in SUBSYSTEMS:
        (home.home.output(name) / "report.json").unlink(missing_ok=True)
        home.subsystem(name)
    night = home.night()
    return lambda: night


def test_the_next_night_is_good(mended: Callable[[], dict[str, Any]], tried: Tried) -> None:
    night = mended()
    assert {step["state"] for job in night["jobs"] for step in job["steps"]} == {"ok"}
    assert len(tried.home.home.data_stamps("aaa")) == 3
