"""Luck of a build: how far apart builds of one source are by layout alone, and which redraw takes how much of it.

    python3 tests/benchmarks/build_luck.py code FOLDER --tvm ARTIFACT
    python3 tests/benchmarks/build_luck.py runtime FOLDER --tvm ARTIFACT --source TVM --code FOLDER [--wheel ARTIFACT]
    python3 tests/benchmarks/build_luck.py gather FOLDER FILE [--rounds 20] [--core 1]
    python3 tests/benchmarks/build_luck.py table FILE...

Needs g++ and lld. `code` compiles four programs of the product once and lays their machine code out anew; `runtime`
builds libtvm_runtime.so from a checkout of TVM (without LLVM, two minutes) and lays that out anew; ARTIFACT is a folder
of the shelf, of the checkout's version. Kinds of layout, none of which does other work than another:

- same: copies, for the error of the method.
- order: functions in another order (`lld --shuffle-sections`): what a relink draws anew. all: data as well.
- shift: all code some bytes further, by an object that is linked in front. environment: only its size differs.
- inside: bytes never executed after jumps and returns, so that code inside of functions moves as in a neighbouring
  commit, each linked twice in an order of its own. What both links of one such source share, no relink draws anew.
- functions, blocks: TVM's llvm target aligns functions and blocks (cl-opt); this pads, so it may cost time.

In each round all layouts have a fresh process, which are all alive and take turns by the sample on one core; the clock
is the thread's CPU time. `table` takes the noise of processes out of the scatter between layouts; ranges are of 90 %.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import IO, Any

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPOSITORY / "shared" / "python"), str(REPOSITORY / "experiments" / "executor_overhead")]

PROGRAMS = ("mlp", "dqn", "softmax", "calls")
ALIGNED = {
    **{f"functions {bits}": f"-align-all-functions:uint={bits}" for bits in (5, 6, 7)},
    **{f"blocks {bits}": f"-align-all-nofallthru-blocks:uint={bits}" for bits in (3, 4, 5)},
}
COPIES, DRAWS, SOURCES, LINKS = 5, 12, 10, 2
SAMPLE_NS = 12_000_000
TURNS = {"dqn": 5}
TURNS_OF_OTHERS = 14
TRIM = 0.2
Z = NormalDist().inv_cdf(0.95)
SOURCE_FILES = ("runtime/*.cc", "runtime/vm/*.cc", "runtime/memory/*.cc", "runtime/rpc/*.cc")
SECTIONS = ("-ffunction-sections", "-fdata-sections")
DEFINED = ("-DNDEBUG", "-DTVM_INDEX_DEFAULT_I64=1", "-DTVM_RUNTIME_EXPORTS", "-DTVM_FFI_EXPORTS")
FLAGS = ("-std=c++20", "-O2", "-fPIC", "-faligned-new", "-fvisibility=hidden", *SECTIONS, *DEFINED)
"""Those of TVM's own CMake for a release, and a section for each function, so that the linker can shuffle them."""


@dataclass(frozen=True)
class Layout:
    """One build as a process gets it; `source`: layouts of a kind with the same one differ by the link alone."""

    name: str
    kind: str
    modules: Mapping[str, str]
    pythonpath: tuple[str, ...]
    runtime: str = ""
    padding: int = 0
    source: int = 0


@dataclass(frozen=True)
class Program:
    """What a module is called with, and how often in a sample."""

    inputs: tuple[tuple[int, ...], ...]
    calls: int


@dataclass
class Build:
    """Layouts and programs as `gather` reads them from a folder."""

    programs: dict[str, Program] = field(default_factory=dict)
    layouts: list[Layout] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        (folder / "layouts.json").write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> Build:
        read = json.loads((folder / "layouts.json").read_text(encoding="utf-8"))
        programs = {name: Program(**values) for name, values in read["programs"].items()}
        return Build(programs, [Layout(**values) for values in read["layouts"]])


def paths_of(artifact: Path) -> tuple[str, ...]:
    return tuple(str(artifact / part) for part in json.loads((artifact / "artifact.json").read_text())["pythonpath"])


