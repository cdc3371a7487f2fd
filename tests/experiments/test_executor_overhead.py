"""executor_overhead: its answers are right, its counts are what the virtual machine does, its words follow."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.experiments.trying import EXPERIMENTS, STAMP, Tried, modules
from tvmdash import config_util, records, relax_util
from tvmdash.errors import DashboardError
from tvmdash.experiment.info import History
from tvmdash.networks import accuracy
from tvmdash.relax_util import CompileOptions
from tvmdash.series.store import Series

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("executor_overhead")
SIZES = OWN.programs.Sizes(steps=7, arguments=5, fibonacci=6)
PROGRAMS = ["recursion", "fibonacci", "calls", "arguments", "operators", "mlp"]
OWN_FUNCTIONS = {"main", "step"}


def compiled(name: str, mode: str = "bytecode"):
    program = OWN.programs.program(name, OWN.programs.arguments(name, SIZES), 3)
    return program, relax_util.compile_module(program.build(), CompileOptions("llvm", program.pipeline, exec_mode=mode))


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    config = {"programs": ["calls", "operators"], "steps": 5}
    tried = Tried(tmp_path_factory.mktemp("executors"), "executor_overhead", config)
    return tried, tried.measured()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_numpys_answer_on_each_executor_and_counts_as_the_machine_does(name: str) -> None:
    import tvm
    from tvm import relax

    program, made = compiled(name)
    called: Counter[str] = Counter()

    def instrument(_function: object, symbol: str, before: object, *_rest: object) -> int:
        called[symbol] += bool(before)
        return 0

    machine = relax.VirtualMachine(made.executable, tvm.cpu())
    machine.set_instrument(instrument)
    answer = machine["main"](*map(tvm.runtime.tensor, program.inputs)).numpy()
    assert OWN.executor_overhead._checked(answer, program.expected)["max_error"] <= 1e-5
    own = sum(called[symbol] for symbol in OWN_FUNCTIONS)
    kernels = sum(count for symbol, count in called.items() if not symbol.startswith("vm.")) - own
    size = OWN.programs.arguments(name, SIZES)
    assert own == size.get("calls", 0)
    assert kernels == size.get("operators", kernels)
    other, again = compiled(name, "compiled")
    there = OWN.executor_overhead.executor("compiled", again, other.inputs, threads=1)
    np.testing.assert_allclose(there.run(), answer, rtol=1e-5)


def test_one_call_too_few_is_a_wrong_answer() -> None:
    rng = lambda: np.random.default_rng(3)  # noqa: E731
    longest, shorter = (OWN.programs.MAKERS["recursion"]({"calls": calls}, rng()).expected for calls in (2000, 1999))
    with pytest.raises(DashboardError, match="wrong answer"):
        accuracy.check_answer(shorter, longest)
    with pytest.raises(DashboardError, match="wrong answer"):
        OWN.executor_overhead._checked(np.array(145), np.array(144))


def test_without_a_c_compiler_a_library_fails_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    program, made = compiled("operators")
    monkeypatch.setenv("PATH", "/nowhere")
    for name in ("CXX", "CC"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DashboardError, match=r"no C compiler.*Install gcc"):
        OWN.executor_overhead.executor("library", made, program.inputs, threads=1)
    np.testing.assert_allclose(
        OWN.executor_overhead.executor("bytecode", made, program.inputs, threads=1).run(), program.expected, rtol=1e-5
    )


def test_a_night_measures_every_program_on_every_executor(night: tuple[Tried, records.NightData]) -> None:
    data = night[1]
    assert not data.failures
    measured = {(record.workload, record.build_config["executor"]): record for record in data.records}
    executors = ("bytecode", "compiled", "library")
    assert set(measured) == {(f"executor.{name}", how) for name in ("calls", "operators") for how in executors}
    for record in data.records:
        assert 0 <= record.additional_info["max_error"] <= record.additional_info["tolerance"]
    of = {how: measured["executor.calls", how].additional_info for how in executors}
    assert of["library"]["library_bytes"] > of["library"]["code_size"] > 0
    assert of["library"]["module_hash"] == of["bytecode"]["module_hash"] != of["compiled"]["module_hash"]
    assert measured["executor.operators", "bytecode"].labels["workload_args"] == {"operators": 10}


def test_the_words_and_a_graph_say_what_a_call_costs(night: tuple[Tried, records.NightData]) -> None:
    text = night[0].told()
    assert "- calls, for each of 5 calls: bytecode " in text
    assert "- a call alone (calls less operators): " in text
    assert "fastest" not in text
    assert (night[0].root / "graph" / "cost_of_a_call.svg").exists()


def a_series(name: str, executor: str, ms: float, **size: int) -> Series:
    labels = {"workload": f"executor.{name}", "build_config": {"executor": executor}, "workload_args": size}
    return Series(name + executor, "e", "run_time", "ms", True, labels, (STAMP,), (ms,), (ms / 2,), (ms * 2,), (0.1,))


def test_a_calls_cost_is_the_run_time_by_the_calls() -> None:
    series = (
        a_series("calls", "bytecode", 0.3, calls=100),
        a_series("operators", "bytecode", 0.1, operators=200),
        a_series("calls", "compiled", 0.15, calls=100),
        a_series("operators", "compiled", 0.05, operators=50),
    )
    history = History("e", (), series, (STAMP,), ())
    assert OWN.executor_overhead.summarize_history(history) == [
        "- compiled against bytecode: 2.00x faster (2.00 to 2.00, 2 workloads)",
        "- calls, for each of 100 calls: bytecode 3.00 µs and compiled 1.50 µs",
        "- operators, for each of 200 operators: bytecode 500 ns and compiled 1.00 µs",
        "- a call alone (calls less operators): bytecode 2.00 µs",
    ]
    plot = OWN.executor_overhead.cost_plot(history)
    bar = plot.values[0][0]
    assert (bar.value, bar.low, bar.high) == pytest.approx((3000, 1500, 6000))


def test_the_configs_programs_are_those_that_exist() -> None:
    fields = config_util.read_fields(EXPERIMENTS / "executor_overhead" / "fields.json")
    assert set(fields["programs"].of.choices) == set(OWN.programs.MAKERS)
    assert set(fields["executors"].of.choices) == set(OWN.executor_overhead.MODES)
