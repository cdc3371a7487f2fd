"""Real TVM: compile, load, run, time, profile; what it says of a compilation is true."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tvmdash import relax_util
from tvmdash.errors import DashboardError
from tvmdash.networks import INPUT, NETWORKS, Network, Node, make_input, make_weights, reference
from tvmdash.networks.accuracy import check_answer
from tvmdash.networks.ops import (
    Add,
    BatchNorm,
    Concat,
    Conv2d,
    Dense,
    Flatten,
    GlobalAvgPool,
    MaxPool,
    Relu,
    Softmax,
)
from tvmdash.relax_util import Compiled, CompileOptions, build, compile_module
from tvmdash.relax_util.lowering import in_type, lower
from tvmdash.relax_util.passes import PIPELINES
from tvmdash.relax_util.targets import default_target, make_target

pytestmark = pytest.mark.usefixtures("tvm_artifact")
SEED = 11
THREADS = 1
MLP = NETWORKS["mlp"]()


def tiny() -> Network:
    """Every operator once or more, in 12x12 pixels: LLVM unrolls the loops over fewer, which takes twice as long."""
    nodes = [
        Node("conv", Conv2d(8, 3, 1, 1, bias=False), (INPUT,)),
        Node("conv.bn", BatchNorm(), ("conv",)),
        Node("six", Relu(6.0), ("conv.bn",)),
        Node("depthwise", Conv2d(8, 3, 1, 1, groups=8), ("six",)),
        Node("sum", Add(), ("depthwise", "six")),
        Node("pool", MaxPool(3, 2, 1), ("sum",)),
        Node("grouped", Conv2d(8, 1, groups=2), ("pool",)),
        Node("both", Concat(), ("pool", "grouped")),
        Node("relu", Relu(), ("both",)),
        Node("mean", GlobalAvgPool(), ("relu",)),
        Node("flat", Flatten(), ("mean",)),
        Node("dense", Dense(5), ("flat",)),
        Node("softmax", Softmax(), ("dense",)),
    ]
    return Network("tiny", (3, 12, 12), tuple(nodes))


def small() -> Network:
    """What any pass of a pipeline has work to do on, and compiles in half the time of `tiny`."""
    nodes = [
        Node("conv", Conv2d(4, 1, bias=False), (INPUT,)),
        Node("conv.bn", BatchNorm(), ("conv",)),
        Node("six", Relu(6.0), ("conv.bn",)),
        Node("again", Conv2d(4, 1), ("six",)),
        Node("relu", Relu(), ("again",)),
        Node("last", Conv2d(4, 1), ("relu",)),
        Node("mean", GlobalAvgPool(), ("last",)),
        Node("flat", Flatten(), ("mean",)),
        Node("dense", Dense(5), ("flat",)),
    ]
    return Network("small", (3, 12, 12), tuple(nodes))


def compile_anew(network: Network, **options) -> Compiled:
    return compile_module(lower(network, make_weights(network, SEED)), CompileOptions(**options))


_COMPILED: dict[str, Compiled] = {}


def compiled(network: Network, **options) -> Compiled:
    """As `compile_anew`, but each thing once in this module's life: seconds each."""
    key = f"{network.name} {CompileOptions(**options)}"
    if key not in _COMPILED:
        _COMPILED[key] = compile_anew(network, **options)
    return _COMPILED[key]


def assert_right(network: Network, module: Compiled, batch: int = 1) -> None:
    x = make_input(network, SEED, batch)
    check_answer(relax_util.load(module, THREADS).run(x), reference(network, make_weights(network, SEED), x))


