"""The telemetry subsystem: what counts as disturbed, which trials are marked, and that it is quiet otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.golden_files import Golden
from tests.subsystem.scripts import load
from tvmdash.config_util import read_fields
from tvmdash.machine import telemetry as telemetry_data
from tvmdash.machine.telemetry import Cost, Telemetry
from tvmdash.measure.capture import Capture, Sample, Trial

REPO = Path(__file__).resolve().parents[2]
FOLDER = REPO / "subsystem" / "telemetry"
SUBSYSTEM = load("telemetry")
LIMITS = SUBSYSTEM.Limits(**{name: field.default for name, field in read_fields(FOLDER / "fields.json").items()})
STAMP = "20261121T031500Z"
GB = 1e9
N = 120
BEGUN_S = 1_800_000_000.0


def telemetry(experiment: str = "opt", **columns: Any) -> Telemetry:
    """A quiet run of two minutes, one reading a second, except for `columns` (dots in names written as __)."""
    quiet: dict[str, Any] = {
        "elapsed_s": [float(second) for second in range(N)],
        "load_1_min": [1.0] * N,
        "busy_cores.own": [1.0] * N,
        "busy_cores.others": [0.05] * N,
        "stolen_cores": [0.0] * N,
        "memory_available_bytes": [20 * GB] * N,
        "cpu_mhz_max": [3000.0] * N,
    }
    named = {name.replace("__", "."): column for name, column in columns.items()}
    return Telemetry(experiment, STAMP, BEGUN_S, 1.0, 4, int(32 * GB), Cost(0.0002, 0.3), {**quiet, **named})


def sentences(**columns: Any) -> list[str]:
    return list(SUBSYSTEM.judgement.abnormal(telemetry(**columns), LIMITS))


def halves(first: float, second: float) -> list[float]:
    return [first] * (N // 2) + [second] * (N // 2)


TENTH = [1.5] * (N // 10) + [0.0] * (N - N // 10)
DISTURBED: dict[str, dict[str, Any]] = {
    "a clock that falls": {"cpu_mhz_max": halves(3000.0, 2500.0)},
    "a GPU that slows down": {"gpu_percent__0": [98.0] * N, "gpu_mhz__0": halves(1980.0, 1400.0)},
    "a GPU that says why": {"gpu_throttled__0 heat": [float(value > 0) for value in TENTH]},
    "a GPU that is lost": {"gpu_temperature_c__1": [60.0] * 31 + [None] * (N - 31)},
    "other programs": {"busy_cores__others": TENTH},
    "a hypervisor": {"stolen_cores": [0.2] * N},
    "short memory": {"memory_available_bytes": [20 * GB] * (N - 1) + [1.5 * GB]},
}


def test_messages(golden: Golden) -> None:
    golden.messages("telemetry", [(name, "\n".join(sentences(**each))) for name, each in DISTURBED.items()])


def test_a_quiet_run_has_nothing_to_tell() -> None:
    assert sentences() == []


def test_a_clock_that_falls_under_the_same_load_is_throttled() -> None:
    (sentence,) = sentences(cpu_mhz_max=halves(3000.0, 2500.0))
    assert "(3000 to 2500 MHz)" in sentence


@pytest.mark.parametrize(
    "columns",
    [
        {"cpu_mhz_max": halves(3000.0, 2750.0)},
        {"cpu_mhz_max": halves(2000.0, 3000.0)},
        {"cpu_mhz_max": halves(3000.0, 1500.0), "busy_cores__own": halves(1.0, 0.0)},
        {"cpu_mhz_max": halves(3000.0, 2500.0), "busy_cores__own": halves(1.0, 4.0)},
        {"cpu_mhz_max": [1500.0 if second % 30 == 0 else 3000.0 for second in range(N)]},
        {"cpu_mhz_max": [None] * N},
        {"cpu_mhz_max": halves(3000.0, 2500.0), "busy_cores__own": [None] * N},
    ],
    ids=["by 8 %", "rising", "idle", "more cores busy", "single dips", "no clock", "no load"],
)
def test_a_clock_is_not_throttled_that_falls_little_or_with_the_load_or_for_a_moment(columns: dict[str, Any]) -> None:
    assert sentences(**columns) == []


def test_a_gpu_that_slows_down_while_it_is_used_is_throttled() -> None:
    used = {"gpu_percent__0": [98.0] * N, "gpu_mhz__0": halves(1980.0, 1400.0)}
    (sentence,) = sentences(**used)
    assert sentence.startswith("GPU 0 was throttled")
    assert sentences(**{**used, "gpu_percent__0": halves(98.0, 0.0)}) == []


def test_what_a_gpu_says_slowed_it_down_is_told_from_a_tenth_of_the_run_on() -> None:
    tenth = [1.0] * (N // 10) + [0.0] * (N - N // 10)
    (sentence,) = sentences(**{"gpu_throttled__0 heat": tenth})
    assert "by heat during 10%" in sentence
    assert sentences(**{"gpu_throttled__0 heat": [0.0, *tenth[1:-1], 0.0], "gpu_throttled__1 heat": [None] * N}) == []


def test_a_gpu_that_is_lost_in_the_middle_is_told_with_the_moment() -> None:
    lost = [60.0] * 31 + [None] * (N - 31)
    (sentence,) = sentences(gpu_temperature_c__1=lost)
    assert "30.0 s" in sentence
    assert sentences(gpu_temperature_c__1=[*lost[:-1], 60.0], gpu_temperature_c__0=[None] * N) == []


def test_other_programs_are_told_from_a_core_for_a_tenth_of_the_run_on() -> None:
    tenth = [1.5] * (N // 10) + [0.0] * (N - N // 10)
    (sentence,) = sentences(busy_cores__others=tenth)
    assert "1.50 of 4 cores" in sentence
    assert sentences(busy_cores__others=[0.0, *tenth[1:]]) == []
    assert sentences(busy_cores__others=[0.9] * N) == []


def test_of_a_night_on_one_core_others_take_half_at_most() -> None:
    columns = {"elapsed_s": [float(second) for second in range(N)], "busy_cores.own": [0.5] * N}
    one = Telemetry("opt", STAMP, 0, 1.0, 1, 1, Cost(0, 0), {**columns, "busy_cores.others": [0.5] * N})
    (sentence,) = SUBSYSTEM.judgement.abnormal(one, LIMITS)
    assert "0.500 of 1 core busy" in sentence


def test_the_runs_own_threads_are_no_load_from_others() -> None:
    assert sentences(busy_cores__own=[4.0] * N, load_1_min=[6.0] * N) == []


def test_a_hypervisor_that_takes_time_away_is_told() -> None:
    (sentence,) = sentences(stolen_cores=[0.2] * N)
    assert "0.200 cores" in sentence


def test_memory_that_was_short_for_a_moment_is_told() -> None:
    (sentence,) = sentences(memory_available_bytes=[20 * GB] * (N - 1) + [1.5 * GB])
    assert "1.50 GB of 32.0 GB" in sentence


def test_a_handful_of_readings_is_not_judged() -> None:
    few = Telemetry("opt", STAMP, 0, 1.0, 4, 1, Cost(0, 0), {"elapsed_s": [0.0], "busy_cores.others": [4.0]})
    assert SUBSYSTEM.judgement.abnormal(few, LIMITS) == []


class Home:
    """A home after the runs of a night."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root, self.config, self.output = root / "home", root / "config", root / "output"
        self.output.mkdir(parents=True)
        write(self.config / "config.json", {"active": True})
        folders = {"tmp_data_dir": "tmp", "backup_dir": "b", "setup_dir": "s"}
        write(self.root / "config" / "config.json", {**folders, **settings})
        self.jobs: list[Any] = []

    def add(self, run: Telemetry) -> None:
        telemetry_data.write(telemetry_data.file(self.root, run.experiment, STAMP), run)
        self.jobs.append({"kind": "experiment", "name": run.experiment, "title": "", "description": "", "steps": []})

    def add_raw(self, experiment: str, *trials: tuple[str, list[float]]) -> None:
        """Keep raw measurements: trials of ten seconds each, from the begin of the run on."""
        folder = self.root / "raw"
        folder.mkdir()
        with Capture(folder, {}) as capture:
            for number, (network, samples) in enumerate(trials):
                trial = capture.begin({"workload": f"network.{network}", "values": {"level": 3}})
                capture.end(trial, samples=[Sample(int(ms * 1e6), 1) for ms in samples])
                moments = (int((BEGUN_S + 10 * number) * 1e9), int((BEGUN_S + 10 * number + 10) * 1e9), trial)
                capture._database.execute("UPDATE trials SET started_ns = ?, ended_ns = ? WHERE id = ?", moments)
                capture._database.commit()
        kept = self.root / "tmp" / "raw" / experiment / f"raw_{STAMP}.zip"
        kept.parent.mkdir(parents=True)
        with zipfile.ZipFile(kept, "w") as archive:
            for path in folder.iterdir():
                archive.write(path, f"process_0/{path.name}")

    def run(self) -> dict[str, Any]:
        """Run the subsystem; its status."""
        self._write_night()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TVMDASH_NIGHT", STAMP)
            SUBSYSTEM.TelemetrySubsystem().main([str(self.config), str(self.output), str(self.root)])
        return read(self.output / "status.json")

    def script(self) -> dict[str, Any]:
        """Run its run.sh, as a night does; its status."""
        self._write_night()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "PYTHONPATH": f"{REPO}/shared/python", "TVMDASH_NIGHT": STAMP}
        argv = [str(FOLDER / "run.sh"), str(self.config), str(self.output), str(self.root)]
        subprocess.run(argv, cwd=FOLDER, env=environment, check=False, capture_output=True)
        return read(self.output / "status.json")

    def _write_night(self) -> None:
        night = {"stamp": STAMP, "state": "running", "notes": [], "artifacts": [], "jobs": self.jobs}
        write(self.root / "results" / "nights" / f"{STAMP}.json", night)

    def page(self) -> dict[str, Any]:
        return read(self.output / "page.json")


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def read(path: Path) -> Any:
    return json.loads(path.read_text())


