"""A night beside a reference: two processes take turns, and the record says the ratio of their times."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes
from tests.tvmdash.stages_here import run_here
from tvmdash import records
from tvmdash.experiment.paired import pairs
from tvmdash.measure.capture import Sample, Trial, read_trials
from tvmdash.measure.under_load import was_watched
from tvmdash.records import NightData
from tvmtraces import connect

SHARED = Path(__file__).parents[3] / "shared" / "python"
SOURCE = """
import os, signal, sys
from tvmdash.exp_templates import Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer

def facts():
    import compiler
    return EngineFacts(compiler.VERSION, compiler.VERSION)

class Toy(Experiment):
    engines = (Engine("tvm", facts=facts, pairable=True), Engine("rival", facts=lambda: EngineFacts("1")))

    def points(self, config):
        return [Point(f"toy.{name}", {}, group=config["group"] or name, target="cpu", engine=engine)
                for name in config["names"] for engine in ("tvm", *config["rivals"])]

    def is_paired(self, point, config):
        return point.name != "tuned"

    def prepare(self, point, config, seed):
        work, program, call = 1000, None, sum
        if point.engine == "tvm":
            import compiler
            work, program = compiler.prepare(point.name), lambda: compiler.program(point.name)
            call = compiler.call
        data = list(range(work))
        return Prepared(timer=python_timer(lambda: call(data)), compile_ms=1.5, code_size_bytes=work,
                        compile_cpu_ms=work / 1e4 if config["knows_cpu"] else None,
                        details={"module_hash": str(work)}, program=program,
                        after=compiler.watch if point.name == "on a card" else None)

if __name__ == "__main__":
    sys.exit(Toy().main())
"""
COMPILER = """
import os, signal, time
VERSION = {version!r}
WORK = {work!r}

CALLS = PROCESS = 0

def count_processes():
    with open(__file__ + ".processes", "a") as file:
        file.write("x")
        return file.tell()

def call(data):
    global CALLS
    CALLS += 1
    if CALLS == 4 and WORK.get("fourth call") == "kills the second process" and PROCESS == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if CALLS == 4 and WORK.get("fourth call") == "turns the clock back":
        now = time.time_ns
        time.time_ns, time.time = lambda: now() - 3600 * 10**9, lambda: now() / 1e9 - 3600
    return sum(data)

def prepare(name):
    global PROCESS
    PROCESS = PROCESS or count_processes()
    if WORK.get(name) == "hangs in the second process":
        if PROCESS == 2:
            open(__file__ + ".hangs", "w").close()
            time.sleep(3600)
        return 20000
    if WORK.get(name) == "raises":
        raise ValueError("this compiler cannot do that")
    if WORK.get(name) == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if WORK.get(name) == "hangs":
        time.sleep(3600)
    return WORK.get(name, 20000)

class Card:
    energy = 0

    def read_energy_mj(self):
        Card.energy += 1
        return Card.energy

    def read_throttles(self):
        return {{"heat": True}}

    def is_divided(self):
        return False

    def list_strangers(self):
        return []

def watch():
    from tvmdash.measure import under_load
    under_load.LEAST_S, under_load.BATCH_S = 0.05, 0.001
    return {{"seen": 1, **under_load.watch_card(Card(), lambda: None, lambda: None)}}

def program(name):
    if WORK.get("has_no_program"):
        raise AttributeError("this version writes no modules")
    return str(os.getpid() if WORK.get("is_random") else WORK.get(name))
