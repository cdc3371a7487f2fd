"""Sizes and counts that are alike in every process: what is told of them, when, and whose doing it is said to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.subsystem.stat_alerts.alert_homes import BASE, AlertHome, Truth, stamp_of
from tests.subsystem.website.sites import Site, job
from tvmdash.dashboard_info import COMPLETE
from tvmdash.verdict import Level, read_verdict

SIZE = int(BASE["size"])
NAME = "relax_opt mlp code size (opt_level 3)"


@dataclass
class Sizes(Truth):
    """A truth in which `processes` agree on each size, but on those in `differ`; `more` bytes by workload, by night."""

    processes: int = 3
    more: dict[str, Mapping[int, int]] = field(default_factory=dict)
    differ: frozenset[str] = frozenset()

    def record(self, workload: str, level: int, night: int, noise: np.ndarray[Any, Any]) -> dict[str, Any]:
        record = super().record(workload, level, night, noise)
        info = record["additional_info"]
        steps = self.more.get(workload, {})
        info["code_size"] += sum(size for begin, size in steps.items() if night >= begin)
        if self.processes > 1:
            agree = 0 if workload in self.differ else self.processes
            info["alike"] = {"code_size": agree, "device_memory_usage": self.processes}
        return record


def changes(home: AlertHome) -> list[dict[str, Any]]:
    return [one for one in home.incidents() if one["kind"] == "change"]


def test_one_byte_more_on_the_fourth_night_of_a_home_is_told_that_night_in_bytes(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=5, workloads=("mlp",), more={"mlp": {3: 1}}))
    assert "byte" not in home.run(2)["value"]
    report = home.run(3)
    assert "+1 byte" in report["title"]
    assert NAME in report["value"]
    (incident,) = changes(home)
    assert incident["versions"] == ["1a2b3c02d", "1a2b3c03d"]
    assert [(moved["before"], moved["after"]) for moved in incident["moved"]] == [(35_794, 35_795)] * 2
    assert (incident["begin"], incident["found"], incident["state"]) == (stamp_of(3), stamp_of(3), "confirmed")
    assert [(moved["worse"], moved["processes"]) for moved in incident["moved"]] == [(None, 3), (None, 3)]
    assert incident["open"] is False
    assert "byte" not in home.run(4)["value"], "it is told once"
    assert len(changes(home)) == 1


def test_four_tenths_of_a_percent_and_its_return_are_told_on_their_nights(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=44, workloads=("mlp",), more={"mlp": {40: 143, 42: -143}}))
    home.run(39)
    assert "+143 bytes" in home.run(40)["value"]
    assert "143" not in home.run(41)["value"]
    assert "−143 bytes" in home.run(42)["value"]
    home.run(43)
    sizes = [(one["begin"], one["moved"][0]["before"], one["moved"][0]["after"]) for one in changes(home)]
    assert sizes == [(stamp_of(40), 35_794, 35_937), (stamp_of(42), 35_937, 35_794)]


def test_what_one_change_of_tvm_did_in_several_experiments_is_one_incident(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=4, workloads=("mlp",), more={"mlp": {3: 1}}))
    for night in range(4):
        path = home.home.data_file("relax_opt", stamp_of(night))
        home.write_data("pass_comparison", night, json.loads(path.read_text()))
    home.ingest()
    home.run(3)
    (incident,) = changes(home)
    assert len(incident["moved"]) == 4
    assert {moved["name"].split()[0] for moved in incident["moved"]} == {"relax_opt", "pass_comparison"}


def test_all_that_one_artifact_changed_is_one_incident(tmp_path: Path) -> None:
    truth = Sizes(nights=4, more={name: {3: 8 + at} for at, name in enumerate(("mlp", "dqn", "bert", "gru"))})
    home = AlertHome(tmp_path).fill(truth)
    assert "+11 bytes" in home.run(3)["title"]
    (incident,) = changes(home)
    assert len(incident["moved"]) == 8


def test_a_change_while_nights_were_judged_late_is_told_of_its_own_night(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=30, workloads=("mlp",), more={"mlp": {7: 5}}))
    home.run(29)
    (incident,) = changes(home)
    assert (incident["begin"], incident["found"]) == (stamp_of(7), stamp_of(7))


@pytest.mark.parametrize("truth", [Sizes(differ=frozenset({"mlp"})), Sizes(processes=1)], ids=["differ", "unproven"])
def test_a_size_that_did_not_prove_itself_is_judged_like_a_time(tmp_path: Path, truth: Sizes) -> None:
    truth.more["mlp"] = {night: (-1) ** night for night in range(20, 66)}
    home = AlertHome(tmp_path).fill(truth)
    home.run(66)
    assert changes(home) == []


def test_processes_that_differ_tonight_refute_what_was_held_for_exact(tmp_path: Path) -> None:
    before = Sizes(nights=22, workloads=("mlp",))
    home = AlertHome(tmp_path).fill(before, stop=20)
    home.fill(Sizes(nights=22, workloads=("mlp",), more={"mlp": {20: 1}}, differ=frozenset({"mlp"})), first=20)
    home.run(21)
    assert changes(home) == []


@pytest.mark.parametrize(
    ("artifacts", "fingerprints", "blame"),
    [
        (("a", "a"), ("x", "y"), "experiment"),
        (("a", "a"), ("x", "x"), "machine"),
        (("a", "b"), ("x", "y"), "unknown"),
        (("a", "b"), ("x", "x"), "compiler"),
    ],
)
def test_what_else_changed_is_said_rather_than_that_it_was_tvm(
    tmp_path: Path, artifacts: tuple[str, str], fingerprints: tuple[str, str], blame: str
) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=4, workloads=("mlp",), more={"mlp": {3: 1}}))
    for night, key, fingerprint in zip((2, 3), artifacts, fingerprints, strict=True):
        path = home.home.data_file("relax_opt", stamp_of(night))
        value = json.loads(path.read_text())
        value["night"] = {"fingerprint": fingerprint, "artifact": {"key": key, "facts": {}}}
        path.write_text(json.dumps(value))
    home.home.store_file.unlink()
    home.ingest()
    report = home.run(3)
    (incident,) = changes(home)
    assert incident["blame"] == blame
    assert bool(incident["notes"]) == (fingerprints == ("x", "y"))
    assert ("Not TVM" in report["title"]) == (artifacts == ("a", "a"))


def test_a_newer_llvm_and_tvm_ffi_in_a_wheel_are_named_beside_an_exact_change(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=4, workloads=("mlp",), more={"mlp": {3: 1}}))
    for night, llvm, ffi in ((2, "18", "0.1.13"), (3, "20", "0.1.14")):
        path = home.home.data_file("relax_opt", stamp_of(night))
        value = json.loads(path.read_text())
        facts = {"llvm_version": llvm, "tvm_ffi": ffi}
        value["night"] = {"fingerprint": "x", "artifact": {"key": f"nightly-{llvm}", "facts": facts}}
        path.write_text(json.dumps(value))
    home.home.store_file.unlink()
    home.ingest()
    told = "How sure: exact, 3 processes agree. At that night also: tvm-ffi: 0.1.13 → 0.1.14; LLVM: 18 → 20. Incident"
    assert told in home.run(3)["value"]


def test_explain_shows_the_last_values_and_how_many_processes_agreed(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=4, workloads=("mlp",), more={"mlp": {3: 1}}))
    home.run(3)
    done = home.command("incidents", "explain", changes(home)[0]["id"])
    assert done.returncode == 0, done.stderr
    for part in (NAME, "2026-05-03: 35,794 (3 processes agree)", "2026-05-04: 35,795 (3", "the same decision"):
        assert part in done.stdout


def test_a_slower_kernel_is_told_beside_the_size_that_changed_with_it(tmp_path: Path) -> None:
    truth = Sizes(nights=60, more={"mlp": {50: 1}})
    truth.step("mlp", 3, "run", 50, 1.06)
    home = AlertHome(tmp_path).fill(truth)
    home.run(59)
    exact, slower = sorted(changes(home), key=lambda one: one["open"])
    assert {moved["metric"] for moved in exact["moved"]} == {"code_size"}
    assert [moved["metric"] for moved in slower["moved"]] == ["run_time"]
    assert slower["open"] is True


def foreign(home: AlertHome, sizes: list[Any]) -> None:
    metrics = {"size": {"unit": "bytes", "direction": "lower", "kind": "exact"}}
    for night, size in enumerate(sizes):
        home.write_data("foreign", night, {"tvm_hash": f"f{night}", "metrics": metrics, "size": size})
    home.ingest()


def test_a_number_that_is_declared_exact_is_told_from_its_second_night_on(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    foreign(home, [20480, 20481])
    report = home.run(1)
    assert "foreign $.size +1 byte" in report["title"]
    assert "20,481 bytes" in report["value"]


def test_repetitions_that_differ_within_a_night_refute_a_declaration(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    foreign(home, [[20480, 20480], [20481, 20480], [20480, 20482]])
    home.run(2)
    assert changes(home) == []


def test_the_first_page_shows_an_exact_number_as_changed_by_a_byte_on_that_night_only(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=5, workloads=("mlp",), more={"mlp": {3: 1}}))
    site = Site(home.home)
    for night in range(3):
        site.night(job("relax_opt", stamp_of(night)), at=stamp_of(night), state=COMPLETE)
    home.run(3)
    site.night(job("relax_opt", stamp_of(3)), at=stamp_of(3))
    page = site.publish_here(stamp_of(3))
    assert "→ 35,795 bytes" in page.words
    assert "✖" not in page.first("h1")
    assert "by up to +1 byte" in page.words
    home.run(4)
    site.night(job("relax_opt", stamp_of(4)), at=stamp_of(4))
    after = site.publish_here(stamp_of(4))
    assert "35,795" not in after.words


TOP1: Mapping[str, Any] = {"direction": "higher", "kind": "accuracy"}
KERNELS: Mapping[str, Any] = {"direction": "lower", "kind": "exact"}


def levels(home: AlertHome, declared: Mapping[str, Any], *nights: Mapping[str, float], tvm: str = "f") -> list[Level]:
    """The level of each night on which a foreign experiment measured these numbers, all declared as one says."""
    found = []
    for night, numbers in enumerate(nights):
        version = f"{tvm}{night}" if tvm == "f" else tvm
        metrics = dict.fromkeys(numbers, declared) if "kind" in declared else declared
        home.write_data("foreign", night, {"tvm_hash": version, "metrics": metrics, **numbers})
        home.ingest()
        home.run(night)
        verdict = read_verdict(home.home, stamp_of(night))
        assert verdict is not None
        found.append(verdict.level)
    return found


def test_accuracy_that_is_lost_is_a_regression_until_it_is_back(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    nights = [{"top1": value} for value in (1.0, 1.0, 0.997, 0.997, 1.0, 1.0)]
    found = levels(home, TOP1, *nights)[1:]
    assert found == [Level.STEADY, Level.REGRESSION, Level.REGRESSION, Level.IMPROVED, Level.STEADY]
    lost, back = changes(home)
    assert (lost["state"], lost["end"], lost["moved"][0]["recovered"]) == ("fixed", stamp_of(4), stamp_of(4))
    assert (back["moved"][0]["worse"], back["found"]) == (False, stamp_of(4))


def test_the_loss_of_accuracy_is_told_with_its_size_and_as_worse(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    levels(home, TOP1, *({"top1": value} for value in (1.0, 1.0, 0.997)))
    report = home.run(2)
    assert "foreign $.top1 −0.003 since f1..f2" in report["title"]
    (incident,) = changes(home)
    (moved,) = incident["moved"]
    assert (moved["before"], moved["after"], moved["worse"]) == (1.0, 0.997, True)
    assert "(worse)" in report["value"]


@pytest.mark.parametrize(("loss", "level"), [(0.01, Level.CHANGED), (0.011, Level.REGRESSION)])
def test_a_loss_is_a_regression_only_beyond_the_tolerance_of_its_number(
    tmp_path: Path, loss: float, level: Level
) -> None:
    declared = {**TOP1, "tolerance": 0.01}
    assert levels(AlertHome(tmp_path), declared, {"top1": 0.9}, {"top1": 0.9 - loss})[1] is level


@pytest.mark.parametrize(("count", "level"), [(211, Level.REGRESSION), (209, Level.CHANGED)])
def test_a_count_with_a_better_way_is_a_regression_where_it_is_worse_and_else_changed(
    tmp_path: Path, count: int, level: Level
) -> None:
    assert levels(AlertHome(tmp_path), KERNELS, {"kernels": 210}, {"kernels": count})[1] is level


def test_a_count_that_changed_is_not_hidden_by_an_accuracy_that_rose(tmp_path: Path) -> None:
    declared = {"top1": TOP1, "size": {"kind": "exact"}}
    before, after = {"top1": 0.9, "size": 20480}, {"top1": 0.91, "size": 20481}
    assert levels(AlertHome(tmp_path), declared, before, after)[1] is Level.CHANGED


def test_accuracy_that_is_lost_on_the_same_tvm_changed_and_is_not_held_against_it(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    assert levels(home, TOP1, {"top1": 1.0}, {"top1": 0.9}, tvm="0.27.0")[1] is Level.CHANGED
    assert "Not TVM" in home.run(1)["title"]


def test_the_largest_error_of_an_answer_is_a_number_that_changes_and_is_no_regression(tmp_path: Path) -> None:
    home = AlertHome(tmp_path).fill(Sizes(nights=3, workloads=("mlp",)))
    for night, error in enumerate((2e-7, 2e-7, 3e-6)):
        path = home.home.data_file("relax_opt", stamp_of(night))
        value = json.loads(path.read_text())
        info = value["records"][0]["additional_info"]
        info |= {"max_error": error, "alike": {**info["alike"], "max_error": 3}}
        path.write_text(json.dumps(value))
    home.home.store_file.unlink()
    home.ingest()
    assert "mlp largest error +2.8e-06" in home.run(2)["title"]
    assert [moved["worse"] for one in changes(home) for moved in one["moved"]] == [None]


@dataclass
class Kernels(Truth):
    """A truth of one series of code with two functions; `registers`, `code`: of them, by night."""

    registers: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    code: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def record(self, workload: str, level: int, night: int, noise: np.ndarray[Any, Any]) -> dict[str, Any]:
        record = super().record(workload, level, night, noise)
        registers = {"conv_kernel": 40, "dense_kernel": 30, **self.registers.get(night, {})}
        info = record["additional_info"]
        info["functions"] = {
            name: {"hash": self.code.get(night, {}).get(name, "a"), "registers": count, "source_size": 500}
            for name, count in registers.items()
        }
        info |= {"registers": sum(registers.values()), "source_size": 500 * len(registers)}
        info["alike"] = {"registers": 2, "source_size": 2}
        return record


def functions(incident: Mapping[str, Any]) -> set[tuple[str, float, float]]:
    """The functions that moved, from what to what."""
    moved = (function for series in incident["moved"] for function in series["functions"])
    return {(function["name"], function["before"], function["after"]) for function in moved}


def test_one_register_more_is_told_the_same_night_with_the_functions_name(tmp_path: Path) -> None:
    truth = Kernels(nights=3, workloads=("mlp",), registers={2: {"conv_kernel": 41}})
    home = AlertHome(tmp_path).fill(truth)
    assert "register" not in home.run(1)["value"]
    report = home.run(2)
    assert "+1 register" in report["title"]
    (incident,) = changes(home)
    assert {(moved["before"], moved["after"]) for moved in incident["moved"]} == {(70, 71)}
    assert functions(incident) == {("conv_kernel", 40, 41)}


def test_functions_that_moved_against_each_other_are_told_though_their_sum_stayed(tmp_path: Path) -> None:
    moved = {2: {"conv_kernel": 41, "dense_kernel": 29}}
    home = AlertHome(tmp_path).fill(Kernels(nights=3, workloads=("mlp",), registers=moved))
    assert "dense_kernel" in home.run(2)["value"]
    assert functions(*changes(home)) == {("conv_kernel", 40, 41), ("dense_kernel", 30, 29)}


def test_other_code_of_the_same_size_is_told_and_what_comes_and_goes(tmp_path: Path) -> None:
    truth = Kernels(nights=4, workloads=("mlp",), code={2: {"conv_kernel": "b"}, 3: {"conv_kernel": "b"}})
    home = AlertHome(tmp_path).fill(truth)
    assert "other code" in home.run(2)["value"]
    assert functions(*changes(home)) == {("conv_kernel", 500, 500)}
    assert "NOT the same decision" not in home.command("incidents", "explain", changes(home)[0]["id"]).stdout
    assert "other code" not in home.run(3)["value"]


def sizes_of(home: AlertHome) -> list[tuple[str, float, float]]:
    """Of each change that was told, in order: the night, and the first number before and after."""
    return [(one["begin"], one["moved"][0]["before"], one["moved"][0]["after"]) for one in changes(home)]


def measure(home: AlertHome, night: int, version: str, size: int, **more: Any) -> dict[str, str]:
    """The report of a night of a foreign experiment that declares its size exact, with a wheel of TVM."""
    metrics = {"size": {"unit": "bytes", "direction": "lower", "kind": "exact"}}
    value = {"tvm_hash": version, "metrics": metrics, "size": size, "night": {"fingerprint": "f", **more}}
    home.write_data("foreign", night, value)
    home.ingest()
    return home.run(night)


def measure_all(home: AlertHome, *nights: tuple[str, int]) -> list[str]:
    """The titles of nights that measured these wheels and sizes."""
    return [measure(home, night, *measured)["title"] for night, measured in enumerate(nights)]


def test_an_older_wheel_that_is_measured_again_has_its_own_size_and_changes_nothing(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    wheels = {"0.27.dev301": 100, "0.27.dev303": 110, "0.27.dev304": 120}
    order = ("0.27.dev301", "0.27.dev303", "0.27.dev301", "0.27.dev303", "0.27.dev304", "0.27.dev303", "0.27.dev304")
    titles = measure_all(home, *((name, wheels[name]) for name in order))
    assert sizes_of(home) == [(stamp_of(1), 100, 110), (stamp_of(4), 110, 120)]
    assert [at for at, title in enumerate(titles) if "byte" in title and "open" not in title] == [1, 4]


def test_a_wheel_between_two_that_were_measured_brings_nothing_new(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    measure_all(home, ("0.27.dev301", 100), ("0.27.dev303", 110), ("0.27.dev302", 105), ("0.27.dev304", 110))
    assert sizes_of(home) == [(stamp_of(1), 100, 110)]


def test_builds_of_commits_are_compared_in_the_order_of_their_commits(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    for night, (commit, day, size) in enumerate((("a", 1, 100), ("c", 3, 110), ("b", 2, 100), ("d", 4, 110))):
        artifact = {"key": f"k{commit}", "facts": {"committed_utc": f"2026-04-0{day}T00:00:00+00:00"}}
        home.taken[night] = (artifact,)
        measure(home, night, commit * 40, size, artifact=artifact)
    assert sizes_of(home) == [(stamp_of(1), 100, 110)]


def test_an_older_wheel_does_not_end_a_regression_and_a_newer_one_does(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    for night, (version, kernels) in enumerate((("0.27.dev1", 210), ("0.27.dev3", 211), ("0.27.dev1", 210))):
        home.write_data("foreign", night, {"tvm_hash": version, "metrics": {"kernels": KERNELS}, "kernels": kernels})
        home.ingest()
        home.run(night)
    assert [one["state"] for one in changes(home)] == ["confirmed"]
    home.write_data("foreign", 3, {"tvm_hash": "0.27.dev4", "metrics": {"kernels": KERNELS}, "kernels": 210})
    home.ingest()
    home.run(3)
    assert [one["state"] for one in changes(home) if one["moved"][0]["worse"]] == ["fixed"]


def test_two_values_of_one_tvm_are_told_once_as_not_exact_and_a_third_value_of_a_later_tvm_still_is(
    tmp_path: Path,
) -> None:
    home = AlertHome(tmp_path)
    same = [("0.27.0", size) for size in (100, 101, 100, 101, 101, 100)]
    titles = measure_all(home, *same, ("0.27.1", 101), ("0.27.2", 100))
    assert [at for at, title in enumerate(titles) if "byte" in title] == [1]
    assert sizes_of(home) == [(stamp_of(1), 100, 101)]
    assert "two values of one TVM" in home.command("incidents", "show", changes(home)[0]["id"]).stdout
    (row,) = [each for each in home.page()["series"] if each["unit"] == "bytes"]
    assert "two values of one TVM" in row["reason"]
    assert "+20 bytes" in measure(home, 8, "0.27.3", 120)["title"]


def test_a_number_that_takes_turns_between_builds_is_told_four_times_and_no_more(tmp_path: Path) -> None:
    home = AlertHome(tmp_path)
    measure_all(home, *((f"0.27.dev{night}", 100 + night % 2) for night in range(20)))
    assert len(changes(home)) == 4


def test_a_number_of_which_processes_once_differed_is_exact_again_after_fifteen_nights(tmp_path: Path) -> None:
    before = Sizes(nights=30, workloads=("mlp",), more={"mlp": {26: 1}})
    home = AlertHome(tmp_path).fill(before, stop=5)
    home.fill(replace(before, differ=frozenset({"mlp"})), first=5, stop=6).fill(before, first=6)
    home.run(29)
    assert sizes_of(home) == [(stamp_of(26), SIZE, SIZE + 1)]
