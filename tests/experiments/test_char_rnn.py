"""char_rnn: every way gives numpy's names, a wrong letter fails, the words say how many letters a second each gives."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, STAMP, Tried, modules
from tvmdash import config_util, records
from tvmdash.errors import DashboardError
from tvmdash.experiment.info import History
from tvmdash.series.store import Series

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("char_rnn")
TVM_WAYS = [f"tvm {program} {mode}" for program in ("loop", "recursion") for mode in ("bytecode", "compiled")]


def task(names: int = 3, longest: int = 12, seed: int = 3) -> Any:
    return OWN.generator.task(OWN.generator.Size(16, names, longest), seed)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    tried = Tried(tmp_path_factory.mktemp("char_rnn"), "char_rnn", {"number": 1})
    return tried, tried.night()


def way_of(record: records.Record) -> str:
    return " ".join([record.engine, *(str(value) for value in (record.build_config or {}).values())])


def test_every_way_of_tvm_gives_the_names_of_numpy(night: tuple[Tried, records.NightData]) -> None:
    found = {way_of(record): record for record in night[1].records}
    assert set(found) == set(TVM_WAYS)
    (names,) = {tuple(record.additional_info["names"]) for record in found.values()}
    assert len(names) == 2
    (letters,) = {record.workload_args["letters"] for record in found.values()}
    assert letters == sum(len(name) - 1 for name in names)
    hashes = {way: record.additional_info["module_hash"] for way, record in found.items()}
    assert hashes["tvm loop bytecode"] == hashes["tvm recursion bytecode"] != hashes["tvm loop compiled"]


def test_without_torch_its_point_fails_and_the_words_tell_the_others(night: tuple[Tried, records.NightData]) -> None:
    (failure,) = night[1].failures
    assert "never installed" in failure.error
    text = night[0].told()
    assert "- names: fastest tvm, " in text
    rates = re.search("^- letters per second: (.*)$", text, re.MULTILINE)
    assert rates
    assert rates[1].count(";") == len(TVM_WAYS) - 1
    assert "tvm, recursion, compiled " in rates[1]
    assert (night[0].root / "graph" / "letters_per_second.svg").exists()


@pytest.mark.parametrize("program", ["loop", "recursion"])
def test_a_name_ends_where_its_end_is_likeliest(program: str) -> None:
    asked = task()
    bias = asked.weights["letter_b"].copy()
    bias[OWN.generator.END] = 1e3
    ending = OWN.generator.GeneratorTask(asked.size, {**asked.weights, "letter_b": bias}, asked.starts, ())
    point = SimpleNamespace(target='{"kind": "llvm"}', values={"program": program, "mode": "bytecode"})
    first = [OWN.generator.spelled([start.letter]) for start in asked.starts]
    assert OWN.char_rnn.make(ending, point, 1).names() == first
    assert [OWN.generator._name(ending.weights, start, asked.size) for start in asked.starts] == first


def test_another_letter_is_a_wrong_answer() -> None:
    names = task().names
    assert OWN.generator.checked(names, names) == {"names": list(names), "validation_accuracy": 1.0}
    wrong = (names[0], names[1][:-1] + "?", names[2])
    with pytest.raises(DashboardError, match=r"wrong answer: '.*\?' is not"):
        OWN.generator.checked(wrong, names)
    with pytest.raises(DashboardError, match="2 names"):
        OWN.generator.checked(names[:2], names)


def test_weights_that_leave_a_letter_in_doubt_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sure = task(seed=5)
    start, even = sure.starts[0], {name: np.zeros_like(array) for name, array in sure.weights.items()}
    assert OWN.generator._name(even, start, sure.size) is None
    monkeypatch.setattr(OWN.generator, "_weights", lambda _hidden, _rng: even)
    with pytest.raises(DashboardError, match=r"\$\.data_seed 6: none of 50"):
        task(seed=6)


def test_letters_per_second_are_letters_by_the_run_time() -> None:
    labels = {"workload": "char_rnn.names", "engine": "torch", "workload_args": {"letters": 30}}
    series = Series("s", "e", "run_time", "ms", True, labels, (STAMP,), (3.0,), (2.0,), (6.0,), (0.1,))
    (bar,) = OWN.char_rnn.letters_plot(History("e", (), (series,), (STAMP,), ())).bars
    assert (bar.label, bar.value, bar.low, bar.high) == ("torch", 10_000, 5_000, 15_000)


def test_the_configs_ways_are_those_that_exist() -> None:
    fields = config_util.read_fields(EXPERIMENTS / "char_rnn" / "fields.json")
    assert [*TVM_WAYS, "torch loop"] == list(fields["ways"].of.choices)


@pytest.mark.slow
def test_torch_gives_the_same_names(tmp_path: Path) -> None:
    tried = Tried(tmp_path, "char_rnn", {"number": 1, "ways": ["torch loop", "tvm loop bytecode"]})
    tried.set_up()
    data = tried.measured()
    assert not data.failures
    names = {record.engine: record.additional_info["names"] for record in data.records}
    assert names["torch"] == names["tvm"]
    assert "TVM at its best against torch: " in tried.told()
