"""Who may import whom, a row for each package, walked over every import that stands in the code."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.imports import gc_paused, imports_in, modules_of

REPO = Path(__file__).resolve().parent.parent
LIBRARY = REPO / "shared" / "python" / "tvmdash"
TRACES = REPO / "shared" / "python" / "tvmtraces"
ROOTS = {"tvmdash": LIBRARY, "tvmtraces": TRACES, "dashboard": REPO / "dashboard"}
UNDER_TRACES = {"common", "errors", "measure", "text"}
"""What of tvmdash the package of traces knows: the format of raw databases, and nothing of nights."""

FLOORS: dict[str, str] = {
    "convert": "",
    "errors": "",
    "redaction": "",
    "networks": "errors",
    "text": "redaction",
    "common": "errors text",
    "config_util": "common errors",
    "judge": "common errors",
    "plot_util": "common errors text",
    "machine": "common config_util errors",
    "summary_util": "common errors judge text",
    "dashboard_info": "common config_util errors machine redaction",
    "check_prerequisites": "common config_util dashboard_info errors text",
    "measure": "common config_util dashboard_info errors judge",
    "records": "common dashboard_info errors machine text",
    "verdict": "common dashboard_info errors judge text",
    "analysis_util": "machine measure records",
    "series": "common errors machine records",
    "subsys_templates": "check_prerequisites common config_util dashboard_info errors",
    "traces": "common dashboard_info errors judge machine records",
    "trial_util": "measure",
    "trials": "common dashboard_info errors records text",
    "experiment": "analysis_util common config_util dashboard_info errors machine measure plot_util records series"
    " summary_util text trial_util",
    "incidents": "common dashboard_info errors judge records series text trials",
    "exp_templates": "common config_util dashboard_info experiment machine measure plot_util records summary_util",
    "notify": "common config_util dashboard_info errors incidents records series text verdict",
    "relax_util": "common errors experiment machine measure networks trial_util",
    "relax_templates": "config_util exp_templates experiment networks relax_util",
    "slack_util": "notify",
    "store": "common dashboard_info errors incidents notify records series traces trials verdict",
    "signoff": "common dashboard_info errors incidents judge machine records series store text trials verdict",
}
"""The packages and plain modules of tvmdash from the ground up; what each imports stands above it here."""

ROOMS: dict[str, str] = {
    "process": "",
    "archive": "",
    "importing": "",
    "upkeep": "archive",
    "artifacts": "process",
    "schedule": "",
    "plan": "archive artifacts process schedule",
    "report": "plan",
    "hosts": "artifacts plan process",
    "night": "archive artifacts hosts plan process upkeep",
    "worker": "artifacts hosts night plan",
    "trials": "artifacts night plan process",
    "github": "artifacts",
    "authoring": "artifacts night plan",
    "cli": "archive artifacts authoring github hosts importing night plan process report schedule trials upkeep worker",
}
"""The packages of dashboard from the ground up, and what each imports of the others."""

JOB_ROOMS: dict[str, dict[str, str]] = {
    "website": {
        "files": "",
        "markup": "",
        "views": "files markup",
        "render": "markup views",
        "data": "files views",
        "incident": "data files markup render views",
        "pages": "data files incident markup render views",
    },
    "stat_alerts": {
        "judging": "",
        "rerun": "judging",
        "report": "judging rerun",
    },
}
"""The packages of the larger subsystems, likewise; the modules beside them join them."""

NEVER_IN_THE_DASHBOARD = {"exp_templates", "subsys_templates", "plot_util", "slack_util", "relax_util"}
"""What of tvmdash the application does not import, but for the verb that tries Slack: it runs scripts, it is none."""

HEAVY: dict[str, set[str]] = {
    "matplotlib": {"plot_util"},
    "seaborn": {"plot_util"},
    "pandas": {"tvmtraces.database", "store"},  # what `.df()` gives
    "duckdb": {"tvmtraces", "records"},
    "tvm": {"relax_util"},
    "tvm_ffi": {"relax_util"},
    "torch": {"networks.to_torch", "experiment.on_cuda"},
    "onnx": {"networks.to_onnx"},
    "pynvml": {"machine.nvml"},
    "jsonschema": {"config_util.schema", "common.json_schema"},
    "jsonschema_rs": {"common.json_schema"},
    "cattrs": {"common.structured"},
    "jinja2": set(),
    "requests": {"common.http_util"},
    "urllib3": {"common.http_util"},
}
"""Heavy packages, and the packages and modules of tvmdash behind which each stands."""
LAZY_EVERYWHERE = frozenset(HEAVY)


def dotted(path: Path) -> str:
    """The name of a file of tvmdash within the library, as `series.store`; of tvmtraces, with that before it."""
    root = LIBRARY if path.is_relative_to(LIBRARY) else TRACES.parent
    return ".".join(path.relative_to(root).with_suffix("").parts)


def floor_of(path: Path) -> str:
    """The package or plain module of tvmdash that a file belongs to."""
    return dotted(path).split(".")[0]


def library_floor(name: str) -> str | None:
    """The package or plain module of tvmdash that an import of `name` reaches; None for other packages."""
    parts = name.split(".")
    if parts[0] != "tvmdash":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in FLOORS else "__init__"


def arrows_of(rows: dict[str, str]) -> dict[str, set[str]]:
    return {name: set(row.split()) for name, row in rows.items()}


@pytest.mark.parametrize("rows", [FLOORS, ROOMS, *JOB_ROOMS.values()], ids=["tvmdash", "dashboard", *JOB_ROOMS])
def test_each_row_names_only_what_stands_above_it(rows: dict[str, str]) -> None:
    names = list(rows)
    for name, below in arrows_of(rows).items():
        assert below <= set(names[: names.index(name)]), f"{name}: {below - set(names[: names.index(name)])}"


def test_every_package_and_module_of_the_library_has_its_row() -> None:
    there = {floor_of(path) for path in modules_of(LIBRARY)} - {"__init__", "__main__"}
    assert there == set(FLOORS)


def test_the_drawing_of_the_house_is_true() -> None:
    drawn = subprocess.run([sys.executable, REPO / "tests/make_house.py"], capture_output=True, text=True, check=True)
    kept = (REPO / "docs/explanation/house.svg").read_text(encoding="utf-8")
    assert kept == drawn.stdout, "python3 tests/make_house.py > docs/explanation/house.svg"


def test_the_library_imports_what_its_rows_say() -> None:
    seen: dict[str, set[str]] = {name: set() for name in FLOORS}
    for path in modules_of(LIBRARY):
        if (own := floor_of(path)) in FLOORS:
            seen[own] |= {floor for found in imports_in(path) if (floor := library_floor(found.name))}
    assert {name: floors - {name, "__init__"} for name, floors in seen.items()} == arrows_of(FLOORS)


def test_traces_know_nothing_of_nights() -> None:
    found = {found.name for path in modules_of(TRACES) for found in imports_in(path)}
    assert {library_floor(name) for name in found} - {None} == UNDER_TRACES


def test_the_dashboard_imports_what_its_rows_say() -> None:
    seen: dict[str, set[str]] = {name: set() for name in ROOMS}
    for path in modules_of(REPO / "dashboard"):
        room = path.relative_to(REPO / "dashboard").parts[0]
        if room in ROOMS:
            seen[room] |= {found.name.split(".")[1] for found in imports_in(path) if found.package == "dashboard"}
    assert {name: rooms - {name} for name, rooms in seen.items()} == arrows_of(ROOMS)


@pytest.mark.parametrize("job", JOB_ROOMS)
def test_the_larger_subsystems_import_what_their_rows_say(job: str) -> None:
    rows = JOB_ROOMS[job]
    seen: dict[str, set[str]] = {name: set() for name in rows}
    for path in modules_of(REPO / "subsystem" / job):
        room = path.relative_to(REPO / "subsystem" / job).parts[0]
        if room in rows:
            seen[room] |= {found.package for found in imports_in(path)} & set(rows)
    assert {name: rooms - {name} for name, rooms in seen.items()} == arrows_of(rows)


def test_no_module_imports_itself_by_way_of_others() -> None:
    modules = {_module_name(path, root): path for root in ROOTS.values() for path in modules_of(root)}
    graph = {name: _modules_reached(path, modules) - {name} for name, path in modules.items()}
    TopologicalSorter(graph).prepare()  # CycleError names the circle


def _module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _modules_reached(path: Path, modules: dict[str, Path]) -> set[str]:
    """Types and imports in functions count; so does the package of which a name is imported."""
    return {
        name for found in imports_in(path) for name in (found.name, found.name.rpartition(".")[0]) if name in modules
    }


def test_the_library_knows_nothing_above_it() -> None:
    faults = [
        f"{found.place}: {found.name}"
        for path in [*modules_of(LIBRARY), *modules_of(TRACES)]
        for found in imports_in(path)
        if found.package in {"dashboard", "experiments", "subsystem", "tests"}
    ]
    assert not faults, "\n".join(faults)


def test_the_dashboard_knows_neither_tvm_nor_what_authors_use() -> None:
    faults = [
        f"{found.place}: {found.name}"
        for path in modules_of(REPO / "dashboard")
        for found in imports_in(path)
        if found.package in {"tvm", "experiments", "subsystem", "matplotlib", "seaborn", "numpy"}
        or found.name.startswith("tvmdash.judge.history")
        or (library_floor(found.name) in NEVER_IN_THE_DASHBOARD and path.name != "notify.py")
    ]
    # health.py runs in a process of its own, on the TVM that it examines
    faults = [fault for fault in faults if "/artifacts/health.py:" not in fault]
    assert not faults, "\n".join(faults)


def top_of(path: Path, folder: Path) -> str:
    """The name by which the folder's scripts import a module of it, or the package of that."""
    return path.relative_to(folder).parts[0].removesuffix(".py")


