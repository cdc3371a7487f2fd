"""What is timed on a card, and the libraries that it is compiled into.

numpy and TVM are imported where they are used: a measuring process tells how long each import takes.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SEED = 20261127
TAG = "nvidia/nvidia-h100"


def _operator(body: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "float32") -> Callable[[], Any]:
    def make() -> Any:
        lowering = importlib.import_module("tvmdash.relax_util.lowering")
        given = [{"shape": shape, "dtype": dtype, "seed": [SEED, index]} for index, shape in enumerate(shapes)]
        arrays = [make_array(one) for one in given]
        return lowering.lower_function(body, arrays), given, arrays

    return make


def _relax() -> Any:
    return importlib.import_module("tvm.relax").op


def _network(name: str) -> Callable[[], Any]:
    """The product's network."""

    def make() -> Any:
        networks, lowering = (
            importlib.import_module(f"tvmdash.{part}") for part in ("networks", "relax_util.lowering")
        )
        graph = networks.NETWORKS[name]()
        weights = packing_well(networks.make_weights(graph, SEED))
        x = networks.make_input(graph, SEED)
        return lowering.lower(graph, weights), [x], [x]

    return make


def _transformer(layers: int, vocabulary: int) -> Callable[[], Any]:
    """The experiment's model: a prompt of 128 tokens."""

    def make() -> Any:
        parts, lowering = (
            importlib.import_module(f"tvmdash.{part}.transformer") for part in ("networks", "relax_util")
        )
        model = parts.Model(layers, 256, 4, vocabulary, 129)
        weights = packing_well(parts.make_weights(model, SEED))
        step = parts.make_step(model, weights, "prefill", 128, SEED)
        return lowering.lower(model, weights, "prefill", 128), list(step.inputs), list(step.inputs)

    return make


def packing_well(weights: Mapping[str, Any]) -> dict[str, Any]:
    """Large ones repeat a random block, so that libraries travel in few bytes."""
    import numpy as np

    return {name: np.resize(array.ravel()[:4096], array.shape) for name, array in weights.items()}


MIB = 1024 * 1024
PLAIN: Mapping[str, Callable[[], Any]] = {
    "add_1mi": _operator(lambda x, y: _relax().add(x, y), (1024, 1024), (1024, 1024)),
    "gemv_f16": _operator(lambda x, w: _relax().matmul(x, w), (1, 4096), (4096, 4096), dtype="float16"),
    "matmul_f16": _operator(lambda x, w: _relax().matmul(x, w), (1024, 1024), (1024, 1024), dtype="float16"),
    "mlp": _network("mlp"),
    "softmax": _operator(lambda x: _relax().nn.softmax(x, axis=-1), (4096, 2048)),
    "add_24mi": _operator(lambda x, y: _relax().add(x, y), (24, MIB), (24, MIB)),
    "attention": _transformer(1, 0),
    "decoder": _transformer(4, 2048),
    "resnet18": _network("resnet18"),
}
VARIANTS = {f"{name}+graph": name for name in ("mlp", "decoder", "resnet18")}
"""With TVM's RewriteCUDAGraph."""
TAGGED = {"matmul_f16+tag": "matmul_f16"}
"""For the target's tag, TAG."""
POINTS = (*PLAIN, *VARIANTS, *TAGGED)
SHORT = ("add_1mi", "gemv_f16", "mlp", "mlp+graph", "attention", "softmax")
COSTED = ("add_1mi", "resnet18")
COMPILED = ("mlp", "matmul_f16", "resnet18")
LEVELLED = (
    "add_1mi",
    "gemv_f16",
    "matmul_f16",
    "matmul_f16+tag",
    "mlp",
    "mlp+graph",
    "softmax",
    "attention",
    "decoder",
)


def make_array(given: Mapping[str, Any]) -> Any:
    """The input that is described so, the same in every process."""
    import numpy as np

    drawn = np.random.Generator(np.random.SFC64(given["seed"])).random(given["shape"], dtype=np.float32)
    drawn -= np.float32(0.5)
    return drawn.astype(given["dtype"])