LONG = ("mobilenet_v2", "resnet18", "squeezenet")
"""Half a minute together; `tiny` has each of their operators."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONG else ())
        for name in NETWORKS
        if name != "vgg16"  # a minute, gigabytes
    ],
)
def test_a_compiled_network_gives_the_reference_output(name):
    network = NETWORKS[name]()
    assert_right(network, compiled(network))


FIRST_MODE, *OTHER_MODES = relax_util.EXEC_MODES


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize(
    "exec_mode", [FIRST_MODE, *(pytest.param(mode, marks=pytest.mark.slow) for mode in OTHER_MODES)]
)
def test_every_pipeline_and_mode_gives_the_reference_output(pipeline, exec_mode):
    assert_right(tiny(), compiled(tiny(), pipeline=pipeline, exec_mode=exec_mode))


def test_a_batch_is_computed_whole():
    module = lower(tiny(), make_weights(tiny(), SEED), batch=3)
    assert_right(tiny(), compile_module(module, CompileOptions()), batch=3)


def test_a_module_for_any_batch_answers_rightly_for_each():
    network = tiny()
    weights = make_weights(network, 0)
    loaded = relax_util.load(compile_module(lower(network, weights, None), CompileOptions()), 1)
    for batch in (1, 3):
        x = make_input(network, 0, batch)
        check_answer(loaded.run(x), reference(network, weights, x))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_as_near_to_float32_as_its_type_allows(dtype):
    network = tiny()
    weights, x = make_weights(network, 0), make_input(network, 0)
    loaded = relax_util.load(compile_module(lower(network, weights, dtype=dtype), CompileOptions()), 1)
    answer = loaded.run(in_type(x, dtype))
    assert str(answer.dtype) == dtype
    assert check_answer(answer, reference(network, weights, x), dtype)["max_error"] > 1e-6


def test_two_compilations_of_one_thing_have_one_hash():
    one, again = compiled(small()), compile_anew(small())
    assert one.module_hash == again.module_hash
    assert one.code_size_bytes == again.code_size_bytes


def test_another_process_compiles_to_the_same_hash():
    code = (
        "from tvmdash import networks, relax_util\nfrom tvmdash.relax_util import lowering\n"
        f"network = networks.NETWORKS['mlp'](); weights = networks.make_weights(network, {SEED})\n"
        "module = lowering.lower(network, weights)\n"
        "print(relax_util.compile_module(module, relax_util.CompileOptions()).module_hash)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert output.stdout.split()[-1] == compiled(MLP).module_hash


@pytest.mark.parametrize(
    "options",
    [
        {"pipeline": "default"},
        {"pipeline": "zero_fold_bn"},
        {"disabled_passes": ("FuseOps",)},
        {"disabled_passes": ("StaticPlanBlockMemory",)},
        {"target": {"kind": "llvm", "opt-level": 0}},
        {"target": {"kind": "llvm", "fast-math": True}},
        {"exec_mode": "compiled"},
    ],
    ids=str,
)
def test_each_setting_changes_the_program_but_not_the_answer(options):
    module = compiled(small(), **options)
    assert module.module_hash != compiled(small()).module_hash
    assert_right(small(), module)


def test_llvm_opt_level_is_3_where_none_is_given():
    assert compiled(small()).module_hash == compiled(small(), target={"kind": "llvm", "opt-level": 3}).module_hash


def test_code_size_is_what_binutils_count(tmp_path):
    if not shutil.which("size"):
        pytest.skip("binutils' size is not installed")
    module = compiled(small())
    library = next(part for part in module.executable.mod.imports if part.kind == "llvm")
    library.write_to_file(str(tmp_path / "code.o"))
    counted = subprocess.run(["size", tmp_path / "code.o"], capture_output=True, text=True, check=True).stdout
    assert int(counted.splitlines()[1].split()[3]) <= module.code_size_bytes
    assert module.code_size_bytes <= (tmp_path / "code.o").stat().st_size


def test_planned_memory_is_the_sum_of_the_storages():
    module = compiled(MLP)
    hidden = 4 * (256 + 128)
    assert hidden + 4 * 10 <= module.planned_memory_bytes <= hidden + 4 * (10 + 10 + 10)


def test_planning_saves_memory_and_switching_it_off_shows():
    with_plan, without = compiled(small()), compiled(small(), disabled_passes=("StaticPlanBlockMemory",))
    assert with_plan.planned_memory_bytes < without.planned_memory_bytes


def test_folding_a_batch_norm_removes_its_work():
    folded = compiled(small(), pipeline="zero_fold_bn")
    assert "FoldBatchnormToConv2D" in dict(folded.pass_times_ms)
    assert folded.code_size_bytes < compiled(small()).code_size_bytes


def test_pass_times_are_own_times_longest_first():
    module = compile_anew(small())
    times = [ms for _, ms in module.pass_times_ms]
    assert {"LegalizeOps", "FuseOps", "FuseTIR", "StaticPlanBlockMemory"} <= dict(module.pass_times_ms).keys()
    assert times == sorted(times, reverse=True)
    rounded = 1e-6 * len(times)
    assert 0.8 * module.compile_ms < sum(times) < module.compile_ms + rounded, "what makes machine code is among them"
    assert dict(module.pass_times_ms)["LLVM"] > 0


def test_every_operator_of_a_profile_is_known_by_what_it_computes():
    first, second = compiled(small()), compiled(small(), added_passes=("FoldBatchnormToConv2D",))
    spans = relax_util.load(first, THREADS).profile(make_input(small(), SEED), 1)
    called = {span.name for span in spans} - {span.name for span in spans if span.name.startswith("vm.")}
    assert called
    assert called <= first.operators.keys()
    convolution = next(known for name, known in first.operators.items() if "conv2d" in name)
    assert min(convolution["flop"], convolution["bytes"]) > 0
    assert convolution["shapes"].startswith("float32[1,")
    hashes = [{known["hash"] for known in each.operators.values()} for each in (first, compiled(small()), second)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_an_added_pass_is_applied_before_the_pipeline():
    added = compiled(small(), added_passes=("FoldBatchnormToConv2D",))
    assert added.module_hash == compiled(small(), pipeline="zero_fold_bn").module_hash


def test_a_disabled_pass_does_not_run():
    assert "FuseOps" not in dict(compiled(small(), disabled_passes=("FuseOps",)).pass_times_ms)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pipeline": "zer0"}, "pipeline 'zer0' is unknown. Did you mean 'zero'"),
        ({"pipeline": "?"}, "Use one of: default, zero"),
        ({"exec_mode": "bytecod"}, "Did you mean 'bytecode'"),
        ({"added_passes": ("FoldBatchNormToConv2D",)}, "relax.transform 'FoldBatchNorm.*Did you mean 'FoldBatchnorm"),
        ({"added_passes": ("BindParams",)}, "pass 'BindParams' cannot be added by its name alone"),
        ({"disabled_passes": ("FuseOp",)}, "the pass 'FuseOp' is unknown. Did you mean 'FuseOps'"),
        ({"disabled_passes": ("FoldBatchnormToConv2D",)}, "in this compilation, the pass 'FoldBatchnormToConv2D'"),
        ({"disabled_passes": ("LegalizeOps",)}, "TVM cannot compile with .*'LegalizeOps'"),
        ({"target": "llvmm"}, 'Target kind "llvmm" is not defined'),
        ({"target": {"kind": "llvm", "opt_level": 3}}, "Unknown config option 'opt_level'"),
        ({"target": {"kind": "llvm", "opt-level": 4}}, "opt-level 4 does not exist. Use 0, 1, 2 or 3"),
        ({"target": {"kind": "llvm", "mcpu": "x86-64-v33"}}, "does not support mcpu 'x86-64-v33'"),
    ],
    ids=str,
)
def test_what_does_not_exist_is_named_with_a_remedy(options, words):
    with pytest.raises(DashboardError, match=words):
        compile_anew(MLP, **options)


def test_a_function_of_several_inputs_gives_all_its_outputs():
    from tvm import relax

    builder = relax.BlockBuilder()
    tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    x, y = (relax.Var(name, tensor((3,), "float32")) for name in "xy")
    with builder.function("main", [x, y]):
        both = relax.Tuple([builder.emit(relax.op.subtract(x, y)), builder.emit(relax.op.add(x, y))])
        builder.emit_func_output(both)
    loaded = relax_util.load(relax_util.compile_module(builder.finalize(), CompileOptions()), THREADS)
    one, two = np.arange(3, dtype=np.float32), np.full(3, 2, np.float32)
    difference, total = loaded.outputs(one, two)
    np.testing.assert_array_equal(difference, one - two)
    np.testing.assert_array_equal(total, one + two)
    assert loaded.timer(one, two)(2, 1)[0] > 0


def test_a_timer_gives_one_sum_for_each_repeat():
    timer = relax_util.load(compiled(MLP), THREADS).timer(make_input(MLP, SEED))
    ones, hundreds = timer(1, 5), timer(100, 2)
    assert (len(ones), len(hundreds)) == (5, 2)
    assert all(isinstance(elapsed_ns, int) and elapsed_ns > 0 for elapsed_ns in [*ones, *hundreds])
    assert min(hundreds) > 10 * min(ones)


def test_two_timers_of_one_module_keep_their_inputs():
    loaded = relax_util.load(compiled(small()), THREADS)
    first, second = (loaded.timer(make_input(small(), seed)) for seed in (1, 2))
    assert len(first(1, 1)) == len(second(1, 1)) == 1


def test_a_profile_has_every_kernel_in_every_repeat():
    network = MLP
    spans = relax_util.load(compiled(network), THREADS).profile(make_input(network, SEED), 2)
    for repetition in range(2):
        own = [span for span in spans if span.repetition == repetition]
        assert sum(span.name.startswith("fused_matmul") for span in own) == 3
        assert all(span.duration_ns > 0 and span.start_ns > 0 for span in own)
        assert all(one.start_ns + one.duration_ns <= other.start_ns for one, other in itertools.pairwise(own))


def test_profiling_leaves_the_timed_machine_alone():
    network = MLP
    loaded, x = relax_util.load(compiled(network), THREADS), make_input(network, SEED)
    before = loaded.run(x)
    assert loaded.profile(x, 1)
    np.testing.assert_array_equal(loaded.run(x), before)


def test_compiled_mode_cannot_be_profiled():
    module = compiled(small(), exec_mode="compiled")
    with pytest.raises(DashboardError, match="only exec_mode 'bytecode'"):
        relax_util.load(module, THREADS).profile(make_input(small(), SEED), 1)


def test_a_second_number_of_threads_in_one_process_is_refused():
    relax_util.use_threads(THREADS)
    with pytest.raises(DashboardError, match="start this one with TVM_NUM_THREADS=7"):
        relax_util.use_threads(7)


def test_facts_are_those_of_the_imported_tvm():
    import tvm

    facts = relax_util.tvm_facts()
    assert facts.version == tvm.__version__
    assert facts.llvm_version >= 15
    assert Path(facts.library_path).name.startswith("libtvm")
    assert Path(facts.library_path).is_file()
    assert facts.commit is None or not facts.commit.startswith("g")
    assert replace(facts, commit=None).ffi_version


def test_a_record_is_told_what_tvm_is_built_with(monkeypatch):
    facts = relax_util.tvm_facts()
    said = build.describe_build(facts)
    assert (said["llvm"], said["tvm_ffi"]) == (f"llvm-{facts.llvm_version}", facts.ffi_version)
    assert "GCC" in said["compiler"] or "clang" in said["compiler"]
    made = {"toolchain": "gcc 12.2.0, LLVM 15.0.6", "options": '{"USE_LLVM": "ON"}'}
    monkeypatch.setenv(build.BUILD_VARIABLE, json.dumps(made))
    said = build.describe_build(facts)
    assert (said["toolchain"], said["flags"]) == (made["toolchain"], {"USE_LLVM": "ON"})


def test_the_default_target_is_one_this_machine_can_run():
    full = ["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave", "sse2"]
    targets = [default_target(2, full), default_target(2, full[1:])]
    assert [make_target(target).attrs["num-cores"] for target in targets] == [2, 2]
    if "mcpu" in targets[0]:
        assert [target["mcpu"] for target in targets] == ["x86-64-v3", "x86-64"]


def test_importing_relax_util_imports_no_tvm():
    code = "import sys, tvmdash.relax_util, tvmdash.relax_util.lowering; sys.exit('tvm' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
