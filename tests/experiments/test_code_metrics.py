"""code_metrics: on every target each number is exact, of every function, and says what is not known and why."""

from __future__ import annotations

import contextlib
import functools
import platform
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts.artifact import Artifact
from tests.experiments.trying import STAMP, Tried, config_of, modules
from tvmdash import common, records
from tvmdash.common import structured
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Point
from tvmdash.experiment.info import History
from tvmdash.experiment.paired import reference
from tvmdash.records import Record
from tvmdash.series.store import Series

pytestmark = pytest.mark.usefixtures("tvm_artifact")
OWN = modules("code_metrics")
LANGUAGES = {"opencl", "metal", "webgpu"}
PTXAS = """ptxas info    : Compiling entry function 'softmax_kernel' for 'sm_80'
ptxas info    : Function properties for softmax_kernel
    96 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 41 registers, used 1 barriers, 324 bytes smem, 368 bytes cmem[0]
ptxas info    : Compiling entry function 'add_kernel' for 'sm_80'
ptxas info    : Function properties for add_kernel
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, 368 bytes cmem[0]
"""


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tried, records.NightData]:
    tried = Tried(tmp_path_factory.mktemp("code_metrics"), "code_metrics", {"networks": []})
    return tried, tried.night(set_up=True)


def by_target(data: records.NightData) -> dict[str, Record]:
    assert not data.failures
    return {str(record.build_config["target"]): record for record in data.records}


def test_every_target_is_measured_without_being_here(night: tuple[Tried, records.NightData]) -> None:
    found = by_target(night[1])
    assert set(found) == set(OWN.targets.TARGETS)
    for target, record in found.items():
        info = record.additional_info
        assert (record.workload, info["kernels"]) == ("code.softmax", 1)
        assert info["source_size"] > 500
        assert info["device_memory_usage"] == 40
        assert ("code_size" in info) == (target not in LANGUAGES)
        assert ("host_size" in info) == (target not in {"x86_64", "aarch64"})
        assert ("registers" in info) == (target.startswith("cuda") or target == "rocm")


def test_two_processes_agree_on_every_exact_number(night: tuple[Tried, records.NightData]) -> None:
    for record in by_target(night[1]).values():
        exact = {metric.place[-1] for metric, _ in record.metrics() if metric.kind == "exact"}
        assert len(exact) >= 3
        assert record.additional_info["alike"] == dict.fromkeys(exact, 2)


def test_a_whole_is_the_sum_of_its_functions(night: tuple[Tried, records.NightData]) -> None:
    for record in by_target(night[1]).values():
        info, functions = record.additional_info, record.additional_info["functions"].values()
        for name in ("source_size", "code_size", "registers", "spills", "shared_memory"):
            if name in info:
                assert info[name] == sum(function.get(name, 0) for function in functions)


def test_ptxas_gives_a_kernel_its_registers_and_shared_memory(night: tuple[Tried, records.NightData]) -> None:
    for target in ("cuda_sm80", "cuda_sm90"):
        kernel = by_target(night[1])[target].additional_info["functions"]["softmax_kernel"]
        assert 8 <= kernel["registers"] <= 255
        assert kernel["spills"] == 0
        assert kernel["shared_memory"] > 0
        assert kernel["code_size"] % 128 == 0


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is x86-64's")
def test_callgrind_counts_what_each_function_executes(night: tuple[Tried, records.NightData]) -> None:
    info = by_target(night[1])["x86_64"].additional_info
    assert info["instructions"] > info["functions"]["softmax_compute_"]["instructions"] > 50
    assert info["alike"]["instructions"] == 2
    why_not = info.get("missing", {}).get("processor_instructions", "")
    assert why_not.startswith("could not open the CPU's instruction counter") == ("processor_instructions" not in info)


def test_without_valgrind_instructions_are_missing_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWN.measuring.shutil, "which", lambda _: None)
    monkeypatch.setattr(OWN.measuring.platform, "machine", lambda: "x86_64")
    generated = OWN.generated.Generated(1.0, (), None, {}, {"kernels": 1}, {}, OWN.tracing.ExecutionTrace(), None)
    counted = OWN.measuring._count(generated, [])
    assert counted.numbers == {"kernels": 1}
    assert counted.missing == {"instructions": "valgrind is not installed: `apt-get install valgrind`."}


