"""A point is compiled by a process that measures nothing; those that measure it load what that one left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.tvmdash.experiment.test_paired import SOURCE, Toy, Work, paired_of
from tests.tvmdash.experiment.test_unchanged import infos
from tvmdash.experiment.paired.pairs import is_of_reference
from tvmdash.measure import prebuilt
from tvmdash.measure.capture import Trial, read_trials

AHEAD = """
from tvmdash.measure import prebuilt

def ahead(compiler, name):
    kept = prebuilt.current()
    if name in compiler.WORK.get("cannot be linked", ()):
        kept = None
    library = kept.next_stem() if kept else None
    if library is not None and not kept.builds:
        return int(library.read_text())
    with open(compiler.__file__ + ".compiled", "a") as file:
        print(name, file=file)
    work = compiler.prepare(name)
    if library is not None:
        library.write_text(str(work))
    return work

class Toy(Experiment):
    compiles_ahead = True
"""


class AheadToy(Toy):
    """A toy that compiles ahead."""

    def __init__(self, root: Path, **config: object) -> None:
        super().__init__(root, **{"pairs": 4, "max_pairs": 4, "pair_percent": 0, **config})
        source = SOURCE.replace("class Toy(Experiment):\n", AHEAD)
        (self.code / "toy.py").write_text(source.replace("compiler.prepare(point.name)", "ahead(compiler, point.name)"))

    def compiled(self, version: str) -> Counter[str]:
        """How often each point was compiled by one of the compilers."""
        file = self.root / f"compiler_{version}" / "compiler.py.compiled"
        return Counter(file.read_text().split()) if file.exists() else Counter()

    def trials(self) -> list[Trial]:
        """In the order they were taken."""
        return sorted(read_trials(self.raw), key=lambda trial: trial.started_ns)


def test_four_pairs_are_measured_of_two_compilations_a_side(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path, names=["net", "other"], group="all")
    assert toy.run({"net": 40000}, {"net": 20000})["success"]
    assert toy.compiled("2.0") == toy.compiled("1.0") == {"net": 2, "other": 2}
    ratio = paired_of(toy.analyze())["toy.net"]["ratios"]["run_time"]
    assert len(ratio["log_ratios"]) == 4
    assert 1.5 < ratio["ratio"] < 2.7


def test_a_compilation_counts_in_the_pair_after_it_and_in_no_other(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path)
    toy.run({}, {})
    known = Counter(
        (is_of_reference(trial), trial.process["pair"]) for trial in toy.trials() if "compile_time" in trial.facts
    )
    assert known == {(side, pair): 1 for side in (False, True) for pair in (0, 3)}


def test_who_asks_for_compile_times_has_a_compilation_in_each_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TVMDASH_METRICS", "compile_time run_time")
    toy = AheadToy(tmp_path)
    toy.run({}, {})
    assert toy.compiled("2.0") == toy.compiled("1.0") == {"net": 4}
    ratios = paired_of(toy.analyze())["toy.net"]["ratios"]
    assert {name: len(ratio["log_ratios"]) for name, ratio in ratios.items()} == {"run_time": 4, "compile_time": 4}


def test_the_layout_that_libraries_are_linked_in_stands_beside_the_ratio_of_their_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = AheadToy(tmp_path)
    toy.run({}, {})
    ratios = paired_of(toy.analyze())["toy.net"]["ratios"]
    assert not any("layout" in ratio for ratio in ratios.values())
    monkeypatch.setenv("TVMDASH_LAYOUT", "7")
    toy.run({}, {})
    ratios = paired_of(toy.analyze())["toy.net"]["ratios"]
    assert {name: ratio.get("layout") for name, ratio in ratios.items()} == {"run_time": 7, "compile_time": None}


def test_what_one_side_compiles_where_it_measures_is_in_no_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TVMDASH_LAYOUT", "7")
    toy = AheadToy(tmp_path)
    toy.run({}, {"cannot be linked": ["net"]})
    assert "layout" not in paired_of(toy.analyze())["toy.net"]["ratios"]["run_time"]


def test_who_is_given_no_minutes_measures_each_point_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVMDASH_MINUTES", "0.001")
    toy = AheadToy(tmp_path)
    assert toy.run({}, {})["success"]
    assert len(paired_of(toy.analyze())["toy.net"]["ratios"]["run_time"]["log_ratios"]) == 1


def test_both_sides_have_as_many_calls_in_a_sample_from_the_first_pair_on(tmp_path: Path) -> None:
    """A sample has one more call, which its CPU time holds and its number does not."""
    toy = AheadToy(tmp_path, number=0, min_repeat_ms=2, pairs=2, max_pairs=2)
    toy.run({"net": 40000}, {"net": 10000})
    assert len({sample.number for trial in toy.trials() for sample in trial.samples}) == 1


def test_what_was_compiled_is_gone_when_the_run_has_ended(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path, names=["bad", "net"])
    toy.run({"bad": "dies"}, {})
    assert not (toy.raw / prebuilt.FOLDER).exists()


@pytest.mark.parametrize("broken", ["2.0", "1.0"])
def test_what_one_side_cannot_link_both_compile_where_they_measure_and_the_status_says_so(
    tmp_path: Path, broken: str
) -> None:
    toy = AheadToy(tmp_path, names=["bad", "good"], group="all")
    works: dict[str, Work] = {"2.0": {}, "1.0": {}}
    works[broken] = {"cannot be linked": ["bad"]}
    status = toy.run(works["2.0"], works["1.0"])
    assert "1 compiled by each" in status["message"]
    for version in works:
        assert toy.compiled(version) == {"bad": 1 + 4, "good": 2}
    assert {len(info["paired"]["ratios"]["run_time"]["log_ratios"]) for info in infos(toy).values()} == {4}


@pytest.mark.parametrize("fault", ["raises", "dies"])
def test_a_point_that_cannot_be_compiled_fails_alone_with_its_own_words(tmp_path: Path, fault: str) -> None:
    toy = AheadToy(tmp_path, names=["bad", "good"])
    assert toy.run({"bad": fault}, {})["success"]
    (failure,) = toy.analyze().failures
    assert failure.workload == "toy.bad"
    assert {"raises": "cannot do that", "dies": "killed"}[fault] in failure.error
    assert toy.compiled("2.0")["good"] == 2


def test_groups_of_one_environment_are_compiled_in_one_process_of_each_tvm(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path, names=["net", "other", "third"])
    assert toy.run({}, {})["success"]
    assert len(list(toy.raw.glob("compile_*_tonight"))) == 2, "the first compilation, and that for its time"
    assert len(list(toy.raw.glob("compile_*_reference"))) == 2
    assert toy.compiled("2.0") == toy.compiled("1.0") == {"net": 2, "other": 2, "third": 2}


def test_a_process_that_dies_compiling_costs_its_own_group_alone(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path, names=["bad", "net", "other", "third"])
    assert toy.run({"bad": "dies"}, {})["success"]
    assert toy.compiled("2.0") == {"bad": 2, "net": 2, "other": 2, "third": 2}, "bad: ahead, and where it is measured"
    assert len(list(toy.raw.glob("compile_*_tonight"))) <= 3, "only one more of them was needed"


def test_a_night_without_a_reference_compiles_ahead_as_well(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path, processes=4, max_processes=4, interval_percent=0)
    assert toy.run({}, None)["message"].endswith(" in 4 processes")
    assert toy.compiled("2.0") == {"net": 2}
    assert ["compile_time" in trial.facts for trial in toy.trials()] == [True, False, False, True]


def test_points_of_tonights_tvm_alone_are_compiled_where_they_are_measured(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path, names=["net", "tuned"], group="all")
    toy.run({}, {})
    assert toy.compiled("2.0")["net"] == 2
    assert toy.compiled("2.0")["tuned"] == 1


def test_an_unchanged_point_is_compiled_and_measured_once(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path)
    toy.run({}, {})
    content = infos(toy)["toy.net"]["content"]
    assert content["pairs"] == 4, "the processes that load ran one and the same"
    toy.run({}, {}, {content["hash"]: 4})
    assert infos(toy)["toy.net"]["ended_by"] == "unchanged"
    assert toy.compiled("2.0") == {"net": 2 + 1}


def test_a_run_that_is_killed_gives_what_it_measured(tmp_path: Path) -> None:
    toy = AheadToy(tmp_path, names=["net", "next"], group="all", pairs=2, max_pairs=2)
    hangs = tmp_path / "compiler_2.0" / "compiler.py.hangs"
    toy.run_until_killed({"next": "hangs in the second process"}, {}, hangs)
    assert (toy.raw / prebuilt.FOLDER).exists(), "else it was not killed while it compiled"
    ratios = [paired["ratios"]["run_time"]["log_ratios"] for paired in paired_of(toy.analyze()).values()]
    assert [len(ratio) for ratio in ratios] == [1, 1]