"""
FIELDS = {
    "include": ["timing"],
    "names": {"type": "list", "of": {"type": "str"}, "doc": "Names.", "default": ["net"]},
    "rivals": {"type": "list", "of": {"type": "str"}, "doc": "Other engines.", "default": []},
    "group": {"type": "str", "doc": "One group for all.", "default": "", "min": 0},
    "knows_cpu": {"type": "bool", "doc": "The CPU time of compiling.", "default": True},
}
Work = dict[str, Any]


class Toy:
    """An experiment on a stand-in compiler, of which there are two versions."""

    def __init__(self, root: Path, **config: Any) -> None:
        self.root, self.code, self.config = root, root / "toy", root / "config"
        for folder in (self.code, self.config):
            folder.mkdir()
        (self.code / "toy.py").write_text(SOURCE)
        (self.code / "fields.json").write_text(json.dumps(FIELDS))
        timing = {"number": 1, "repeat": 4, "processes": 1, "max_processes": 1, "pairs": 2, "max_pairs": 2}
        (self.config / "config.json").write_text(json.dumps({"active": True, **timing, **config}))

    def compiler(self, version: str, work: Work) -> Path:
        folder = self.root / f"compiler_{version}"
        folder.mkdir(exist_ok=True)
        (folder / "compiler.py").write_text(COMPILER.format(version=version, work=work))
        return folder

    def run(self, tonight: Work, reference: Work | None, measured: Mapping[str, int] | None = None) -> dict[str, Any]:
        """The status that the run stage leaves in `raw`; measured: what the night says of the nights before."""
        self._stage("run", self.raw, self._prepare(tonight, reference, measured))
        status: dict[str, Any] = json.loads((self.raw / "status.json").read_text())
        return status

    def run_until_killed(self, tonight: Work, reference: Work, moment: Path) -> None:
        """Kill the run stage and all its processes as soon as the file `moment` is there."""
        argv = [sys.executable, "toy.py", "run", str(self.config), str(self.raw)]
        environment = {**os.environ, **self._prepare(tonight, reference)}
        process = subprocess.Popen(
            argv, cwd=self.code, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0
        )
        try:
            homes.wait_for(moment.exists, "the moment to kill it")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _prepare(
        self, tonight: Work, reference: Work | None, measured: Mapping[str, int] | None = None
    ) -> dict[str, str]:
        """The variables of a run between the two compilers; `raw` is empty."""
        environment = {"PYTHONPATH": f"{SHARED}:{self.compiler('2.0', tonight)}", "TVMDASH_SEED": "3"}
        environment["TVMDASH_JOB"] = "toy"
        if reference is not None:
            folder = self.compiler("1.0", reference)
            named = {"schema_version": 1, "key": "wheel-1.0", "version": "1.0", "commit": None, "library_path": []}
            file = self.root / "reference.json"
            file.write_text(json.dumps({**named, "pythonpath": [str(folder)], "measured": measured or {}}))
            environment["TVMDASH_REFERENCE"] = str(file)
        shutil.rmtree(self.raw, ignore_errors=True)
        self.raw.mkdir()
        return environment

    @property
    def raw(self) -> Path:
        return self.root / "raw"

    def analyze(self) -> NightData:
        analysis = self.root / "analysis"
        analysis.mkdir(exist_ok=True)
        self._stage("analyze", self.raw, {}, analysis)
        status = json.loads((analysis / "status.json").read_text())
        assert status["success"], status
        path = self.root / "data_20260101T000000Z.json"
        path.write_bytes((analysis / "data.json").read_bytes())
        return records.read_data(path, "toy")

    def _stage(self, verb: str, raw: Path, variables: dict[str, str], *more: Path) -> None:
        run_here(self.code / "toy.py", [verb, str(self.config), str(raw), *map(str, more)], variables)


def paired_of(night: NightData) -> dict[str, Any]:
    """By workload, what the records of tonight's TVM say of their pairs."""
    return {r.workload: r.additional_info.get("paired") for r in night.records if r.engine == "tvm"}


def test_both_are_measured_in_turn_and_the_record_says_the_ratio_to_the_reference(tmp_path: Path) -> None:
    toy = Toy(tmp_path, repeat=8, rivals=["rival"])
    status = toy.run({"net": 40000}, {"net": 20000})
    assert status["message"] == "2 of 2 points measured in 3 processes, 1 beside TVM 1.0"
    night = toy.analyze()
    assert night.tvm_hash == "2.0"
    paired = paired_of(night)["toy.net"]
    ratio = paired["ratios"]["run_time"]
    assert ratio["clock"] == "cpu"
    assert len(ratio["log_ratios"]) == len(ratio["wall_log_ratios"]) == 2
    assert 1.5 < ratio["ratio"] < 2.7
    assert ratio["low"] <= ratio["ratio"] <= ratio["high"]
    samples = [
        sample.elapsed_ns for trial in read_trials(toy.raw) for sample in trial.samples if trial.process.get("side")
    ]
    assert paired["timed_s"] == pytest.approx(sum(samples) / 1e9)
    assert paired["reference"]["code_size"] == 20000
    assert paired["reference"]["module_hash"] == "20000"
    own = next(r for r in night.records if r.engine == "tvm").additional_info
    assert own["processes"] == 2
    assert 1.3 < own["execution_elapsed_ms_median"] / paired["reference"]["run_time"] < 3.1
    (value,) = [value for value in night.values() if value.key.metric == "run_time_ratio"]
    assert (value.value, value.low, value.high) == (ratio["ratio"], ratio["low"], ratio["high"])
    assert value.samples == 2


