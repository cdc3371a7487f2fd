"""Proves one TVM build in a process of its own: `python health.py`, with the build on PYTHONPATH.

Prints `step: NAME` before each step, so that a process that dies says where, and one JSON object at the end.
The modules are imported by name because this is TVM's process: the dashboard's own never imports it.
The steps are what broke in wheels that installed cleanly: import, compile, run, and the JSON of a module.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from typing import Any

TOLERANCE = 1e-5
MODULE = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), weight: R.Tensor((8, 16), "float32")) -> R.Tensor((4, 16), "float32"):
        with R.dataflow():
            product: R.Tensor((4, 16), "float32") = R.matmul(x, weight)
            result: R.Tensor((4, 16), "float32") = R.nn.relu(product)
            R.output(result)
        return result
"""
"""Written as script: the Python names behind it (TensorStructInfo) have come and gone between releases."""


def main() -> None:
    """Run every step; an exception or a signal on the way is the verdict."""
    _step("import")
    numpy, tvm, version = (importlib.import_module(name) for name in ("numpy", "tvm", "tvm._version"))
    ffi_version = _ffi_version()
    module = tvm.script.from_source(MODULE)
    _step("compile")
    compile_module = tvm.compile if hasattr(tvm, "compile") else tvm.relax.build  # since 0.20; before
    executable = compile_module(tvm.relax.get_pipeline("zero")(module), target=tvm.target.Target({"kind": "llvm"}))
    _step("run")
    _run(tvm, numpy, executable)
    _step("save_json")
    text = tvm.ir.save_json(module)
    _step("load_json")
    tvm.ir.assert_structural_equal(module, tvm.ir.load_json(text))
    versions = {"tvm_version": tvm.__version__, "tvm_ffi_version": ffi_version, "tvm_file": tvm.__file__}
    versions["llvm_version"] = _llvm_version(tvm)
    _say(json.dumps({**versions, "commit": version.__commit_id__, "numpy_version": numpy.__version__}))


def _ffi_version() -> str:
    """Return the version of tvm-ffi, `none` for a TVM that was written before it."""
    if importlib.util.find_spec("tvm_ffi") is None:
        return "none"
    return str(importlib.import_module("tvm_ffi").__version__)


def _llvm_version(tvm: Any) -> str | None:
    """Return the major version of TVM's LLVM; None where it does not say."""
    ask = tvm.get_global_func("target.llvm_version_major", True) if hasattr(tvm, "get_global_func") else None
    return str(ask()) if ask else None


def _step(name: str) -> None:
    _say(f"step: {name}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _run(tvm: Any, numpy: Any, executable: Any) -> None:
    generator = numpy.random.default_rng(0)
    x, weight = (generator.standard_normal(shape, dtype="float32") for shape in ((4, 8), (8, 16)))
    machine = tvm.relax.VirtualMachine(executable, tvm.cpu())
    tensor = tvm.runtime.tensor if hasattr(tvm.runtime, "tensor") else tvm.nd.array  # since 0.22; before
    result = machine["main"](tensor(x), tensor(weight)).numpy()
    numpy.testing.assert_allclose(result, numpy.maximum(x @ weight, 0), rtol=TOLERANCE, atol=TOLERANCE)


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose module names must not hide a package that TVM imports
    main()
