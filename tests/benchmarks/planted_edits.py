"""Twenty edits planted in TVM's passes: does code_metrics name the right function first, and the right pass?

    python3 tests/benchmarks/planted_edits.py ARTIFACT        # about 4 minutes on two cores

ARTIFACT is a folder of an artifact store. Each edit is made in a process of its own, as an edit of TVM's source would
do it: an operator is legalized in another way, a rule of dlight decides otherwise, a pass does one thing more to one
function. The function that is edited and the pass are known, and are held against what `comparing` says of the two
builds. A function is right where its name holds the edited one's.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[2]
PREFILL = {"target": "cuda_sm80", "phase": "prefill", "length": 16}
MLP = {"target": "cuda_sm80", "batch": 1}


@dataclass(frozen=True)
class Edit:
    """function: a part of the name of what is edited; name: the pass that the edit is in."""

    workload: str
    values: dict[str, Any]
    function: str
    name: str
    plant: Callable[[], None]


def legalize(name: str, compute: Callable[..., Any]) -> Callable[[], None]:
    """The operator becomes what `compute` makes of its arguments."""

    def plant() -> None:
        import tvm

        hint = name.rpartition(".")[2]
        tvm.ir.register_op_attr(
            name,
            "FLegalize",
            lambda builder, call: builder.call_te(compute, *call.args, primfunc_name_hint=hint),
            level=20,
        )

    return plant


def disable_rule(name: str) -> Callable[[], None]:
    """A rule of dlight that schedules nothing any more."""

    def plant() -> None:
        from tvm.s_tir import dlight

        getattr(dlight.gpu, name).apply = lambda *_: None

    return plant


def edit_pass(module: str, name: str, function: str) -> Callable[[], None]:
    """A pass that does one thing more to one function."""

    def plant() -> None:
        import importlib

        import tvm

        place = importlib.import_module(module)
        before = getattr(place, name)

        def factory(*given: Any, **options: Any) -> Any:
            made = before(*given, **options)

            @tvm.transform.module_pass(opt_level=0, name=str(made.info.name))
            def edited(mod: Any, context: Any) -> Any:
                with tvm.transform.PassContext(opt_level=context.opt_level, config=dict(context.config)):
                    mod = made(mod)
                return _edit_function(mod, function)

            return edited

        setattr(place, name, factory)

    return plant


def _edit_function(mod: Any, function: str) -> Any:
    """The function's first constant is another one."""
    import tvm.script
    from tvm import tirx

    for variable in [variable for variable in mod.functions if function in variable.name_hint]:
        found = mod[variable]
        if isinstance(found, tirx.PrimFunc):
            text = _CONSTANT.sub(lambda number: f"T.float32({float(number[1]) * 0.5 + 0.25})", found.script(), count=1)
            mod = mod.clone()
            mod.update_func(variable, tvm.script.from_source(text, check_well_formed=False))
    return mod


_CONSTANT = re.compile(r"T\.float32\(([-+.e\d]+)\)")


def _twice(compute: str) -> Callable[..., Any]:
    def work(*tensors: Any) -> Any:
        from tvm import topi

        made = operator.attrgetter(compute)(topi)(*tensors)
        return topi.multiply(made, 1.5)

    return work


def _softmax(x: Any, *_: Any) -> Any:
    from tvm import topi

    return topi.nn.fast_softmax(x)


S, X = "tvm.s_tir.transform", "tvm.tirx.transform"
ATTENTION = "code.attention"
FIRST, SECOND, LAST = "fused_matmul_add_relu", "fused_matmul1_add1_relu1", "fused_matmul2_add2"
"""The layers of the MLP."""


def _in_pass(
    module: str, name: str, function: str, target: str, workload: str = "code.mlp", values: dict[str, Any] = MLP
) -> Edit:
    kind = "s_tir" if module == S else "tirx"
    return Edit(workload, {**values, "target": target}, function, f"{kind}.{name}", edit_pass(module, name, function))


