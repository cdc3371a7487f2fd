"""One point on the TVM of this process: generated, counted, and kept for comparisons with other builds.

As a script it does so for the points that are named on its standard input, as JSON: the side of the reference.
"""

from __future__ import annotations

import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import code_workloads
import cuda
import numpy as np
from generated import Generated, generate
from keeping import Keep
from targets import TARGETS

from tvmdash import relax_util
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Point
from tvmdash.experiment import engine_store
from tvmdash.networks.ops import Array

PROCESSOR_INSTRUCTIONS = "processor_instructions"
COUNTED_TARGET = "x86_64"
"""The one whose code is executed."""


def measure(point: Point, seed: int, *, is_counted: bool) -> Generated:
    """Generate the point's code on this process's TVM; is_counted: with the instructions that it executes."""
    target = str(point.values["target"])
    _see_cuda_compilers(target)
    args = {name: value for name, value in point.values.items() if name != "target"}
    module, inputs = code_workloads.find(point.workload, args).make(seed)
    generated = generate(module, target)
    return _count(generated, inputs) if is_counted and target == COUNTED_TARGET else generated


def _count(generated: Generated, inputs: Sequence[Array]) -> Generated:
    """Add the instructions that each function executes in one call of `main`, or why they were not counted."""
    try:
        found = count_instructions(generated.executable, inputs)
    except NotCountedError as error:
        return replace(generated, missing={**generated.missing, INSTRUCTIONS: str(error)})
    if found.by_processor is None:
        generated = replace(generated, missing={**generated.missing, PROCESSOR_INSTRUCTIONS: found.why_not})
    else:
        generated = replace(generated, facts={**generated.facts, PROCESSOR_INSTRUCTIONS: found.by_processor})
    return generated.counted(INSTRUCTIONS, found.instructions)


INSTRUCTIONS = "instructions"
TIMEOUT_S = 900.0
COMPILERS = ("g++", "clang++", "c++")
_DRIVER = Path(__file__).parent / "driver.cc"
_TYPE_CODES: Mapping[str, int] = {"i": 0, "u": 1, "f": 2}
"""DLPack's, by numpy's kinds."""


class NotCountedError(DashboardError):
    """Instructions cannot be counted here: what is missing."""


@dataclass(frozen=True)
class CountedInstructions:
    """instructions: by function of the generated code, in one call of `main`.

    by_processor: of the whole call, runtime and libraries included, as the processor's own counter has it, which is not
    exact; None without one, for the reason why_not.
    """

    instructions: Mapping[str, int]
    by_processor: int | None
    why_not: str = ""


def count_instructions(executable: Any, inputs: Sequence[Array]) -> CountedInstructions:
    """Count by callgrind what one call of `main` executes in x86-64 code; NotCountedError where tools are missing."""
    valgrind, driver = _find_valgrind(), _driver()
    with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
        library, given, counts = (Path(folder) / name for name in ("module.so", "inputs", "counts"))
        executable.export_library(str(library), cc=_compiler())
        given.write_bytes(b"".join(_packed(array) for array in inputs))
        call = [str(driver), str(library), str(given)]
        # uncompressed, each line names its function, and nothing has to be looked up
        options = ["--tool=callgrind", "--compress-strings=no", "--compress-pos=no", f"--callgrind-out-file={counts}"]
        _run([valgrind, *options, *call])
        by_processor, _, fault = _run(call).stdout.splitlines()[-1].partition(" ")
        counted = read_counts(counts.read_text(encoding="utf-8", errors="replace").splitlines(), str(library))
        if int(by_processor) < 0:
            return CountedInstructions(counted, None, f"could not open the CPU's instruction counter: {fault}.")
        return CountedInstructions(counted, int(by_processor))


def read_counts(lines: Sequence[str], library: str) -> dict[str, int]:
    """Return by function of the library what it executed itself, without what it called.

    The format is valgrind's "Callgrind Format Specification", uncompressed.
    """
    counts: dict[str, int] = {}
    for function, place, instructions in _costs(lines):
        if place == library:
            counts[function] = counts.get(function, 0) + instructions
    return counts


def _costs(lines: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    function = place = ""
    is_of_call = False
    for line in lines:
        name, sign, value = line.partition("=")
        if sign:
            place = value if name == "ob" else place
            function = value if name == "fn" else function
            is_of_call = name == "calls" or (is_of_call and name not in {"fn", "ob"})
        elif line[:1].isdigit() or line[:1] in "+-*":
            if not is_of_call and len(parts := line.split()) > 1:
                yield function, place, int(parts[1])
            is_of_call = False


def _packed(array: Array) -> bytes:
    head = [_TYPE_CODES[array.dtype.kind], array.dtype.itemsize * 8, array.ndim, *array.shape]
    return np.array(head, np.int64).tobytes() + np.ascontiguousarray(array).tobytes()


def _find_valgrind() -> str:
    if platform.machine() != "x86_64":
        raise NotCountedError("this machine is not x86-64, so it cannot execute the code.")
    found = shutil.which("valgrind")
    if found is None:
        raise NotCountedError("valgrind is not installed: `apt-get install valgrind`.")
    return found


def _compiler() -> str:
    found = os.environ.get("CXX") or next(filter(None, map(shutil.which, COMPILERS)), None)
    if found is None:
        raise NotCountedError(f"no C++ compiler is installed ({', '.join(COMPILERS)}): `apt-get install g++`.")
    return found


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Make a folder of this process; it is gone when the process ends."""
    return tempfile.TemporaryDirectory(prefix="tvmdash-driver-")


@functools.cache
def _driver() -> Path:
    """Compile the program that calls a library's `main`, once in a process."""
    import tvm_ffi

    home, runtime = Path(tvm_ffi.__file__).parent, Path(relax_util.tvm_facts().library_path).parent
    folder = Path(_folder().name)
    libraries = [flag for path in (runtime, home / "lib") for flag in (f"-L{path}", f"-Wl,-rpath,{path}")]
    _run([
        _compiler(), "-std=c++17", "-O1", str(_DRIVER), "-o", str(folder / "driver"), f"-I{home / 'include'}",
        # the driver loads TVM's runtime without a symbol of it, which a linker would leave out
        *libraries, "-Wl,--no-as-needed", "-ltvm_runtime", "-ltvm_ffi",
    ])  # fmt: skip
    return folder / "driver"


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    if done.returncode:
        raise DashboardError(f"{Path(argv[0]).name} exited with {done.returncode}: {done.stderr.strip()[-800:]}")
    return done


def _see_cuda_compilers(target: str) -> None:
    """Let this process find NVIDIA's compilers where setup installed them; without them registers are missing."""
    if TARGETS[target]["kind"] != "cuda":
        return
    engine = engine_store.find(Path(__file__).parent / "setup", cuda.COMPILERS)
    if not engine.reason and engine.path not in sys.path:
        sys.path.append(engine.path)


def main() -> int:
    """Measure and keep what is asked for; a point that fails is left out, as it would be on a night of its own."""
    keep = Keep.of_environment()
    if keep is None:
        return 2
    asked = json.load(sys.stdin)
    for wanted in asked["points"]:
        point = Point(wanted["workload"], wanted["values"], "", wanted["target"])
        try:
            keep.write(point, measure(point, asked["seed"], is_counted=wanted["is_counted"]))
        except Exception as error:  # noqa: BLE001 - what one TVM cannot compile, the other may
            sys.stderr.write(f"{point.workload} {dict(point.values)}: {error}\n"[:500])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
