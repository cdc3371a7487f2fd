"""Real TVM: what one process compiled, another one loads without TVM's Python and its compiler, and it is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tvmdash import common, relax_util
from tvmdash.errors import DashboardError
from tvmdash.measure import prebuilt
from tvmdash.measure.prebuilt import Prebuilt
from tvmdash.networks import NETWORKS, make_input, make_weights
from tvmdash.relax_util import Compiled, CompileOptions, compile_module
from tvmdash.relax_util import build as building
from tvmdash.relax_util.build import hash_program
from tvmdash.relax_util.lowering import in_type, lower, lower_function

pytestmark = pytest.mark.usefixtures("tvm_artifact")
LOADING = """
import json, sys
from pathlib import Path
from tvmdash import common, relax_util
from tvmdash.measure import prebuilt
from tvmdash.measure.prebuilt import Prebuilt
from tvmdash.relax_util import CompileOptions, compile_module
from tvmdash.relax_util import build as building
from tvmdash.relax_util.build import hash_program

folder = Path(sys.argv[1])
def never():
    raise AssertionError("this process was to compile nothing")
with Prebuilt(folder, builds=False):
    inputs = prebuilt.keep("inputs", never)
    compiled = compile_module(never, CompileOptions(exec_mode=sys.argv[2]))
loaded = relax_util.load(compiled, 1)
outputs = [output.astype("float64").tolist() for output in loaded.outputs(*inputs)]
watched = sys.argv[2] == "bytecode" and len(inputs) == 1
print(json.dumps({
    "outputs": outputs,
    "times_ns": [*loaded.timer(*inputs)(2, 3), *loaded.python_timer(*inputs)(1, 1)],
    "spans": [span.name for span in loaded.profile(inputs[0], 1)] if watched else [],
    "module_hash": compiled.module_hash,
    "program": hash_program(compiled, inputs),
    "imported": [name for name in ("tvm", "tvm.relax") if name in sys.modules],
    "compiler": "libtvm_compiler" in Path("/proc/self/maps").read_text(),
}))
"""
Array = np.ndarray[Any, Any]


def build(folder: Path, make: Callable[[], Any], inputs: Sequence[Array], exec_mode: str = "bytecode") -> Compiled:
    """What a compiling process leaves in the folder, and holds itself."""
    with Prebuilt(folder, builds=True) as kept:
        prebuilt.keep("inputs", lambda: list(inputs))
        compiled = compile_module(make, CompileOptions(exec_mode=exec_mode))
    assert kept.asked == 1
    return compiled


def load(folder: Path, exec_mode: str = "bytecode") -> dict[str, Any]:
    """What a process says that finds it there."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TVM_NUM_THREADS": "1"}
    argv = [sys.executable, "-c", LOADING, str(folder), exec_mode]
    done = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def make_mlp(dtype: str = "float32") -> tuple[Callable[[], Any], list[Array]]:
    network = NETWORKS["mlp"]()
    weights = make_weights(network, 1)
    return lambda: lower(network, weights, 1, dtype), [in_type(make_input(network, 1, 1), dtype)]


@pytest.mark.parametrize(
    ("dtype", "exec_mode"),
    [("float32", "bytecode"), ("float32", "compiled"), ("float16", "bytecode"), ("bfloat16", "bytecode")],
)
def test_a_process_that_loads_gives_the_same_answer_and_the_same_hashes(
    tmp_path: Path, dtype: str, exec_mode: str
) -> None:
    make, inputs = make_mlp(dtype)
    compiled = build(tmp_path / "kept", make, inputs, exec_mode)
    program = hash_program(compiled, inputs)  # before TVM's JIT adds to the module what it made
    here = relax_util.load(compiled, 1)
    there = load(tmp_path / "kept", exec_mode)
    assert there["outputs"] == [output.astype("float64").tolist() for output in here.outputs(*inputs)]
    assert there["module_hash"] == compiled.module_hash
    assert there["program"] == program
    assert all(time_ns > 0 for time_ns in there["times_ns"])
    if exec_mode == "bytecode":
        assert there["spans"] == [span.name for span in here.profile(inputs[0], 1)]
    assert (there["imported"], there["compiler"]) == ([], False)


