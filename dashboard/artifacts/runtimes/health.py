"""Tests one TVM build on a device, in a process of its own: `python health.py KIND INDEX`.

Prints `step: NAME` before each step, so that a process that dies says where, and one JSON object at the end. The
modules are imported by name because this is TVM's process: the dashboard's own never imports it.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

TOLERANCE = 1e-4
ROWS, INNER, COLUMNS = 32, 64, 48
_DRIVER, _MEMORY = 12, 14
"""Numbers of TVM's device attributes."""


def main(kind: str, index: int) -> dict[str, Any]:
    """Find out what TVM can do with the kind of device, and the error of an answer computed on it."""
    _step("import")
    tvm = importlib.import_module("tvm")
    found: dict[str, Any] = {"tvm_file": tvm.__file__, "generates": _has(tvm, f"target.build.{kind}")}
    found |= {"drives": _has(tvm, f"device_api.{kind}"), "device": None, "max_error": None}
    if not found["drives"]:
        return found
    _step("device")
    device = tvm.device(kind, index)
    if not device.exist:
        return found
    attribute = tvm.get_global_func("runtime.GetDeviceAttr")
    asked = {"driver": _DRIVER, "memory_bytes": _MEMORY}
    known = {name: attribute(device.dlpack_device_type(), index, number) for name, number in asked.items()}
    found["device"] = {"model": device.device_name, **{name: value for name, value in known.items() if value}}
    if found["generates"]:
        _step("run")
        found["max_error"] = _run(tvm, kind, device)
    return found


def _has(tvm: Any, name: str) -> bool:
    return tvm.get_global_func(name, True) is not None


def _run(tvm: Any, kind: str, device: Any) -> float:
    """Return the largest error of a matrix product, which must be small."""
    numpy, relax = importlib.import_module("numpy"), importlib.import_module("tvm.relax")
    builder, tensor = relax.BlockBuilder(), getattr(relax, "TensorStructInfo", None) or relax.TensorType
    x, y = relax.Var("x", tensor((ROWS, INNER), "float32")), relax.Var("y", tensor((INNER, COLUMNS), "float32"))
    with builder.function("main", [x, y]):
        with builder.dataflow():
            output = builder.emit_output(relax.op.nn.relu(relax.op.matmul(x, y)))
        builder.emit_func_output(output)
    arch = {"arch": f"sm_{device.compute_version.replace('.', '')}"} if kind == "cuda" else {}
    target = tvm.target.Target({"kind": kind, "host": {"kind": "llvm"}, **arch})
    with target:
        executable = relax.build(relax.get_pipeline("zero")(builder.finalize()), target=target)
    generator = numpy.random.default_rng(0)
    given = [generator.standard_normal(shape, dtype="float32") for shape in ((ROWS, INNER), (INNER, COLUMNS))]
    machine = relax.VirtualMachine(executable, device)
    answer = machine["main"](*(tvm.runtime.tensor(array, device=device) for array in given)).numpy()
    error = float(numpy.abs(answer - numpy.maximum(given[0] @ given[1], 0)).max())
    if not error <= TOLERANCE:
        raise ValueError(f"the device computes wrong results: error {error:.3g}")
    return error


def _step(name: str) -> None:
    _say(f"step: {name}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose module names must not hide a package that TVM imports
    _say(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