def link(objects: Sequence[Path], out: Path, *flags: str) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    argv = ["g++", "-shared", "-fuse-ld=lld", "-o", str(out), *map(str, objects), *flags]
    subprocess.run(argv, check=True)
    return out


def shuffled(seed: int, sections: str = ".text*") -> str:
    return f"-Wl,--shuffle-sections={sections}={seed}"


def assemble(text: str, out: Path) -> Path:
    out.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["as", "-o", str(out), "-"], input=text, text=True, check=True)
    return out


def moved_inside(text: str, seed: int) -> str:
    """The assembly with up to 31 bytes after some jumps and returns, where nothing runs."""
    draw = random.Random(seed)

    def skip(found: re.Match[str]) -> str:
        return f"{found[0]}\n\t.skip {draw.randrange(1, 32)}, 0x90" if draw.random() < 0.5 else found[0]

    return re.sub(r"^\t(?:notrack )?(?:jmp|retq?)\b.*$", skip, text, flags=re.MULTILINE)


def in_sections(text: str) -> str:
    """LLVM's assembly with each function in a section of its own, and without debugging information."""
    text = re.sub(r"^\t\.(?:file\t\d|loc\t).*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\t\.section\t\.debug_(?:.*\n)(?:(?!\t\.(?:section|text)).*\n)*", "", text, flags=re.MULTILINE)
    own = r'\t.section\t.text.\1,"ax",@progbits\n\t.p2align\t4\n\t.type\t\1,@function'
    return re.sub(r"^\t\.type\t(\w+),@function$", own, text, flags=re.MULTILINE)


# The code that TVM generates


def modules() -> dict[str, tuple[Any, str, list[tuple[int, ...]]]]:
    """By program: its IRModule, its pipeline and the shapes of its inputs."""
    import programs

    from tvmdash import networks
    from tvmdash.relax_util import lowering
    from tvmdash.relax_util.operators import programs as operators
    from tvmdash.relax_util.operators import table

    made: dict[str, tuple[Any, str, list[tuple[int, ...]]]] = {}
    for network in (networks.mlp(), networks.dqn()):
        module = lowering.lower(network, networks.make_weights(network, 7))
        made[network.name] = module, "zero", [(1, *network.input_shape)]
    softmax = next(row for row in table.OPERATORS if row.inputs == ((8, 128, 128),) and row.kind == "softmax")
    made["softmax"] = operators.relax_module(softmax, "float32", []), "zero", list(softmax.inputs)
    chain = programs.program("calls", {"calls": 200}, 7)
    made["calls"] = chain.build(), chain.pipeline, [x.shape for x in chain.inputs]
    return made


def compiled(folder: Path, target: Mapping[str, Any]) -> dict[str, tuple[str, Path]]:
    """By program: LLVM's assembly, and the object with bytecode and weights."""
    import shutil

    from tvmdash import relax_util

    found = {}
    for name, (module, pipeline, _) in modules().items():
        executable = relax_util.compile_module(module, relax_util.CompileOptions(target, pipeline)).executable
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)

        def keep(out: str, objects: Sequence[str], place: Path = place, **_: Any) -> None:
            for path in map(Path, objects):
                shutil.copy(path, place / path.name)
            Path(out).touch()

        executable.export_library(str(place / "unlinked.so"), fcompile=keep)
        (generated,) = (part for part in executable.mod.imports if part.kind == "llvm")
        generated.write_to_file(str(place / "code.s"), "s")
        found[name] = in_sections((place / "code.s").read_text(encoding="utf-8")), place / "devc.o"
    return found