EDITS: tuple[Edit, ...] = (
    Edit("code.mlp", MLP, "softmax", "LegalizeOps", legalize("relax.nn.softmax", _softmax)),
    Edit("code.mlp", MLP, "relu", "LegalizeOps", legalize("relax.nn.relu", _twice("nn.relu"))),
    Edit("code.mlp", MLP, "add", "LegalizeOps", legalize("relax.add", _twice("add"))),
    Edit(ATTENTION, PREFILL, "softmax", "LegalizeOps", legalize("relax.nn.softmax", _softmax)),
    Edit(ATTENTION, PREFILL, "multiply", "LegalizeOps", legalize("relax.multiply", _twice("multiply"))),
    Edit("code.mlp", MLP, "matmul", "ApplyDefaultSchedule", disable_rule("Reduction")),
    Edit(ATTENTION, PREFILL, "matmul", "ApplyDefaultSchedule", disable_rule("Matmul")),
    Edit("code.mlp", MLP, "softmax", "ApplyDefaultSchedule", disable_rule("GeneralReduction")),
    _in_pass(X, "VectorizeLoop", "softmax", "x86_64"),
    _in_pass(X, "FlattenBuffer", LAST, "cuda_sm80"),
    _in_pass(S, "LowerOpaqueBlock", SECOND, "cuda_sm90"),
    _in_pass(X, "StorageRewrite", "softmax", "aarch64"),
    _in_pass(X, "UnrollLoop", "softmax", "cuda_sm80"),
    _in_pass(S, "CompactBufferAllocation", FIRST, "cuda_sm80"),
    _in_pass(S, "LoopPartition", "softmax", "opencl"),
    _in_pass(S, "HoistIfThenElse", LAST, "opencl"),
    _in_pass(S, "InjectVirtualThread", LAST, "metal"),
    _in_pass(X, "RemoveNoOp", "layer_norm", "x86_64", ATTENTION, PREFILL),
    _in_pass(X, "NarrowDataType", "layer_norm", "rocm", ATTENTION, PREFILL),
    _in_pass(X, "VectorizeLoop", FIRST, "webgpu"),
)  # fmt: skip


def build(number: int | None, workload: str, values: dict[str, Any]) -> list[dict[str, str]]:
    """Keep what a build with this edit (None: without any) makes, and say how it differs from the build before it."""
    sys.path[:0] = [str(REPO / "experiments" / "code_metrics")]
    import comparing
    import keeping
    import measuring

    from tvmdash.exp_templates import Point

    if number is not None:
        EDITS[number].plant()
    keep = keeping.Keep.of_environment()
    assert keep is not None
    keep.begin()
    point = Point(workload, values, "", "planted")
    kept = keep.write(point, measuring.measure(point, 0, is_counted=False))
    said = comparing.describe_others(keep, point, kept, [], 0)
    functions: list[dict[str, str]] = said.get("changed", {}).get("functions", [])
    return functions


def _run(artifact: str, folder: str, number: int | None, edit: Edit) -> list[dict[str, str]]:
    path = [f"{artifact}/site", f"{artifact}/ffi", str(REPO / "shared" / "python")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "TVMDASH_CODE": folder,
        "TVMDASH_ARTIFACT": "stock" if number is None else "edited",
        "TVM_NUM_THREADS": "1",
    }
    asked = json.dumps([number, edit.workload, edit.values])
    argv = [sys.executable, __file__, artifact, "--build", asked]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{edit.name} in {edit.function}: {done.stderr[-1500:]}")
        return []
    functions: list[dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return functions


def main() -> int:
    """Plant each edit; 1 where fewer than 19 functions or 15 passes are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact")
    parser.add_argument("--build", default="")
    parser.add_argument("--only", type=int, nargs="*", default=range(len(EDITS)))
    options = parser.parse_args()
    if options.build:
        print(json.dumps(build(*json.loads(options.build))))
        return 0
    functions = passes = 0
    for number in options.only:
        edit = EDITS[number]
        with tempfile.TemporaryDirectory() as folder:
            _run(options.artifact, folder, None, edit)
            said = _run(options.artifact, folder, number, edit)
        first = said[0] if said else {}
        is_function = edit.function in first.get("name", "")
        is_pass = first.get("first_pass", "") == edit.name
        functions, passes = functions + is_function, passes + is_pass
        words = f"said {first.get('name')} by {first.get('first_pass', first.get('why_not'))}, of {len(said)}"
        print(f"{number}: {edit.function} by {edit.name} on {edit.values['target']}: {words}", flush=True)
    print(f"{functions} functions and {passes} passes right of {len(options.only)}")
    return int(functions < 19 or passes < 15)


if __name__ == "__main__":
    raise SystemExit(main())