@pytest.mark.parametrize("kind", ["experiments", "subsystem"])
def test_jobs_import_neither_the_dashboard_nor_one_another(kind: str) -> None:
    faults = []
    folders = [folder for folder in (REPO / kind).iterdir() if folder.is_dir()]
    names = {top_of(path, folder): folder for folder in folders for path in modules_of(folder)}
    for folder in folders:
        own = {top_of(path, folder) for path in modules_of(folder)}
        for path in modules_of(folder):
            for found in imports_in(path):
                stranger = found.package in {"dashboard", "experiments", "subsystem"}
                neighbour = found.package in names and found.package not in own
                tvm = kind == "subsystem" and found.package == "tvm"
                if stranger or neighbour or tvm:
                    faults.append(f"{found.place}: {found.name}")
    assert not faults, "\n".join(faults)


def test_each_heavy_package_stands_behind_its_own_modules_and_is_imported_where_used() -> None:
    faults = [
        f"{found.place}: {found.name}" + (" on import; do it in the function that uses it" if found.eager else "")
        for path in [*modules_of(LIBRARY), *modules_of(TRACES)]
        for found in imports_in(path)
        if found.package in HEAVY and (found.eager or not {floor_of(path), dotted(path)} & HEAVY[found.package])
    ]
    assert not faults, "\n".join(faults)