STEADY = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0]


def test_a_quiet_night_has_a_page_with_graphs_and_no_report(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add(telemetry("opt", temperature_c__cpu=[50.0] * N))
    home.add(telemetry("other"))
    assert home.script() == {"success": True, "message": "done, nothing to report"}
    assert not (home.output / "report.json").exists()
    assert [run["experiment"] for run in home.page()["runs"]] == ["opt", "other"]
    run = home.page()["runs"][0]
    assert run["ranges"]["temperature_c.cpu"] == [50.0, 50.0, 50.0]
    assert run["abnormal"] == []
    assert "cpu 50.0 °C" in run["graph"]["alt"]
    assert "cpu  50.0" in (home.output / run["graph"]["file"]).read_text()


def test_a_disturbed_run_is_reported_with_its_outlying_samples(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add(telemetry("opt", busy_cores__others=[2.0] * N))
    home.add(telemetry("other"))
    home.add_raw("opt", ("mlp", STEADY), ("dqn", [*STEADY, 3.0]))
    assert "1 of 2 runs" in home.run()["message"]
    words = read(home.output / "report.json")["value"]
    assert words.startswith("opt: Other programs")
    assert "1 trial has outlying" in words


def test_the_trials_with_outlying_samples_are_shaded_where_they_ran(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add(telemetry("opt"))
    home.add_raw("opt", ("mlp", STEADY), ("dqn", [*STEADY, 3.0, 2.0]), ("cnn", [1.0, 9.0]))
    home.run()
    run = home.page()["runs"][0]
    assert run["outliers_unknown"] is None
    (outlier,) = run["outliers"]
    assert (outlier["begin_s"], outlier["end_s"], outlier["count"]) == pytest.approx((10.0, 20.0, 2), abs=1e-3)
    assert outlier["label"] == "dqn, 3"
    assert outlier["times"] == pytest.approx(3.0)
    assert "shaded: dqn, 3: 3.0x" in run["graph"]["alt"]


def test_samples_that_scatter_alike_are_no_outliers(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add(telemetry("opt"))
    home.add_raw("opt", ("mlp", [1.0, 1.5, 2.0, 2.5, 3.0, 3.5]), ("dqn", [1.0] * 6 + [1.05]))
    home.run()
    assert home.page()["runs"][0]["outliers"] == []


@pytest.mark.parametrize(
    ("samples", "is_outlying"),
    [
        pytest.param([1.0] * 5 + [2.0], True, id="six samples"),
        pytest.param([1.0] * 4 + [2.0], False, id="five samples"),
        pytest.param([1.0] * 5 + [1.11], True, id="a tenth more"),
        pytest.param([1.0] * 5 + [1.09], False, id="less than a tenth more"),
        pytest.param([0.9, 0.95, 1.0, 1.0, 1.05, 1.1, 1.45], True, id="six deviations"),
        pytest.param([0.9, 0.95, 1.0, 1.0, 1.05, 1.1, 1.3], False, id="four deviations"),
    ],
)
def test_a_sample_far_above_the_others_is_outlying(samples: list[float], *, is_outlying: bool) -> None:
    taken = tuple(Sample(round(ms * 1e6), 1) for ms in samples)
    trial = Trial({"workload": "mlp", "values": {}}, 0, 1, None, {}, taken, {})
    assert bool(SUBSYSTEM.find_outliers([trial], 0.0)) == is_outlying


def test_of_falls_of_the_clock_the_deepest_counts_whatever_the_load() -> None:
    def deepest(*falls: tuple[float, float]) -> Any:
        clock = [mhz for before, after in falls for mhz in (*[before] * 30, *[after] * 30)]
        load = [float(at + 1) for at in range(len(falls)) for _ in range(60)]
        return SUBSYSTEM.judgement.deepest_fall([float(at) for at in range(len(clock))], clock, load)

    assert deepest((3000.0, 2700.0), (2000.0, 1000.0)).low_mhz == 1000.0
    assert deepest((2000.0, 1000.0), (3000.0, 2700.0)).low_mhz == 1000.0
    assert deepest((2000.0, 1000.0), (3000.0, 1500.0)).low_mhz == 1000.0, "of two alike the one at the lower load"


@pytest.mark.parametrize("damage", [None, b"no zip", b""])
def test_without_raw_measurements_the_outliers_are_unknown_and_the_rest_is_there(
    tmp_path: Path, damage: bytes | None
) -> None:
    home = Home(tmp_path)
    home.add(telemetry("opt"))
    if damage is not None:
        kept = home.root / "tmp" / "raw" / "opt" / f"raw_{STAMP}.zip"
        kept.parent.mkdir(parents=True)
        kept.write_bytes(damage)
    assert home.run()["success"]
    run = home.page()["runs"][0]
    assert run["outliers"] == []
    assert ("are not kept" if damage is None else "cannot be read") in run["outliers_unknown"]


def test_a_recording_that_cannot_be_read_costs_that_run_only_and_is_said(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.add(telemetry("opt"))
    home.add(telemetry("other"))
    telemetry_data.file(home.root, "opt", STAMP).write_text("{")
    home.run()
    assert [run["experiment"] for run in home.page()["runs"]] == ["other"]
    assert "not JSON" in read(home.output / "report.json")["value"]


def test_a_home_that_records_nothing_blocks_it_with_the_remedy(tmp_path: Path) -> None:
    status = Home(tmp_path, telemetry_rate=0).run()
    assert status["blocked"] is True
    assert status["message"] == "config/config.json: $.telemetry_rate: 0 is not above 0. Raise it."


def test_a_night_without_runs_is_quiet(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.run() == {"success": True, "message": "done, nothing to report"}
    assert home.page()["runs"] == []


def test_a_machine_with_many_cores_and_gpus_still_draws(tmp_path: Path) -> None:
    home = Home(tmp_path)
    gpus = {
        f"{name}__{number}": [50.0] * N
        for name in ("gpu_mhz", "gpu_percent", "gpu_temperature_c")
        for number in range(9)
    }
    cores = {f"cpu_mhz__{core}": [3000.0] * N for core in range(16)}
    home.add(telemetry("opt", **gpus, **cores, cpu_mhz_min=[800.0] * N, cpu_mhz_median=[None] * N))
    home.run()
    picture = (home.output / home.page()["runs"][0]["graph"]["file"]).read_text()
    assert "1 more lines of GPU MHz" in picture
    assert "core clock, min" in picture
