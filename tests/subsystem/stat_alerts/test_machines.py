"""Homes in which several machines measure the same, with planted truth: on which of them it is said that TVM moved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.subsystem.stat_alerts.alert_homes import AlertHome, stamp_of
from tests.subsystem.stat_alerts.test_night_verdict import judged
from tests.subsystem.stat_alerts.test_paired_nights import OLD, WORKLOADS, Nights
from tvmdash.series import naming
from tvmdash.verdict import Level

COUNT, STEP = 12, 11


def plant(root: Path, machines: Mapping[str, Nights]) -> AlertHome:
    """A home that measures on these machines by name; that of the empty name is its own."""
    home = AlertHome(root)
    for name, nights in machines.items():
        rng = np.random.default_rng(nights.seed)
        experiment = f"relax_opt~{name}" if name else "relax_opt"
        for night in range(nights.count):
            records = [nights._record(workload, level, night, rng) for workload in WORKLOADS for level in (0, 3)]
            for record in records:
                record.update(env_name=name or "home", hw_model=f"cpu of {name or 'home'}")
            identity = {"artifact": {"key": f"build{night}"}, "fingerprint": "f"}
            home.write_data(experiment, night, {
                "schema_version": 1, "timestamp": stamp_of(night), "tvm_hash": f"build{night}", "records": records,
                "night": {**identity, "reference": {"key": OLD, "version": "0.26.0"}},
            })  # fmt: skip
    home.ingest()
    return home


def nights(seed: int, *, scatter: float = 0.003) -> Nights:
    return Nights(COUNT, seed=seed, scatter=scatter)


def slower(seed: int, workload: str = "bert") -> Nights:
    return nights(seed).slower(workload, 3, 1.08, STEP)


def test_a_step_on_every_machine_is_told_once_and_of_all(tmp_path: Path) -> None:
    home = plant(tmp_path, {"": slower(1), "box": slower(2), "epyc": slower(3)})
    verdict = judged(home, STEP)
    assert verdict.level is Level.REGRESSION
    (over,) = verdict.machines
    assert (over.moved, over.calm, over.unknown) == (("box", "epyc", "home"), (), ())
    assert over.name == "relax_opt bert run time (opt_level 3)"
    assert "all 3 machines" in verdict.lead
    assert over.effect is None


def test_a_step_on_one_machine_is_told_of_that_one_alone(tmp_path: Path) -> None:
    home = plant(tmp_path, {"": nights(1), "box": slower(2), "epyc": nights(3)})
    verdict = judged(home, STEP)
    (over,) = verdict.machines
    assert (over.moved, over.calm, over.unknown) == (("box",), ("epyc", "home"), ())
    assert "relax_opt~box bert" in verdict.lead
    assert "box alone" in verdict.lead


def test_a_machine_that_could_not_have_seen_it_is_named(tmp_path: Path) -> None:
    home = plant(tmp_path, {"": slower(1), "box": slower(2), "old": nights(3, scatter=0.4)})
    verdict = judged(home, STEP)
    (over,) = verdict.machines
    assert (over.moved, over.calm, over.unknown) == (("box", "home"), (), ("old",))
    assert "unknown for old" in verdict.lead


def test_from_five_machines_on_there_is_one_number(tmp_path: Path) -> None:
    machines = {name: slower(seed) for seed, name in enumerate(["", "a", "b", "c", "d"])}
    (over,) = judged(plant(tmp_path, machines), STEP).machines
    assert len(over.moved) == 5
    assert over.effect == pytest.approx(0.08, abs=0.01)
    assert over.low is not None
    assert over.high is not None
    assert over.low < 0.08 < over.high
    assert over.high - over.low < 0.03


def test_where_one_machine_measures_nothing_is_said_of_machines(tmp_path: Path) -> None:
    verdict = judged(plant(tmp_path, {"": slower(1)}), STEP)
    assert verdict.level is Level.REGRESSION
    assert verdict.machines == ()
    assert "machine" not in verdict.headline


def test_what_several_machines_measure_of_other_points_does_not_count(tmp_path: Path) -> None:
    home = plant(tmp_path, {"": slower(1), "box": slower(2, "gru")})
    overs = {over.moved: over for over in judged(home, STEP).machines}
    assert set(overs) == {("box", "home")}
    (over,) = overs.values()
    assert over.name == ""


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("cnn", "cnn"), ("cnn~desk", "cnn"), ("cnn~desk@release", "cnn@release"), ("cnn~a.b run time", "cnn run time"),
        ("cnn~desk@release mlp (a ~b)", "cnn@release mlp (a ~b)"), ("cnn mlp (a~b)", "cnn mlp (a~b)"),
    ],
)  # fmt: skip
def test_a_name_loses_its_host_and_nothing_else(name: str, bare: str) -> None:
    assert naming.strip_host(name) == bare


def test_the_same_point_has_one_key_on_machines_of_two_kinds() -> None:
    x86 = {"env_name": "a", "hw_model": "x", "target": '{"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 1}'}
    arm = {"env_name": "b", "hw_model": "y", "target": '{"kind": "llvm", "mcpu": "neoverse-n1", "num-cores": 4}'}
    cuda = {**arm, "target": '{"kind": "cuda"}'}
    keys = [naming.point_of(name, "run_time", labels) for name, labels in (("c", x86), ("c~b", arm), ("c~b", cuda))]
    assert keys[0] == keys[1] != keys[2]
    assert naming.point_of("c", "compile_time", x86) != keys[0]


def count_told(home: AlertHome) -> list[tuple[int, int, int]]:
    said = judged(home, STEP).sensitivity
    assert said is not None
    return [(step.series, step.told, step.again) for step in said.tonight]


def test_steps_put_into_copies_are_told_on_a_machine_whatever_another_one_does(tmp_path: Path) -> None:
    machines = {"": nights(1, scatter=0.012), "box": nights(2, scatter=0.06)}
    together = count_told(plant(tmp_path / "both", machines))
    alone = [count_told(plant(tmp_path / (name or "home"), {name: of_it})) for name, of_it in machines.items()]
    assert together == [tuple(map(sum, zip(*of_step, strict=True))) for of_step in zip(*alone, strict=True)]
    assert 0 < together[1][1] < together[1][0], "else this compares nothing"