def test_the_dashboard_imports_heavy_packages_where_used() -> None:
    faults = [
        f"{found.place}: {found.name}"
        for path in modules_of(REPO / "dashboard")
        for found in imports_in(path)
        if found.eager and found.package in LAZY_EVERYWHERE and path.name != "health.py"
    ]
    assert not faults, "\n".join(faults)


def test_there_is_one_lock() -> None:
    users = [
        path.relative_to(REPO)
        for folder in ("dashboard", "experiments", "shared", "subsystem")
        for path in modules_of(REPO / folder)
        if any(found.package == "fcntl" for found in imports_in(path))
    ]
    assert users == [Path("shared/python/tvmdash/common/files/lock.py")]


_OF_TREES = frozenset(("shutil.rmtree", "shutil.copytree", "os.walk", "os.fwalk"))
_OWN_CODE = ("subsystem/website/files/static.py", "subsystem/website/files/incremental.py")
"""They look through the website's own sources."""


def test_one_module_handles_trees_that_others_left() -> None:
    """What stands in the library of Python recurses, follows, hangs or raises."""
    faults = [
        f"{path.relative_to(REPO)}:{use}"
        for folder in PRODUCT
        for path in modules_of(REPO / folder)
        if not path.as_posix().endswith(("files/trees.py", *_OWN_CODE))
        for use in _read(path).trees
    ]
    assert not faults, "\n".join(faults)


def test_the_walk_sees_imports_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "import a.b\nif TYPE_CHECKING:\n    import t\ndef f():\n    from c import d\ntry:\n    import e\nfinally: 0\n"
    )
    seen = {(found.name, found.eager) for found in imports_in(path)}
    assert seen == {("a.b", True), ("t", False), ("c.d", False), ("e", True)}