def lay_out_code(folder: Path, artifact: Path) -> None:
    sys.path[:0] = paths_of(artifact)
    from tvmdash.relax_util import workloads

    target, build, draw = workloads.make_target(1, ""), Build(), random.Random(7)
    plain = compiled(folder / "plain", target)

    def add(name: str, kind: str, code: Mapping[str, tuple[str, Path]], *flags: str, **more: Any) -> None:
        place = folder / name.replace(" ", "_")
        linked = {
            program: str(link([*before, assemble(text, place / f"{program}.o"), blob], place / f"{program}.so", *flags))
            for program, (text, blob) in code.items()
        }
        build.layouts.append(Layout(name, kind, linked, paths_of(artifact), **more))

    before: list[Path] = []
    for number in range(COPIES):
        add(f"same {number}", "same", plain)
    for seed in range(1, DRAWS + 1):
        add(f"order {seed}", "order", plain, shuffled(seed))
        add(f"environment {seed}", "environment", plain, padding=draw.randrange(1, 8192))
    for source in range(SOURCES):
        moved = {program: (moved_inside(text, source), blob) for program, (text, blob) in plain.items()}
        for number in range(LINKS):
            add(f"inside {source} {number}", "inside", moved, shuffled(100 + source * LINKS + number), source=source)
    for number in range(DRAWS):
        pad = f'\t.section .text,"ax",@progbits\n\t.skip {16 * (1 + number % 3) + 64 * draw.randrange(64)}, 0x90\n'
        before = [assemble(pad, folder / f"pad{number}.o")]
        add(f"shift {number}", "shift", plain)
    before = []
    for name, option in ALIGNED.items():
        add(name, name.split()[0], compiled(folder / name.replace(" ", "_"), {**target, "cl-opt": [option]}))
    again = compiled(folder / "plain_again", target)
    assert {name: text for name, (text, _) in again.items()} == {name: text for name, (text, _) in plain.items()}, (
        "compiling is not deterministic, or an option of LLVM stayed set"
    )
    build.programs = calibrated(build.layouts[0], {name: tuple(shapes) for name, (_, _, shapes) in modules().items()})
    build.write(folder)


def calibrated(layout: Layout, shapes: Mapping[str, tuple[tuple[int, ...], ...]]) -> dict[str, Program]:
    found = {}
    for name, inputs in shapes.items():
        side = Side(layout, {name: Program(inputs, 1)})
        side.wait_until_ready()
        once = min(side.sample(name, 0) for _ in range(5)) / 2
        side.end()
        found[name] = Program(inputs, max(1, round(SAMPLE_NS / once) - 1))
    return found


# TVM's runtime


def lay_out_runtime(folder: Path, artifact: Path, source: Path, code: Path, wheels: Sequence[Path]) -> None:
    given = Build.read(code)
    plain, paths = given.layouts[0].modules, paths_of(artifact)
    ffi = Path(paths[1]) / "tvm_ffi"
    texts = list(map(Path.read_text, runtime_assembly(folder / "assembly", source, ffi / "include")))
    build = Build(given.programs)
    libraries = [f"-L{ffi / 'lib'}", "-ltvm_ffi", "-ldl", "-lpthread", "-Wl,--no-undefined"]
    soname = "-Wl,-soname,libtvm_runtime.so"

    def objects(edit: int | None) -> list[Path]:
        place = folder / f"objects_{edit}"
        edited = [text if edit is None else moved_inside(text, edit * 1000 + at) for at, text in enumerate(texts)]
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(assemble, edited, [place / f"{at}.o" for at in range(len(texts))]))

    def add(name: str, kind: str, parts: Sequence[Path], *flags: str, of: int = 0) -> None:
        place = folder / name.replace(" ", "_")
        link(parts, place / "libtvm_runtime.so", soname, *flags, *libraries)
        build.layouts.append(Layout(name, kind, plain, paths, str(place), source=of))

    parts = objects(None)
    for number in range(COPIES):
        add(f"same {number}", "same", parts)
    for seed in range(1, DRAWS + 1):
        add(f"order {seed}", "order", parts, shuffled(seed))
    for seed in range(1, DRAWS // 2 + 1):
        add(f"all {seed}", "all", parts, shuffled(seed, "*"))
    for edit in range(SOURCES):
        parts = objects(edit)
        for number in range(LINKS):
            add(f"inside {edit} {number}", "inside", parts, shuffled(100 + edit * LINKS + number), of=edit)
    for number, wheel in enumerate(wheels):
        build.layouts += [
            Layout(f"wheel {number} {copy}", f"wheel {number}", plain, paths_of(wheel)) for copy in (0, 1)
        ]
    build.write(folder)


def runtime_assembly(folder: Path, source: Path, include: Path) -> list[Path]:
    """The runtime as g++ writes it, one file for each of its sources; what is there already stays."""
    folder.mkdir(parents=True, exist_ok=True)
    files = sorted(path for pattern in SOURCE_FILES for path in (source / "src").glob(pattern))
    made = [folder / f"{path.parent.name}_{path.stem}.s" for path in files]
    where = [f"-I{source / 'include'}", f"-I{include}", "-isystem", str(source / "3rdparty" / "compiler-rt")]

    def compile_one(path: Path, out: Path) -> None:
        if not out.exists():
            subprocess.run(["g++", *FLAGS, "-w", *where, "-S", str(path), "-o", str(out)], check=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_one, files, made))
    return made