def test_another_layout_moves_the_same_code_and_changes_no_answer_and_no_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, inputs = make_mlp()
    places, found = {}, {}
    for layout in ("", "1", "2"):
        monkeypatch.setenv(prebuilt.LAYOUT, layout)
        folder = tmp_path / f"kept{layout}"
        build(folder, make, inputs)
        listed = subprocess.run(["nm", folder / "library_1.so"], check=True, capture_output=True, text=True).stdout
        symbols = [line.split() for line in listed.splitlines() if not line.startswith(" ")]
        places[layout] = {name: int(at, 16) for at, kind, name in symbols if kind in "tT" and "compute" in name}
        found[layout] = {name: load(folder)[name] for name in ("outputs", "module_hash", "program")}
    assert found[""] == found["1"] == found["2"]
    moved = {layout: {places[layout][name] - at for name, at in places[""].items()} for layout in ("1", "2")}
    assert places[""]
    assert all(len(each) == 1 and not each & {0} and next(iter(each)) % 16 == 0 for each in moved.values()), moved
    assert moved["1"] != moved["2"]


def test_several_inputs_and_outputs_of_other_types_are_the_same(tmp_path: Path) -> None:
    from tvm import relax

    def body(x: Any, y: Any) -> Any:
        return relax.Tuple([relax.op.add(x, y), relax.op.greater(x, y)])

    inputs = [np.arange(6, dtype="int64").reshape(2, 3), np.full((2, 3), 3, "int64")]
    build(tmp_path / "kept", lambda: lower_function(body, inputs), inputs)
    assert load(tmp_path / "kept")["outputs"] == [
        (inputs[0] + inputs[1]).tolist(),
        (inputs[0] > inputs[1]).astype(float).tolist(),
    ]


def test_a_machine_without_a_linker_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, inputs = make_mlp()
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DashboardError, match="no C compiler for linking"):
        build(tmp_path / "kept", make, inputs)
    assert not list((tmp_path / "kept").glob("*.json"))


def test_a_module_that_is_given_as_it_is_is_compiled_where_it_is_asked_for(tmp_path: Path) -> None:
    make, _ = make_mlp()
    with Prebuilt(tmp_path, builds=True) as kept:
        assert compile_module(make(), CompileOptions()).executable is not None
    assert kept.asked == 0


def test_what_a_compilation_imports_once_in_a_process_is_not_in_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A schedule that imports its tensor intrinsics when it first meets a product."""
    import tvm

    (tmp_path / "slow_intrinsics.py").write_text("import time\ntime.sleep(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    @tvm.transform.module_pass(opt_level=0, name="Importing")
    def importing(module: Any, _context: Any) -> Any:
        import slow_intrinsics  # noqa: F401

        return module

    steps = relax_util.build.pipeline_steps
    monkeypatch.setattr(relax_util.build, "pipeline_steps", lambda *names: [importing, *steps(*names)])
    make, _ = make_mlp()
    compiled = compile_module(make(), CompileOptions())
    assert dict(compiled.pass_times_ms)["Importing"] < 3000
    assert compiled.compile_ms - sum(ms for _, ms in compiled.pass_times_ms) < 3000


def test_a_module_that_points_share_is_compiled_once_and_loaded_once(tmp_path: Path) -> None:
    graph, made = NETWORKS["mlp"](), []

    def make() -> Any:
        made.append(1)
        return lower(graph, make_weights(graph, 0), 1)

    name = str(tmp_path)  # of this test alone: what is shared lasts as long as its process
    for point in ("first", "second"):
        with Prebuilt(tmp_path / point, builds=True) as kept:
            compiled = compile_module(make, CompileOptions(), shared=name)
        assert kept.asked == 1
    assert len(made) == 1
    assert [path.suffix for path in sorted(tmp_path.glob("shared_*"))] == [".json", ".so"]
    building._shared.clear()
    found = []
    for point in ("first", "second"):
        with Prebuilt(tmp_path / point, builds=False):
            found.append(compile_module(make, CompileOptions(), shared=name))
    assert len(made) == 1
    assert found[0] is found[1]
    assert found[0].module_hash == compiled.module_hash
    assert relax_util.load(found[0], 1).run(make_input(graph, 0)).shape == (1, 10)


def test_what_is_compiled_again_for_its_time_is_not_linked_again_unless_it_differs(tmp_path: Path) -> None:
    make, inputs = make_mlp()
    first = build(tmp_path, make, inputs)
    assert first.library is not None, "the process that compiled it goes on with the library, too"
    linked, file = first.library.stat().st_mtime_ns, first.library.with_suffix(".json")
    again = build(tmp_path, make, inputs)
    assert again.library == first.library
    assert first.library.stat().st_mtime_ns == linked
    assert common.read_json(file)["compile_ms"] == again.compile_ms != first.compile_ms
    other, inputs = make_mlp("float16")
    differs = build(tmp_path, other, inputs)
    assert differs.module_hash != first.module_hash
    assert first.library.stat().st_mtime_ns != linked
    assert load(tmp_path)["module_hash"] == differs.module_hash