def test_the_walk_reads_the_code_that_runs() -> None:
    assert len(modules_of(REPO / "dashboard")) > 20
    assert {"annotations"} <= {found.name.split(".")[-1] for found in imports_in(LIBRARY / "common" / "__init__.py")}
    assert "tvmdash" not in sys.stdlib_module_names


CEILINGS = {
    "import chain": 18,
    "class names used twice": 18,
    "entries of a folder": 21,
    "rooms of the library": 31,
    "arrows between them": 141,
    "modules outside the judge that do its statistics": 1,
    "docstrings without a verb": 0,
    "lines of product Python": 89_782,
}
"""What may only fall: how much of the tree one must hold in mind. Lower a number when it has fallen."""
_RIDDLES = re.compile(r"(What|Whether|How|So many|The same)\b")
"""How a docstring begins that leaves its subject and verb to the reader."""
PRODUCT = ("dashboard", "experiments", "shared", "subsystem")


def test_what_one_must_hold_in_mind_does_not_grow() -> None:
    assert {name: value for name, value in measure_house().items() if value > CEILINGS[name]} == {}


def measure_house() -> dict[str, int]:
    """Count what CEILINGS bounds, as the tree is now."""
    return {
        "import chain": max(map(_longest_chain_of, ROOTS)),
        "class names used twice": sum(count > 1 for count in _count_class_names().values()),
        "entries of a folder": max(_count_entries().values()),
        "rooms of the library": len(FLOORS),
        "arrows between them": sum(map(len, arrows_of(FLOORS).values())),
        "modules outside the judge that do its statistics": sum(map(_does_statistics, _product_modules())),
        "docstrings without a verb": sum(_read(path).riddles for path in _product_modules()),
        "lines of product Python": sum(len(path.read_bytes().splitlines()) for path in _product_modules()),
    }


def _product_modules() -> list[Path]:
    return [path for folder in PRODUCT for path in modules_of(REPO / folder) if "setup" not in path.parts]


def _longest_chain_of(package: str) -> int:
    """Modules on the longest way of imports down from one of `package`, through all packages."""
    modules = {_module_name(path, root): path for root in ROOTS.values() for path in modules_of(root)}
    depth: dict[str, int] = {}
    for name in TopologicalSorter(
        {name: _modules_reached(path, modules) - {name} for name, path in modules.items()}
    ).static_order():
        depth[name] = 1 + max((depth[other] for other in _modules_reached(modules[name], modules) - {name}), default=0)
    return max(value for name, value in depth.items() if name.startswith(package))


def _count_class_names() -> Counter[str]:
    return Counter(name for path in _product_modules() for name in _read(path).classes)


@dataclass(frozen=True)
class _Module:
    """classes: their names. riddles: of the strings that stand alone, docstrings of constants and fields among them.
    trees: uses of what handles trees of files in Python's library, each with its line.
    """

    classes: tuple[str, ...]
    riddles: int
    trees: tuple[str, ...]


@functools.cache
def _read(path: Path) -> _Module:
    with gc_paused():
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
        texts = [
            node.value.value for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ]
        used = [node for node in nodes if isinstance(node, ast.Attribute)]
        return _Module(
            tuple(node.name for node in nodes if isinstance(node, ast.ClassDef)),
            sum(isinstance(text, str) and bool(_RIDDLES.match(text)) for text in texts),
            tuple(f"{use.lineno}: {use.attr}" for use in used if use.attr == "rglob" or _dotted(use) in _OF_TREES),
        )


def _dotted(use: ast.Attribute) -> str:
    return f"{use.value.id}.{use.attr}" if isinstance(use.value, ast.Name) else ""


def _count_entries() -> Counter[str]:
    listed = subprocess.run(["git", "ls-files", *PRODUCT], cwd=REPO, capture_output=True, text=True, check=True)
    return Counter(str(Path(name).parent) for name in listed.stdout.splitlines())


def _does_statistics(path: Path) -> bool:
    inside = path.is_relative_to(LIBRARY) and floor_of(path) == "judge"
    return not inside and any(found.name.startswith("tvmdash.judge.student") for found in imports_in(path))