# Measuring


def serve(layout: Layout, programs: Mapping[str, Program]) -> None:
    """A process: load the modules, and take the samples that standard input asks for."""
    import numpy as np
    import tvm
    from tvm.runtime.vm import VirtualMachine

    timers, device = {}, tvm.cpu()
    for name, program in programs.items():
        rng = np.random.default_rng(7)
        inputs = [tvm.runtime.tensor(rng.random(shape).astype("float32"), device) for shape in program.inputs]
        machine = VirtualMachine(tvm.runtime.load_module(layout.modules[name]), device)
        machine.save_function("main", "timed", *inputs, include_return=False)
        timers[name] = machine.time_evaluator("timed", device, number=program.calls, repeat=1)
        timers[name]()
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert layout.runtime in maps, f"{layout.runtime} is not loaded"
    print("ready", flush=True)
    for line in sys.stdin:
        name, core = line.split()
        os.sched_setaffinity(0, {int(core)})
        begun = time.thread_time_ns()
        timers[name]()
        print(time.thread_time_ns() - begun, flush=True)


class Side:
    """A process that takes samples when it is its turn."""

    def __init__(self, layout: Layout, programs: Mapping[str, Program]) -> None:
        own = {
            "TVM_NUM_THREADS": "1",
            "TVM_USE_RUNTIME_LIB": "1",
            "TVM_LIBRARY_PATH": layout.runtime,
            "PYTHONPATH": os.pathsep.join(layout.pythonpath),
            "PADDING": "x" * layout.padding,
        }
        asked = json.dumps([asdict(layout), {name: asdict(program) for name, program in programs.items()}])
        argv = [sys.executable, __file__, "serve", asked]
        environment = {name: value for name, value in (os.environ | own).items() if value}
        self._process = subprocess.Popen(
            argv, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def wait_until_ready(self) -> None:
        assert self._answers.readline() == "ready\n", "the process did not come up"

    def sample(self, program: str, core: int) -> int:
        assert self._process.stdin is not None
        print(program, core, file=self._process.stdin, flush=True)
        return int(self._answers.readline())

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(600)

    @property
    def _answers(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout


def gather(folder: Path, file: Path, rounds: int, core: int, chosen: Sequence[str]) -> None:
    build, draw = Build.read(folder), random.Random(time.time_ns())
    programs = {name: build.programs[name] for name in chosen}
    with file.open("a", encoding="utf-8") as out:
        for number in range(rounds):
            begun = time.monotonic()
            order = draw.sample(range(len(build.layouts)), len(build.layouts))
            sides = {at: Side(build.layouts[at], programs) for at in order}
            for side in sides.values():
                side.wait_until_ready()
            turns = [name for name in programs for _ in range(TURNS.get(name, TURNS_OF_OTHERS))]
            samples: dict[int, dict[str, list[int]]] = {at: {} for at in sides}
            for name in draw.sample(turns, len(turns)):
                for at in draw.sample(list(sides), len(sides)):
                    samples[at].setdefault(name, []).append(sides[at].sample(name, core))
            for side in sides.values():
                side.end()
            rows = [
                {"name": layout.name, "kind": layout.kind, "source": layout.source, "samples": samples[at]}
                for at, layout in enumerate(build.layouts)
            ]
            out.write(json.dumps({"folder": folder.name, "layouts": rows}) + "\n")
            out.flush()
            print(f"round {number + 1} of {rounds}, {time.monotonic() - begun:.0f} s", file=sys.stderr)


# What it says


@dataclass
class Levels:
    """A layout's log times, one for each of its processes, less what was usual in the same turn."""

    kind: str
    source: int
    logs: list[float] = field(default_factory=list)

    @property
    def level(self) -> float:
        return trimmed(self.logs)

    @property
    def variance(self) -> float:
        """That of `level`, a trimmed mean: the winsorised variance over the share that is left."""
        values, out = sorted(self.logs), int(len(self.logs) * TRIM)
        kept = values[out : len(values) - out]
        winsorised = [min(max(value, kept[0]), kept[-1]) for value in values]
        return statistics.variance(winsorised) * len(values) / len(kept) ** 2


def trimmed(values: Sequence[float]) -> float:
    ordered, out = sorted(values), int(len(values) * TRIM)
    return statistics.fmean(ordered[out : len(ordered) - out])


def read(file: Path, program: str) -> dict[str, Levels]:
    """By layout."""
    found: dict[str, Levels] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        rows = json.loads(line)["layouts"]
        samples = [[math.log(sample) for sample in row["samples"][program]] for row in rows]
        middles = list(map(statistics.median, zip(*samples, strict=True)))
        for row, own in zip(rows, samples, strict=True):
            log = trimmed([sample - middle for sample, middle in zip(own, middles, strict=True)])
            found.setdefault(row["name"], Levels(row["kind"], row["source"])).logs.append(log)
    return found


def _with_range(spread: float, noise: float, freedom: int) -> str:
    """What a variance of so many degrees of freedom is without the noise, as a standard deviation in percent.

    The quantiles of chi-squared are Wilson and Hilferty's.
    """
    if freedom == 1:
        return ""  # two copies of a wheel say nothing of luck
    low, middle, high = (
        math.sqrt(max(0.0, spread / (1 - 2 / (9 * freedom) + z * math.sqrt(2 / (9 * freedom))) ** 3 - noise)) * 100
        for z in (Z, 0.0, -Z)
    )
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def lines(file: Path) -> Iterator[str]:
    """Rows of the table in Markdown, and what a relink draws anew in all programs together."""
    first = json.loads(file.read_text(encoding="utf-8").splitlines()[0])
    found = {name: list(read(file, name).values()) for name in first["layouts"][0]["samples"]}
    for program, layouts in found.items():
        base = [layout.level for layout in layouts if layout.kind == "same"]
        for kind in dict.fromkeys(layout.kind for layout in layouts):
            own = [layout for layout in layouts if layout.kind == kind]
            levels = [layout.level for layout in own]
            noise, spread = statistics.fmean(layout.variance for layout in own), statistics.variance(levels)
            process = math.sqrt(statistics.fmean(statistics.variance(layout.logs) for layout in own))
            shift = statistics.fmean(levels) - statistics.fmean(base)
            error = math.sqrt(spread / len(levels) + statistics.variance(base) / len(base))
            cells = [first["folder"], program, kind, f"{len(own)}", f"{len(own[0].logs)}", f"{process * 100:.2f}"]
            cells += [_with_range(spread, noise, len(own) - 1), f"{shift * 100:+.2f} ± {error * 100:.2f}"]
            yield f"| {' | '.join(cells)} |"
    yield from (f"{first['folder']}, {line}" for line in _redrawn(found))


@dataclass(frozen=True)
class Squares:
    """Sums of squares around a mean, and their degrees of freedom."""

    total: float
    freedom: int

    @staticmethod
    def of(*groups: Sequence[float]) -> Squares:
        totals = [statistics.variance(values) * (len(values) - 1) for values in groups]
        return Squares(sum(totals), sum(map(len, groups)) - len(groups))

    def log_likelihood(self, variance: float) -> float:
        return -(self.freedom * math.log(variance) + self.total / variance) / 2


def _redrawn(found: Mapping[str, Sequence[Levels]]) -> Iterator[str]:
    """All luck of each program, and the share of its variance that a link draws: by likelihood, over flat grids.

    Links of one source scatter by the link alone, sources by both. The share is taken to be the same in all programs.
    """
    shares, lucks = [at / 20 for at in range(21)], [at / 5000 for at in range(1, 76)]
    whole = dict.fromkeys(shares, 0.0)
    for program, layouts in found.items():
        by_source = [
            [layout.level for layout in layouts if (layout.kind, layout.source) == ("inside", source)]
            for source in range(SOURCES)
        ]
        links = Squares.of([layout.level for layout in layouts if layout.kind == "order"], *by_source)
        sources = Squares.of(list(map(statistics.fmean, by_source)))
        noise = statistics.fmean(layout.variance for layout in layouts)
        likelihoods = {
            (share, luck): math.exp(
                links.log_likelihood(share * luck**2 + noise)
                + sources.log_likelihood((1 - share) * luck**2 + (share * luck**2 + noise) / LINKS)
                - links.log_likelihood(noise)
                - sources.log_likelihood(noise / LINKS)
            )
            for share in shares
            for luck in lucks
        }
        luck = _quantiles({luck: sum(likelihoods[share, luck] for share in shares) for luck in lucks})
        yield f"{program}: all luck {luck[1] * 100:.2f} % ({luck[0] * 100:.2f} to {luck[2] * 100:.2f})"
        for share in shares:
            whole[share] += math.log(sum(likelihoods[share, luck] for luck in lucks))
    low, middle, high = _quantiles({share: math.exp(log - max(whole.values())) for share, log in whole.items()})
    yield f"a link draws {middle:.0%} of its variance ({low:.0%} to {high:.0%})"


def _quantiles(weights: Mapping[float, float]) -> list[float]:
    """The 5th, the middle and the 95th percentile of values with these weights."""
    total = sum(weights.values())
    sums = dict(zip(weights, itertools.accumulate(weights.values()), strict=True))
    return [next(value for value, sum_ in sums.items() if sum_ >= part * total) for part in (0.05, 0.5, 0.95)]


HEAD = (
    "| what | program | kind | layouts | processes each | sd of a process % | sd between layouts % | mean to same % |\n"
    "|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    code, runtime = verbs.add_parser("code"), verbs.add_parser("runtime")
    for verb in (code, runtime):
        verb.add_argument("folder", type=Path)
        verb.add_argument("--tvm", type=Path, required=True)
    runtime.add_argument("--source", type=Path, required=True)
    runtime.add_argument("--code", type=Path, required=True)
    runtime.add_argument("--wheel", type=Path, action="append", default=[])
    verb = verbs.add_parser("gather")
    verb.add_argument("folder", type=Path)
    verb.add_argument("file", type=Path)
    verb.add_argument("--rounds", type=int, default=20)
    verb.add_argument("--core", type=int, default=1)
    verb.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    verbs.add_parser("table").add_argument("files", type=Path, nargs="+")
    verbs.add_parser("serve").add_argument("asked", type=json.loads)
    given = parser.parse_args()
    match given.verb:
        case "code":
            lay_out_code(given.folder.resolve(), given.tvm.resolve())
        case "runtime":
            wheels = [path.resolve() for path in given.wheel]
            lay_out_runtime(given.folder.resolve(), given.tvm.resolve(), given.source.resolve(), given.code, wheels)
        case "gather":
            gather(given.folder, given.file, given.rounds, given.core, given.programs)
        case "table":
            print(HEAD, *(line for file in given.files for line in lines(file)), sep="\n")
        case _:
            layout, programs = given.asked
            serve(Layout(**layout), {name: Program(**values) for name, values in programs.items()})


if __name__ == "__main__":
    main()
