"""What the machine did during a run: what is read, what it costs, what is kept."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path

import pytest

from dashboard.night import telemetry
from dashboard.night.telemetry import BusyCores, Recorder, Sensor
from tests.cards.stand_in import make_driver
from tests.dashboard.homes import BEGIN, HomeForTests, good, make_home, says, wait_for
from tvmdash.errors import DashboardError
from tvmdash.machine import telemetry as telemetry_data
from tvmdash.machine.telemetry import Cost, Telemetry

GB = 1 << 30


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def process(pid: int, ticks: int, *children: int) -> dict[str, str]:
    """The files of a process that used `ticks`, half of them through children that have ended."""
    fields = ["S", *["0"] * 10, str(ticks // 2), "0", str(ticks - ticks // 2), "0", "20"]
    stat = f"{pid} (a) b) {' '.join(fields)}"
    return {f"{pid}/stat": stat, f"{pid}/task/{pid}/children": " ".join(map(str, children))}


def stat(ours: str, others: str = "900 0 0 0 0 0 0 900") -> str:
    """What /proc/stat says of one core that the night may use, and of another one."""
    core = min(os.sched_getaffinity(0))
    return f"cpu  7 7 7\ncpu{core} {ours}\ncpu4000 {others}\nintr 5 0 0\n"


def read_all(found: list[Sensor]) -> dict[str, float | None]:
    return {name: value for sensor in found for name, value in sensor().items()}


MACHINE = {
    "proc/loadavg": "1.37 3.45 3.23 5/123 15898\n",
    "proc/meminfo": "MemTotal: 8192 kB\nMemFree: 1 kB\nMemAvailable: 4096 kB\n",
    "proc/stat": "cpu  10 0 10 500 0 0 0 0 0 0\n",
}


def test_temperatures_and_clocks_are_read_with_their_names_and_units(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    clocks = {f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq": f"{2000 + core}000\n" for core in cores}
    hot = {
        "sys/class/thermal/thermal_zone0/type": "x86_pkg_temp\n",
        "sys/class/thermal/thermal_zone0/temp": "61500\n",
        "sys/class/hwmon/hwmon1/name": "k10temp\n",
        "sys/class/hwmon/hwmon1/temp1_input": "48250\n",
        "sys/class/hwmon/hwmon1/temp1_label": "Tctl\n",
    }
    read = read_all(telemetry.host_sensors(put(tmp_path, {**MACHINE, **clocks, **hot})))
    assert read["temperature_c.x86_pkg_temp 0"] == 61.5
    assert read["temperature_c.k10temp Tctl"] == 48.25
    assert read["cpu_mhz_max"] == 2000 + cores[-1]
    assert read[f"cpu_mhz.{cores[0]}"] == 2000 + cores[0]
    assert read["load_1_min"] == 1.37
    assert read["memory_available_bytes"] == 4096 * 1024
    assert telemetry.memory_total_bytes(tmp_path) == 8192 * 1024


def test_a_virtual_machine_without_sensors_gives_what_it_has(tmp_path: Path) -> None:
    cpuinfo = "processor\t: 0\ncpu MHz\t\t: 2596.102\n\nprocessor\t: 1\ncpu MHz\t\t: 2000.0\n"
    read = read_all(telemetry.host_sensors(put(tmp_path, {**MACHINE, "proc/cpuinfo": cpuinfo})))
    assert (read["cpu_mhz_min"], read["cpu_mhz.0"]) == (2000.0, 2596.102)
    assert not [name for name in read if name.startswith("temperature")]
    put(tmp_path, {"proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\n"})
    assert not [name for name in read_all(telemetry.host_sensors(tmp_path)) if name.startswith("cpu_mhz")]


def test_a_sensor_that_is_silent_for_a_moment_gives_no_value_for_it(tmp_path: Path) -> None:
    zone = {"sys/class/thermal/thermal_zone0/type": "cpu", "sys/class/thermal/thermal_zone0/temp": "50000"}
    found = telemetry.host_sensors(put(tmp_path, {**MACHINE, **zone}))
    put(tmp_path, {"sys/class/thermal/thermal_zone0/temp": ""})
    assert read_all(found)["temperature_c.cpu 0"] is None


def test_cores_that_the_night_and_all_its_descendants_keep_busy_are_told_from_those_of_others(tmp_path: Path) -> None:
    own = os.getpid()
    put(tmp_path, {"stat": stat("0 0 0 0 0 0 0 0 0 0"), **process(own, 0, 7), **process(7, 0, 8), **process(8, 0)})
    busy = BusyCores(tmp_path)
    put(tmp_path, {"stat": stat("300 50 30 900 9 10 10 100 0 0"), **process(own, 40, 7), **process(7, 60, 8)})
    put(tmp_path, process(8, 100))
    read = busy()
    total, others = read["busy_cores.own"], read["busy_cores.others"]
    assert total is not None
    assert others is not None
    assert read["stolen_cores"] is not None
    assert others / total == pytest.approx(1.0)
    assert read["stolen_cores"] / total == pytest.approx(0.5)


def test_cores_that_the_night_may_not_use_are_not_counted(tmp_path: Path) -> None:
    put(tmp_path, {"stat": stat("0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0"), **process(os.getpid(), 0)})
    busy = BusyCores(tmp_path)
    put(tmp_path, {"stat": stat("0 0 0 500 0 0 0 0", "500 0 0 0 0 0 0 500")})
    assert busy() == {"busy_cores.own": 0.0, "busy_cores.others": 0.0, "stolen_cores": 0.0}


def test_where_the_kernel_does_not_tell_children_nobody_is_blamed(tmp_path: Path) -> None:
    pid = os.getpid()
    put(tmp_path, {"stat": stat("0 0 0 0 0 0 0 0"), f"{pid}/stat": process(pid, 0)[f"{pid}/stat"]})
    busy = BusyCores(tmp_path)
    put(tmp_path, {"stat": stat("500 0 0 0 0 0 0 9")})
    read = busy()
    assert read["busy_cores.own"] is read["busy_cores.others"] is None
    assert read["stolen_cores"]


def test_a_process_that_ends_while_it_is_read_costs_nothing_else(tmp_path: Path) -> None:
    put(tmp_path, {"stat": stat("0 0 0 0 0 0 0 0"), **process(os.getpid(), 10, 7)})
    assert BusyCores(tmp_path)()["busy_cores.own"] == 0.0


def record(recorder: Recorder, readings: int) -> dict[str, list[float | None]]:
    """Record until there are so many readings."""
    recorder.start()
    wait_for(lambda: len(recorder.columns().get("elapsed_s", ())) >= readings, f"{readings} readings")
    recorder.stop()
    return recorder.columns()


def test_readings_are_columns_of_one_length_in_order_of_time() -> None:
    counted = iter(range(1000))
    recorder = Recorder(100.0, [lambda: {"load_1_min": 1.0}, lambda: {"odd": 1.0} if next(counted) % 2 else {}])
    columns = record(recorder, 4)
    assert len({len(column) for column in columns.values()}) == 1
    assert columns["elapsed_s"] == sorted(columns["elapsed_s"])
    assert columns["odd"][:2] == [None, 1.0]


def test_a_short_stage_has_a_reading_at_any_rate() -> None:
    recorder = Recorder(0.01, [lambda: {"load_1_min": 1.0}])
    assert record(recorder, 1)["load_1_min"] == [1.0]


def test_where_a_reading_is_expensive_there_are_fewer_of_them() -> None:
    def expensive() -> dict[str, float | None]:
        end = time.thread_time() + 0.01
        while time.thread_time() < end:
            pass
        return {"load_1_min": 1.0}

    recorder = Recorder(100.0, [expensive])
    recorder.start()
    wait_for(recorder.columns, "a reading")
    time.sleep(0.3)
    recorder.stop()
    assert len(recorder.columns()["load_1_min"]) == 1
    assert recorder.cost().longest_ms >= 10


def test_a_sensor_that_fails_is_given_up_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> dict[str, float | None]:
        raise OSError("gone")

    recorder = Recorder(100.0, [broken, lambda: {"load_1_min": 1.0}])
    with caplog.at_level(logging.WARNING):
        columns = record(recorder, 3)
    assert caplog.text.count("stopped reading a faulty sensor: gone") == 1
    assert len(columns["load_1_min"]) >= 3


def test_a_long_recording_is_thinned_and_still_spans_the_run() -> None:
    taken = 0

    def counted() -> dict[str, float | None]:
        nonlocal taken
        taken += 1
        return {"reading": float(taken)}

    recorder = Recorder(200.0, [counted], max_readings=8)
    recorder.start()
    wait_for(lambda: taken >= 20, "20 readings")
    recorder.stop()
    kept = recorder.columns()["reading"]
    assert len(kept) <= 8
    assert kept[0] == 1.0
    assert kept[-1] is not None
    assert kept[-1] >= taken - 4
    assert kept == sorted(kept)


def test_a_reading_of_this_machine_costs_less_than_what_would_make_readings_rarer() -> None:
    found = telemetry.host_sensors()
    begun = time.thread_time()
    for _ in range(20):
        read_all(found)
    assert (time.thread_time() - begun) / 20 < telemetry.MAX_SHARE


def test_what_is_written_is_read_back_and_what_is_damaged_is_named(tmp_path: Path) -> None:
    columns = {"elapsed_s": (0.12345, 1.0), "load_1_min": (None, 2.0)}
    whole = Telemetry("opt", "20260101T000000Z", 1e9, 1.0, 2, GB, Cost(0.001, 0.5), columns)
    path = tmp_path / "telemetry.json"
    telemetry_data.write(path, whole)
    read = telemetry_data.read(path)
    assert read.seconds == [0.123, 1.0]
    assert read.column("load_1_min") == [None, 2.0]
    assert read.column("gpu_mhz.0") == [None, None]
    value = json.loads(path.read_text())
    for damage, words in (
        ({"schema_version": 2}, "2 is not 1"),
        ({"cost": None}, r"\$\.cost: None is not an object. Move it away"),
        ({"columns": {"elapsed_s": [1], "b": []}}, "lengths differ"),
    ):
        path.write_text(json.dumps({**value, **damage}))
        with pytest.raises(DashboardError, match=words):
            telemetry_data.read(path)
    path.write_text(json.dumps({name: item for name, item in value.items() if name != "schema_version"}))
    with pytest.raises(DashboardError, match="None is not 1"):
        telemetry_data.read(path)
    path.write_text("[]")
    with pytest.raises(DashboardError, match=r"\$: \[\] is not an object"):
        telemetry_data.read(path)


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> HomeForTests:
    return make_home(tmp_path, tvm_artifact_folder, telemetry_rate=10.0)


def recordings(home: HomeForTests, name: str = "good") -> list[Path]:
    return sorted(telemetry_data.folder(home.path, name).glob("*"))


def test_a_night_keeps_one_recording_of_each_experiments_run(home: HomeForTests) -> None:
    home.experiment("good", run=good("run", "sleep 0.4"))
    home.subsystem()
    night = home.night()
    (path,) = recordings(home)
    assert path == telemetry_data.file(home.path, "good", night["stamp"])
    read = telemetry_data.read(path)
    assert read.experiment == "good"
    (run,) = [
        step for job in night["jobs"] for step in job["steps"] if job["name"] == "good" and step["stage"] == "run"
    ]
    assert read.seconds
    assert read.seconds[-1] < run["elapsed_s"] + 0.5, "other stages are not in it"
    assert read.memory_total_bytes > 0
    assert [value for value in read.column("busy_cores.own") if value is not None]


def test_the_cards_of_the_machine_are_in_the_recording(home: HomeForTests, tmp_path: Path) -> None:
    driver = make_driver(tmp_path, throttle=0x20)
    home.experiment("good", run=good("run", "sleep 0.4"))
    assert home.run_cold(driver.environment).code == 0
    read = telemetry_data.read(recordings(home)[0])
    assert read.column("gpu_power_w.0")[-1] == 250.0
    assert read.column("gpu_throttled.0 heat")[-1] == 1.0


def test_a_run_that_fails_is_recorded_and_so_is_one_that_hangs(home: HomeForTests) -> None:
    home.experiment("fails", run=f"{BEGIN}sleep 0.3\nexit 1\n")
    home.experiment("hangs", run=f"{BEGIN}sleep 60\n", config={"timeouts": {"run": 1}})
    assert home.run().code == 1
    assert len(recordings(home, "fails")) == len(recordings(home, "hangs")) == 1


def test_the_oldest_recordings_go(home: HomeForTests) -> None:
    home.configure(keep_raw_nights=2)
    home.experiment("good", run=good("run", "sleep 0.3"))
    stamps = [home.night()["stamp"] for _ in range(3)]
    assert recordings(home) == [telemetry_data.file(home.path, "good", stamp) for stamp in stamps[1:]]


def test_a_rate_of_0_records_nothing(home: HomeForTests) -> None:
    home.configure(telemetry_rate=0)
    home.experiment("good", run=good("run", "sleep 0.3"))
    home.night()
    assert not recordings(home)


def test_a_recording_that_cannot_be_kept_costs_the_run_nothing_and_is_said(home: HomeForTests) -> None:
    home.experiment("good", run=good("run", "sleep 0.3"))
    blocker = telemetry_data.folder(home.path, "good")
    blocker.parent.mkdir(parents=True)
    blocker.write_text("not a folder")
    done = home.run()
    assert done.code == 0
    assert "could not save the telemetry of good" in done.output


def test_a_subsystem_that_says_blocked_is_blocked_with_its_reason_and_not_failed(home: HomeForTests) -> None:
    home.experiment("good")
    status = json.dumps({"success": False, "message": "experiment x is not active.", "blocked": True})
    home.subsystem("needy", run=f"{BEGIN}echo '{status}' > \"$2/status.json\"\nexit 1\n")
    home.subsystem("broken", run=f"{BEGIN}{says('subsystem', 'no', success=False)}\n")
    home.run()
    assert home.states("needy") == {"precheck": "ok", "run": "blocked"}
    assert home.status("needy", "run", "subsystem")["message"] == "experiment x is not active."
    assert home.states("broken")["run"] == "failed"
