"""A small home with some of everything that its index takes in, written as a night and the commands write it."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.dashboard.result_homes import data, record
from tvmdash import common, verdict
from tvmdash.common import structured
from tvmdash.dashboard_info import COMPLETE, FAILED, OK, Home, JobResult, Night, StepResult
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.ledger import LEDGER_FILE, Event, iso_of
from tvmdash.notify.delivery import Outbox
from tvmdash.notify.message import OUTBOX_FILE, Entry, Kept, State
from tvmdash.records import SeriesKey
from tvmdash.trials.trial import Trial, TrialChange, TrialSeries, TrialState, TrialTvm
from tvmdash.verdict import ledger
from tvmdash.verdict.remeasured import FOLDER, RatioRun, Remeasured, Run

NIGHTS = tuple(f"202611{day:02}T031500Z" for day in range(21, 26))
INCIDENT = "i20261124-00ff"
_SLOWER = 1.06


def make_small_home(root: Path, points: int = 0, nights: Sequence[str] = NIGHTS, *, times_alone: bool = False) -> Home:
    """mlp and resnet18, which is slower from the fourth night on; or so many `points` that do not move.

    times_alone: of these a time and nothing else.
    """
    home = Home(root)
    for night in nights:
        common_night = {"stamp": night, "artifact": {"key": f"git-{night[:8]}"}, "fingerprint": "f", "machine": "test"}
        _write(
            home.data_file("nets", night),
            data(_records(night, points, times_alone=times_alone), **common_night, reference=_REFERENCE),
        )
        _write(home.data_file("other", night), {"tokens": 3.0})
        _write(home.night_file(night), _night(night).to_json())
        verdict.write_verdict(
            home, _verdict(night, points, ("run_time",) if times_alone or not points else ("run_time", "code_size"))
        )
        page = {"sentence": ["good", f"All is well on {night}"], "series": {"steady": 2}, "summaries": []}
        ledger.append(home, night, ledger.PAGE, page)
    if not points:
        tell_incident(home, "opened", _opened())
        tell_incident(home, "state", {"state": "acknowledged", "words": "looking"})
        _write(home.tries / f"{NIGHTS[-1]}.json", {"schema_version": 1, **structured.to_json(_try())})
        entry = Entry("night", NIGHTS[-1], State.SENT, tries=1, at="2026-11-25T05:00:00Z")
        _write(
            home.output("routes") / "mail.json",
            {"schema_version": 1, **structured.to_json(Kept(NIGHTS[0], (), (entry,)))},
        )
        _measure_again(home)
        send_in_slack(home, "exp_reports", NIGHTS)
        _write(home.output("routes") / "routes.json", {"schema_version": 1, "night": NIGHTS[-1], "routes": []})
    return home


_REFERENCE = {"key": "pypi-0.27.0", "version": "0.27.0"}


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(path, value, durable=False)


def _records(night: str, points: int, *, times_alone: bool) -> list[dict[str, Any]]:
    slower = _SLOWER if night >= NIGHTS[3] else 1.0
    own = [_record("mlp", 2.0, 1.0, 300.0, 4096), _record("resnet18", 10.0, slower, 900.0, 9000)]
    if times_alone:
        codes = [f"{night} {number}" for number in range(points)]
        return [
            record(f"network.net{number}", 1.1**number, module_hash=code, content={"hash": code})
            for number, code in enumerate(codes)
        ]
    return [_record(f"net{number}", 1.0 + number, 1.0, 1.0, 4096 + number) for number in range(points)] or own


def _record(workload: str, ms: float, slower: float, compile_ms: float, size: int) -> dict[str, Any]:
    logs = [math.log(slower)] * 5
    ratio = {"clock": "cpu", "log_ratios": logs, "ratio": slower, "low": slower * 0.99, "high": slower * 1.01}
    made = record(
        f"network.{workload}", ms * slower, samples=30, compile_time=compile_ms, code_size=size, module_hash=workload,
        paired={"ratios": {"run_time": ratio}, "reference": {"run_time": ms}},
    )  # fmt: skip
    return {**made, "execution_elapsed_ms_std": 0.01}


def key_of(workload: str, metric: str = "run_time") -> str:
    """The series of that point."""
    labels = {
        "workload": f"network.{workload}", "workload_args": {}, "engine": "tvm", "engine_config": {}, "target": "llvm",
        "build_config": {}, "runtime_config": {}, "env_name": "test", "hw_model": "EPYC x 2",
    }  # fmt: skip
    return SeriesKey("nets", metric, labels).id


def _night(night: str) -> Night:
    run = StepResult("run", OK, "", night, 90.0) if night != NIGHTS[1] else StepResult("run", FAILED, "killed", night)
    job = JobResult("experiment", "nets", "Nets", "", (run,))
    facts = {"committed_utc": f"{night[:8]}T010000Z"}
    commit = {
        "key": f"git-{night[:8]}", "provider": "git", "version": "0.28.dev0", "commit": night * 2, "facts": facts
    }  # fmt: skip
    return Night(night, COMPLETE, night, 100.0, 1, {}, (commit,), jobs=(job,))


def _verdict(night: str, points: int, metrics: Sequence[str]) -> verdict.NightVerdict:
    workloads = [f"net{number}" for number in range(points)] or ["mlp", "resnet18"]
    series = tuple(
        verdict.JudgedSeries(
            key_of(workload, metric), verdict.Standing.STEADY, verdict.Evidence.PAIRED, effect=0.00123456,
            low=-0.0112345, high=0.0123456, visible=0.0234567,
        )
        for workload in workloads
        for metric in metrics
    )  # fmt: skip
    return verdict.NightVerdict(night, verdict.Level.STEADY, "Nothing moved", len(series), len(series), series=series)


def tell_incident(home: Home, event: str, told: Mapping[str, Any]) -> None:
    """Add a line to the ledger of incidents."""
    path = home.output(verdict.SUBSYSTEM) / LEDGER_FILE
    count = len(incident_file.read(path))
    incident_file.append(path, [Event(f"2026-11-24T03:15:{count:02}Z", "ann", event, INCIDENT, told)])


def _opened() -> dict[str, Any]:
    moved = {
        "series": key_of("resnet18"), "name": "nets resnet18 run time", "metric": "run_time", "unit": "ms",
        "worse": True, "before": 10.0, "after": 10.6, "effect": 0.06, "low": 0.05, "high": 0.07, "kind": "time",
    }  # fmt: skip
    return {
        "kind": "change", "begin": NIGHTS[3], "after": NIGHTS[2], "found": NIGHTS[3], "versions": ["a", "b"],
        "blame": "compiler", "moved": [moved], "artifacts": ["git-20261123", "git-20261124"],
    }  # fmt: skip


def send_in_slack(home: Home, subsystem: str, nights: Sequence[str]) -> None:
    """One message for each night, as a subsystem sends them, one night after the other."""
    folder = home.output(subsystem)
    folder.mkdir(parents=True, exist_ok=True)
    outbox = Outbox(folder / OUTBOX_FILE, nights[0])
    for night in nights:
        ts = f"{common.parse_stamp(night).timestamp() + 600:.0f}.000100"
        at = common.stamp_of(common.parse_stamp(night) + datetime.timedelta(minutes=10))
        outbox.put(Entry(night, night, State.SENT, (night,), 1, iso_of(at), remote=f"C0NIGHTLY01 {ts}"))


def _measure_again(home: Home) -> None:
    ratios = {key_of("mlp"): RatioRun(math.log(1.02), 0.01, 2)}, {key_of("mlp"): RatioRun(math.log(1.05), 0.01, 1)}
    runs = tuple(Run("nets", NIGHTS[-2], "b", {}, 30.0, "a", each) for each in ratios)
    alone = Run("nets", NIGHTS[-2], "b", {key_of("mlp"): 2.0}, 20.0)
    done = Remeasured(NIGHTS[-1], 100.0, (*runs, alone), ended="complete")
    path = home.output(verdict.SUBSYSTEM) / FOLDER / f"{NIGHTS[-1]}.json"
    _write(path, {"schema_version": 1, **structured.to_json(done)})


def _try() -> Trial:
    sides = (TrialTvm("git:pull/7", "git-x", "0.28.dev0", "a" * 40), TrialTvm("pypi:0.27.0", "w", "0.27.0"))
    change = TrialChange(0.1, 0.097, 0.103, 0.003, 0.005, 12, real=True)
    series = (TrialSeries(key_of("mlp"), "nets", "run_time", {}, name="nets mlp run time", change=change),)
    return Trial(NIGHTS[-1], TrialState.DONE, *sides, 0.01, "test", {"nets": "f"}, series=series)