CALLGRIND = """version: 1
events: Ir

ob=/driver
fl=driver.cc
fn=main
12 7
cob=/tmp/module.so
cfn=f
calls=1 0
13 900
ob=/tmp/module.so
fl=???
fn=f
0 100
+3 20
cob=/lib/libm.so
cfn=expf
calls=4 0
0 80
0 5
fn=g
0 3

totals: 1035
"""


def test_of_callgrinds_counts_a_function_has_its_own_and_not_its_callees() -> None:
    assert OWN.measuring.read_counts(CALLGRIND.splitlines(), "/tmp/module.so") == {"f": 125, "g": 3}


def test_the_words_say_what_each_target_adds_up_to(night: tuple[Tried, records.NightData]) -> None:
    text = night[0].told()
    assert "- cuda_sm80: 1 kernel" in text
    assert "of shared memory" in text


def test_each_number_of_a_network_is_drawn_by_target() -> None:
    labels = [{"workload": "code.mlp", "workload_args": {"batch": 1}, "build_config": {"target": t}} for t in "ab"]
    more = ((STAMP,), [7.0], [None], [None], [None])
    series = [Series("id", "code_metrics", "registers", "registers", "lower", each, *more) for each in labels]
    drawn = OWN.code_metrics.plots({"tonight": None}, History("code_metrics", (), tuple(series), (STAMP,), ()))
    assert list(drawn) == ["registers"]
    assert (drawn["registers"].groups, len(drawn["registers"].values[0])) == (("mlp",), 2)


def test_what_ptxas_says_is_read_by_kernel() -> None:
    assert OWN.cuda.read_resources(PTXAS) == {
        "softmax_kernel": {"registers": 41, "spills": 20, "shared_memory": 324},
        "add_kernel": {"registers": 8, "spills": 0, "shared_memory": 0},
    }


def test_without_nvidias_compilers_the_rest_is_measured_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWN.cuda.sys, "path", [])
    functions, missing = OWN.generated._describe("cuda", CUDA, [], "cuda_sm80")
    assert {name: dict(function.numbers) for name, function in functions.items()} == {"f": {"source_size": 90}}
    assert missing["registers"].startswith("NVIDIA's compilers are not installed (nvidia-cuda-nvcc==")


CUDA = """extern "C" __global__ void __launch_bounds__(256) f(float* __restrict__ x);
extern "C" __global__ void __launch_bounds__(256) f(float* __restrict__ x) {
  x[0] = 1;
}
"""
FUNCTION = """	.type	{name},@function
{name}:
.Lfunc_begin{n}:
	.loc	1 0 0
	leaq	.L.str.{n}(%rip), %rsi
	vmovss	.LCPI{n}_0(%rip), %xmm0
	jne	.LBB{n}_4
.Lfunc_end{n}:
	.size	{name}, .Lfunc_end{n}-{name}
.LCPI{n}_0:
	.long	0x3f800000
.L.str.{n}:
	.asciz	"words"
"""


def test_a_functions_assembly_is_the_same_wherever_it_stands() -> None:
    alone = FUNCTION.format(name="f", n=0)
    second = FUNCTION.format(name="g", n=0) + FUNCTION.format(name="f", n=1)
    split = functools.partial(OWN.generated.split, "llvm")
    assert split(alone)["f"] == split(second)["f"]
    assert '"words"' in split(alone)["f"]
    other = alone.replace("0x3f800000", "0x40000000")
    assert split(other)["f"] != split(alone)["f"], "another constant is other code"


def test_opencls_prototypes_are_no_part_of_a_kernel() -> None:
    kernel = "__kernel void f(__global float* x) {\n  __local float4 a[16];\n}"
    text = f"// Function: f\n__kernel void f(__global float* x);\n__kernel void g(__global float* x);\n{kernel}\n"
    assert OWN.generated.split("opencl", text) == {"f": kernel}
    assert OWN.generated.count_shared_bytes("opencl", kernel) == 256


def test_what_wgsl_cannot_say_is_no_point() -> None:
    kind = OWN.code_metrics.CodeMetrics
    experiment = type("CodeMetrics", (kind,), {"folder": None})()
    points = experiment.points(config_of(kind, "code_metrics", targets=["webgpu", "metal"], models=["decoder"]))
    asked = {(point.group, point.workload) for point in points}
    assert ("metal", "code.decoder") in asked
    assert ("webgpu", "code.decoder") not in asked