@pytest.mark.parametrize(("knows_cpu", "clock", "ratio"), [(True, "cpu", 2.0), (False, "wall", 1.0)])
def test_compile_times_of_both_sides_are_compared_pair_by_pair(
    tmp_path: Path, knows_cpu: bool, clock: str, ratio: float
) -> None:
    toy = Toy(tmp_path, pairs=4, max_pairs=4, knows_cpu=knows_cpu)
    toy.run({"net": 40000}, {"net": 20000})
    night = toy.analyze()
    found = paired_of(night)["toy.net"]["ratios"]["compile_time"]
    assert (found["clock"], len(found["log_ratios"])) == (clock, 2), "they compile in two of four rounds"
    assert found["ratio"] == pytest.approx(ratio)
    (value,) = [value for value in night.values() if value.key.metric == "compile_time_ratio"]
    assert (value.value, value.samples, value.kind) == (pytest.approx(ratio), 2, "ratio")
    assert [one.unit for one in night.values() if one.key.metric == "compile_time"] == ["ms"]
    assert not night.undeclared


def test_one_process_is_no_processes(tmp_path: Path) -> None:
    assert Toy(tmp_path).run({}, None)["message"].endswith("measured in 1 process")


def test_samples_of_the_two_sides_alternate_and_the_trace_tells_them_apart(tmp_path: Path) -> None:
    toy = Toy(tmp_path, pairs=1, max_pairs=1)
    toy.run({}, {})
    trials = [trial for trial in read_trials(toy.raw) if trial.point["engine"] == "tvm"]
    order = sorted((sample.started_ns or 0, trial.process["side"]) for trial in trials for sample in trial.samples)
    assert [{side for _, side in order[turn : turn + 2]} for turn in range(0, 8, 2)] == [
        {pairs.TONIGHT, pairs.REFERENCE}
    ] * 4
    assert all(sample.cpu_ns and sample.waited is not None for trial in trials for sample in trial.samples)
    with connect(toy.raw) as traces:
        rows = traces.execute(
            "SELECT P.experiment, count(*), count(S.cpu_ns), min(S.timestamp) FROM samples S JOIN processes P"
            " ON P.guid = S.guid AND P.process = S.process WHERE S.cpu_ns IS NOT NULL GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert [row[1:3] for row in rows] == [(4, 4), (4, 4)]
    assert [row[0] for row in rows] == ["toy", "toy@reference"]
    assert {row[3] for row in rows} == {
        min(began for began, side in order if side == name) for name in (pairs.TONIGHT, pairs.REFERENCE)
    }


def test_a_card_is_watched_in_the_first_pair_only_and_the_record_has_what_was_seen(tmp_path: Path) -> None:
    toy = Toy(tmp_path, names=["on a card"], pairs=3, max_pairs=3)
    toy.run({}, {})
    trials = list(read_trials(toy.raw))
    assert [trial.facts["seen"] for trial in trials] == [1] * 6
    assert {trial.process["pair"] for trial in trials if was_watched(trial.facts)} == {0}
    (record,) = toy.analyze().records
    info = record.additional_info
    assert (info["energy"] > 0, info["paired"]["reference"]["energy"] > 0) == (True, True)
    assert "throttled" in info["doubt_kinds"]
    assert len(info["paired"]["ratios"]["energy"]["log_ratios"]) == 1


def test_without_a_reference_the_night_is_measured_as_ever(tmp_path: Path) -> None:
    toy = Toy(tmp_path, rivals=["rival"])
    assert toy.run({}, None)["message"] == "2 of 2 points measured in 2 processes"
    assert paired_of(toy.analyze()) == {"toy.net": None}


@pytest.mark.parametrize(("fault", "minutes"), [("raises", 10.0), ("dies", 10.0), ("hangs", 0.15)])
def test_a_point_that_the_reference_cannot_run_is_measured_alone(tmp_path: Path, fault: str, minutes: float) -> None:
    toy = Toy(tmp_path, names=["bad", "good"], process_minutes=minutes)
    status = toy.run({}, {"bad": fault})
    assert status["success"]
    assert "1 beside TVM 1.0; measuring the reference failed: " in status["message"]
    night = toy.analyze()
    assert paired_of(night)["toy.bad"] is None
    assert len(paired_of(night)["toy.good"]["ratios"]["run_time"]["log_ratios"]) == 2
    assert not night.failures


@pytest.mark.parametrize("fault", ["raises", "dies"])
def test_a_point_that_only_the_reference_can_run_fails(tmp_path: Path, fault: str) -> None:
    toy = Toy(tmp_path, names=["bad", "good"])
    assert toy.run({"bad": fault}, {})["success"]
    night = toy.analyze()
    assert [failure.workload for failure in night.failures] == ["toy.bad"]
    assert list(paired_of(night)) == ["toy.good"]


def test_points_that_cannot_be_paired_stay_alone_in_the_same_process(tmp_path: Path) -> None:
    toy = Toy(tmp_path, names=["net", "tuned"], group="all")
    toy.run({}, {})
    paired = paired_of(toy.analyze())
    assert paired["toy.net"] is not None
    assert paired["toy.tuned"] is None


def test_more_pairs_are_measured_until_the_ratio_is_known(tmp_path: Path) -> None:
    toy = Toy(tmp_path, max_pairs=4, pair_percent=0)
    toy.run({}, {})
    assert len(paired_of(toy.analyze())["toy.net"]["ratios"]["run_time"]["log_ratios"]) == 4


def test_half_a_pair_is_kept_and_never_judged_as_a_pair(tmp_path: Path) -> None:
    toy = Toy(tmp_path, pairs=3, max_pairs=3)
    toy.run({}, {})
    (toy.raw / "ended.json").unlink()
    lost = max(toy.raw.glob("reference_*"), key=lambda folder: folder.name)
    next(lost.glob("raw_*.db")).unlink()
    night = toy.analyze()
    assert len(paired_of(night)["toy.net"]["ratios"]["run_time"]["log_ratios"]) == 2
    assert next(r for r in night.records if r.engine == "tvm").additional_info["processes"] == 3


def test_a_night_that_is_killed_between_the_halves_of_a_pair_compares_the_whole_ones(tmp_path: Path) -> None:
    """The second pair loses the reference in the middle of its turns; the night is killed at the next point.

    Chance decides which point is the first, by the group's name and so by the rivals: here it is net.
    """
    toy = Toy(tmp_path, names=["net", "next"], group="all", pairs=3, max_pairs=3, rivals=["rival"])
    hangs = tmp_path / "compiler_2.0" / "compiler.py.hangs"
    toy.run_until_killed({"next": "hangs in the second process"}, {"fourth call": "kills the second process"}, hangs)
    assert not (toy.raw / "status.json").exists()
    night = toy.analyze()
    own = {record.workload: record.additional_info for record in night.records if record.engine == "tvm"}
    assert [own[name]["processes"] for name in ("toy.net", "toy.next")] == [2, 1], "half of a pair is kept"
    ratios = [own[name]["paired"]["ratios"]["run_time"] for name in ("toy.net", "toy.next")]
    assert [len(ratio["log_ratios"]) for ratio in ratios] == [1, 1]


def test_a_clock_that_is_turned_back_in_the_middle_of_a_pair_changes_no_ratio(tmp_path: Path) -> None:
    toy = Toy(tmp_path, repeat=8)
    back = {"fourth call": "turns the clock back"}
    assert toy.run({"net": 40000, **back}, {"net": 20000, **back})["success"]
    night = toy.analyze()
    ratio = paired_of(night)["toy.net"]["ratios"]["run_time"]
    assert len(ratio["log_ratios"]) == 2
    assert 1.5 < ratio["ratio"] < 2.7
    # Not by an hour in milliseconds; that other programs run as well is in the wall clock.
    assert 0.1 < math.exp(statistics.fmean(ratio["wall_log_ratios"])) < 40
    began = [sample.started_ns or 0 for trial in read_trials(toy.raw) for sample in trial.samples if sample.cpu_ns]
    assert max(began) - min(began) > 3500 * 10**9, "else the clock was not turned back"


def test_several_threads_are_compared_by_the_wall_clock(tmp_path: Path) -> None:
    toy = Toy(tmp_path, threads=2)
    toy.run({}, {})
    assert paired_of(toy.analyze())["toy.net"]["ratios"]["run_time"]["clock"] == "wall"


def trial(side: str, pair: int, times_ns: list[int], *, error: str | None = None) -> Trial:
    samples = tuple(Sample(time_ns * 3, 1, 0, time_ns, waited=False) for time_ns in times_ns)
    process = {"side": side, "pair": pair}
    return Trial({"workload": "w"}, 0, 1, error, {}, samples, process)


def test_the_ratio_is_that_of_turns_that_belong_together(tmp_path: Path) -> None:
    """A machine that becomes ten times slower in the middle is in both halves of each turn."""
    tonight = [trial("tonight", 0, [110, 1100, 11000, 110, 110])]
    reference = [trial("reference", 0, [100, 1000, 10000, 100, 100])]
    ((pair,),) = pairs.match_pairs(tonight, reference).values()
    assert pair.log_ratio("cpu") == pytest.approx(math.log(1.1))


def test_failed_halves_and_those_of_another_number_are_no_pair() -> None:
    tonight = [trial("tonight", 0, [1]), trial("tonight", 1, [1]), trial("tonight", 2, [1])]
    reference = [trial("reference", 0, [1], error="wrong"), trial("reference", 2, [1]), trial("reference", 3, [1])]
    (found,) = pairs.match_pairs(tonight, reference).values()
    assert [pair.tonight.process["pair"] for pair in found] == [2]