def target_of(name: str, device: str) -> Any:
    host = {"kind": "llvm", "mcpu": "x86-64-v3"}
    if device == "cpu":
        return host
    if name in TAGGED:
        return {"tag": TAG, "host": host} if device == "cuda" else None
    return {"kind": device, "host": host, **({"arch": "sm_90"} if device == "cuda" else {})}


def build(name: str, module: Any, device: str) -> Any:
    tvm, relax = (importlib.import_module(part) for part in ("tvm", "tvm.relax"))
    target = tvm.target.Target(target_of(name, device))
    config = {"relax.backend.use_cuda_graph": True} if name in VARIANTS else {}
    with target, tvm.transform.PassContext(config=config):
        return relax.build(relax.get_pipeline("zero")(module), target=target)


def spy_on_compiler() -> dict[str, Any]:
    """What TVM gave nvcc or NVRTC last, what came back, and the seconds between; filled at each call."""
    nvcc, tvm_ffi = (importlib.import_module(part) for part in ("tvm.support.nvcc", "tvm_ffi"))
    plain, told = nvcc.tvm_callback_cuda_compile, {"seconds": 0.0}

    def spy(code: Any) -> Any:
        begun = time.perf_counter()
        made = plain(code)
        told.update(code=str(code), made=bytes(made), seconds=told["seconds"] + time.perf_counter() - begun)
        return made

    tvm_ffi.register_global_func("tvm_callback_cuda_compile", spy, override=True)
    return told


def compile_points(folder: Path, device: str, names: Sequence[str]) -> None:
    """For each a library, its machine code and source apart, inputs that cannot be drawn again, the right answer."""
    import numpy as np

    tvm = importlib.import_module("tvm")
    told = spy_on_compiler()
    for name in names:
        made_of = VARIANTS.get(name, TAGGED.get(name, name))
        begun = time.process_time()
        try:
            module, given, arrays = PLAIN[made_of]()
            told["seconds"] = 0.0
            executable = build(name, module, device)
            executable.export_library(str(folder / f"{name}.so"))
            np.savez(
                folder / f"{name}.npz", **{str(i): one for i, one in enumerate(given) if not isinstance(one, dict)}
            )
            expected = answer_of_cpu(tvm, module, arrays)
            np.save(folder / f"{name}.npy", sampled(expected))
        except Exception as error:  # noqa: BLE001 - TVM raises anything, and the other points are worth having
            print(f"{name}: {type(error).__name__}: {error}"[:3000])
            continue
        code = told.pop("code", "")
        (folder / f"{name}.cu").write_text(code)
        (folder / f"{name}.fatbin").write_bytes(told.pop("made", b""))
        facts = {
            "given": [one if isinstance(one, dict) else None for one in given],
            "kernels": code.count("__global__") // 2,  # each is declared, then defined
            "wmma": "wmma" in code,
            "target": str(target_of(name, device)),
            "bytes": (folder / f"{name}.so").stat().st_size,
            "cpu_s": time.process_time() - begun,
            "nvcc_s": told["seconds"],
        }
        (folder / f"{name}.json").write_text(json.dumps(facts))
        print(name, {key: value for key, value in facts.items() if key != "given"}, flush=True)


def answer_of_cpu(tvm: Any, module: Any, arrays: Sequence[Any]) -> Any:
    """What the same module answers on the processor."""
    relax = importlib.import_module("tvm.relax")
    target = tvm.target.Target(target_of("", "cpu"))
    with target, tvm.transform.PassContext():
        machine = relax.VirtualMachine(relax.build(relax.get_pipeline("zero")(module), target=target), tvm.cpu())
    return first_of(machine["main"](*map(tvm.runtime.tensor, arrays)))


def first_of(answer: Any) -> Any:
    return (answer if hasattr(answer, "numpy") else answer[0]).numpy()


def sampled(answer: Any) -> Any:
    flat = answer.ravel()
    return flat[:: max(1, len(flat) // 4096)].astype("float32")