def test_what_tvm_cannot_compile_is_told_with_the_place_in_tvm(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm.s_tir import dlight

    monkeypatch.setattr(dlight.gpu.Fallback, "is_target_available", lambda *_: {}["loops"])
    relu = Point("code.relu", {"target": "opencl", "shape": "1x64x112x112", "dtype": "float32"}, "opencl", "opencl")
    said = r"^TVM cannot generate code for opencl: KeyError at tvm/s_tir/dlight/.*\.py:\d+: .*loops"
    with pytest.raises(DashboardError, match=said):
        OWN.measuring.measure(relu, 0, is_counted=False)


def test_the_first_pass_that_differs_is_named_and_where_it_cannot_be_why() -> None:
    find = OWN.parting.find_parting
    before = [
        ("(input) #1", {"main": "0"}),
        ("LegalizeOps #1", {"f": "a"}),
        ("FuseOps #1", {"fused_f": "r f"}),
        ("FuseTIR #1", {"fused_f": "b"}),
        ("tirx.UnrollLoop #1", {"fused_f": "c"}),
    ]
    unrolled = [*before[:4], ("tirx.UnrollLoop #1", {"fused_f": "x"})]
    assert find(before, unrolled, "fused_f_kernel").name == "tirx.UnrollLoop"
    legal = [before[0], ("LegalizeOps #1", {"f": "y"}), before[2], ("FuseTIR #1", {"fused_f": "z"}), unrolled[4]]
    assert find(before, legal, "__tvm_ffi_fused_f").name == "LegalizeOps", "what it is made of differed before"
    beside = [before[0], ("LegalizeOps #1", {"f": "a", "g": "y"}), *unrolled[2:]]
    old = [before[0], ("LegalizeOps #1", {"f": "a", "g": "b"}), *before[2:]]
    assert find(old, beside, "fused_f_kernel").name == "tirx.UnrollLoop", "another function differed before"
    added = [*before[:4], ("tirx.New #1", {"fused_f": "n"}), ("tirx.UnrollLoop #1", {"fused_f": "m"})]
    assert find(before, added, "fused_f_kernel").name == "tirx.New"
    program = [before[0], ("Rewrite #1", {"main": "q"}), *legal[1:]]
    same = [before[0], ("Rewrite #1", {"main": "p"}), *before[1:]]
    assert find(same, program, "fused_f_kernel").name == "Rewrite", "the program differed before it came"
    assert find(before, before, "fused_f_kernel").name == OWN.parting.CODE_GENERATION
    other = [("(input) #1", {"main": "1"}), *before[1:]]
    assert find(before, other, "fused_f_kernel").why_not == OWN.parting.OTHER_HASHES


def test_a_function_that_one_side_alone_has_is_traced_to_what_made_fusion_go_otherwise() -> None:
    find = OWN.parting.find_parting
    made = [("(input) #1", {"main": "0"}), ("LegalizeOps #1", {"f": "a", "g": "b", "h": "c"})]
    fused = [*made, ("FuseOps #1", {"main": "1 f_g", "f_g": "r f g"}), ("FuseTIR #1", {"f_g": "t", "f": "", "g": ""})]
    apart = [*made, ("FuseOps #1", {"main": "1 f g"}), ("FuseTIR #1", {})]
    for name in ("f", "g", "f_g"):
        assert find(fused, apart, f"{name}_kernel").name == "FuseOps", name
    marked = [*made[:1], ("LegalizeOps #1", {"f": "a", "g": "opaque", "h": "c"}), *apart[2:]]
    for name in ("g", "f_g"):
        assert find(fused, marked, f"{name}_kernel").name == "LegalizeOps", name
    assert find(fused, marked, "h_kernel").name == OWN.parting.CODE_GENERATION
    rest = [
        ("tirx.VectorizeLoop #1", {"h": "x"}),
        ("tirx.LowerIntrin #1", {"h": ""}),
        ("tirx.LowerIntrin #2", {"h": "z"}),
    ]
    other = [("tirx.VectorizeLoop #1", {"h": "y"}), *rest[1:2], ("tirx.LowerIntrin #2", {"h": "v"})]
    assert find([*fused, *rest], [*fused, *other], "h_kernel").name == "tirx.VectorizeLoop"


Builds = Callable[[str], Any]


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builds:
    """What makes a build be the one that is measured."""
    monkeypatch.setenv("TVMDASH_CODE", str(tmp_path / "code"))

    def begin(name: str) -> Any:
        monkeypatch.setenv("TVMDASH_ARTIFACT", name)
        keep = OWN.keeping.Keep.of_environment()
        keep.begin()
        return keep

    return begin


@contextlib.contextmanager
def legalized(name: str, compute: Callable[..., Any]) -> Iterator[None]:
    """Another legalization of an operator, as an edit of TVM's source would make it."""
    import tvm

    before = tvm.ir.Op.get(name).get_attr("FLegalize")
    tvm.ir.register_op_attr(name, "FLegalize", compute, level=20)
    try:
        yield
    finally:
        tvm.ir.register_op_attr(name, "FLegalize", before, level=30)


SOFTMAX = Point("code.softmax", {"target": "opencl", "shape": "1x10", "dtype": "float32"}, "opencl", "opencl")


def fast_softmax(builder: Any, call: Any) -> Any:
    from tvm import topi

    return builder.call_te(topi.nn.fast_softmax, call.args[0], primfunc_name_hint="softmax")


def test_a_changed_function_is_kept_with_both_sides_and_the_pass_that_changed_it(builds: Builds) -> None:
    keep = builds("one")
    first = keep.write(SOFTMAX, OWN.measuring.measure(SOFTMAX, 0, is_counted=False))
    assert OWN.comparing.describe_others(keep, SOFTMAX, first, [], 0) == {}
    with legalized("relax.nn.softmax", fast_softmax):
        keep = builds("two")
        second = keep.write(SOFTMAX, OWN.measuring.measure(SOFTMAX, 0, is_counted=False))
    changed = OWN.comparing.describe_others(keep, SOFTMAX, second, [], 0)["changed"]
    assert changed["build"] == "one"
    assert {function["first_pass"] for function in changed["functions"]} == {"LegalizeOps"}
    record = {"build_config": {}, "workload_args": SOFTMAX.values, "workload": SOFTMAX.workload, "target": "opencl"}
    (told,) = OWN.comparing.read_changes(keep, [{**record, "additional_info": {"changed": changed}}])
    assert (told.functions[0].first_pass, told.since.build) == ("LegalizeOps", "one")
    for side in (told.functions[0].before, told.functions[0].after):
        assert "__kernel void" in side.code
        assert "T.func_attr" in side.tir


def test_other_memory_is_told_of_main_though_no_function_is_another(builds: Builds) -> None:
    import tvm

    attention = Point("code.attention", {"target": "x86_64", "phase": "prefill", "length": 16}, "x86_64", "x86_64")
    keep = builds("one")
    keep.write(attention, OWN.measuring.measure(attention, 0, is_counted=False))
    planner = tvm.relax.transform.StaticPlanBlockMemory
    with pytest.MonkeyPatch.context() as patched:
        nothing = tvm.transform.module_pass(lambda mod, _: mod, opt_level=0, name="StaticPlanBlockMemory")
        patched.setattr(tvm.relax.transform, planner.__name__, lambda: nothing)
        keep = builds("two")
        second = keep.write(attention, OWN.measuring.measure(attention, 0, is_counted=False))
    (told,) = OWN.comparing.compare(keep.read("one", attention), second)
    assert told.describe() == {"name": "main", "first_pass": "StaticPlanBlockMemory"}
    before, after = (side.numbers["planned_memory"] for side in (told.before, told.after))
    assert after > before > 0
    assert "R.Tensor" in told.after.tir


def test_the_reference_is_asked_once_and_its_numbers_are_kept(
    builds: Builds, tvm_artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = tuple(str(tvm_artifact.path / name) for name in ("site", "ffi"))
    named = reference.Reference("release", "0.1", None, paths, ())
    common.write_json(tmp_path / "reference.json", {"schema_version": 1, **structured.to_json(named)})
    monkeypatch.setenv(reference.VARIABLE, str(tmp_path / "reference.json"))
    OWN.comparing._reference.cache_clear()
    builds("tonight")
    kind = OWN.code_metrics.CodeMetrics
    experiment = type("CodeMetrics", (kind,), {"folder": None})()
    only = {"networks": [], "operators": ["softmax"], "shapes": 1, "dtypes": ["float32"], "models": []}
    config = config_of(kind, "code_metrics", targets=["opencl"], **only)
    (point,) = experiment.points(config)
    made = experiment.prepare(point, config, 0)
    numbers, paired = {**made.details, "planned_memory": made.memory_bytes}, made.details["paired"]
    assert paired["reference"]["source_size"] > 500
    assert paired == {"reference": {name: numbers[name] for name in paired["reference"]}}
    OWN.comparing._asked.clear()
    monkeypatch.setattr(OWN.comparing.subprocess, "run", lambda *_, **__: pytest.fail("it was asked again"))
    assert experiment.prepare(point, config, 0).details["paired"] == paired
    OWN.comparing._reference.cache_clear()
