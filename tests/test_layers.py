"""Who may import whom: design.md, section 7, walked over every import that stands in the code."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
LIBRARY = REPO / "shared" / "python" / "tvmdash"

LAYERS: dict[float, tuple[str, ...]] = {
    # 0: errors, files, words
    0.0: ("__init__", "errors", "removal", "redaction"),
    0.05: ("words",),
    0.1: ("common", "capture_format", "phases", "metrics"),
    0.2: (
        "config_fields",
        "data_migrations",
        "machine_identity",
    ),
    # 1: the protocol, configs, records; what describes a machine and holds raw samples
    1.0: ("stages", "config_util", "records", "machine", "capture", "network_ops", "elf"),
    1.1: ("store_packed", "telemetry_data", "accuracy"),
    # 2: the home, the index, trials and their reduction
    2.0: (
        "bisection",
        "convert",
        "dashboard_info",
        "engines",
        "reduction",
        "series_names",
        "signs",
        "store",
        "trial_util",
    ),
    2.1: (
        "verdict",
        "backfill_calls",
        "backfill_nights",
        "comparison",
        "doubts",
        "engine_store",
        "rivals",
        "networks",
        "traces",
        "records_exchange",
        "home_secrets",
        "ratios",
    ),
    2.2: ("analysis_util", "change_cause", "engine_words", "network_layers", "version_history"),
    2.3: ("version_history_words",),
    # 3: what is seen, said and compiled
    3.0: (
        "annotations",
        "cause_words",
        "incident_ledger",
        "change_noise",
        "plot_layout",
        "plot_canvas",
        "relax_passes",
        "relax_target",
        "slack_secrets",
        "slack_errors",
        "within_night",
    ),
    3.1: (
        "incident_file",
        "incident_words",
        "change_rules",
        "change_luck",
        "change_series",
        "plot_specs",
        "relax_lower",
        "summary_util",
        "slack_payloads",
        "slack_http",
        "slack_patience",
        "onnx_lower",
        "torch_lower",
    ),
    3.2: (
        "change_rerun",
        "change_controls",
        "change_levels",
        "plot_lines",
        "plot_rows",
        "plot_courses",
        "relax_util",
        "rpc_sessions",
        "slack_util",
        "slack_ledger",
        "slack_parts",
    ),
    3.3: (
        "change_common",
        "relax_tuning",
        "change_scan",
        "change_confirm",
        "change_locate",
        "plot_util",
        "check_prerequisites",
        "experiment_info",
        "slack_delivery",
    ),
    3.32: ("change_early", "change_strong"),
    3.34: ("change_place", "change_search"),
    3.4: ("change_grade", "change_points", "series_plots", "relax_workload", "plot_files"),
    3.5: (
        "case_words",
        "change_ahead",
        "change_fleet",
        "experiment_points",
        "experiment_rounds",
        "experiment_setup",
        "incident_replay",
        "slack_threads",
    ),
    3.6: (
        "experiment_measure",
        "incidents",
    ),
    3.7: ("experiment_run",),
    3.8: ("experiment_results",),
    # 4: the authors' surfaces
    4.0: ("exp_templates", "subsys_templates"),
    4.1: ("relax_templates",),
}
LAYER = {module: layer for layer, modules in LAYERS.items() for module in modules}
DASHBOARD_MAY_USE = 3.0
"""The dashboard imports what lies below this layer."""

PLOTS = {path.stem for path in LIBRARY.glob("plot_*.py")}
HEAVY: dict[str, set[str]] = {
    "matplotlib": PLOTS,
    "seaborn": PLOTS,
    "pandas": {"traces"},  # what `.df()` gives
    "duckdb": {"traces", "convert", "records_exchange"},
    "tvm": {
        "relax_lower",
        "relax_passes",
        "relax_target",
        "relax_tuning",
        "relax_util",
        "relax_workload",
        "rpc_sessions",
    },
    "tvm_ffi": {"relax_util"},
    "torch": {"torch_lower"},
    "onnx": {"onnx_lower"},
    "jsonschema": {"config_util", "records", "summary_util"},
    "jinja2": set(),
    "requests": {"slack_http"},
    "urllib3": {"slack_http"},
}
"""Heavy packages, and the modules of tvmdash behind which each stands."""
LAZY_EVERYWHERE = frozenset(HEAVY)


@dataclass(frozen=True)
class Import:
    """One import: the module `name`, at `place`, executed on import of its file where `eager`."""

    name: str
    place: str
    eager: bool

    @property
    def package(self) -> str:
        return self.name.split(".")[0]


def imports_in(path: Path) -> list[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return list(_imports(tree, path, eager=True))


def _imports(node: ast.AST, path: Path, *, eager: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        place = f"{path}:{getattr(child, 'lineno', 0)}"
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, place, eager) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{place}: a relative import. Write the whole name."
            yield from (Import(f"{child.module}.{alias.name}", place, eager) for alias in child.names)
        else:
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or _is_for_types(child)
            yield from _imports(child, path, eager=eager and not inside)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def modules_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def module_of(path: Path) -> str:
    """The module of tvmdash that a file of it is, or the package that it belongs to."""
    return path.relative_to(LIBRARY).parts[0].removesuffix(".py")


def library_module(name: str) -> str | None:
    """The module of tvmdash that an import of `name` reaches."""
    parts = name.split(".")
    if parts[0] != "tvmdash":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in LAYER else "__init__"


def test_every_module_of_the_library_has_its_layer() -> None:
    there = {module_of(path) for path in modules_of(LIBRARY)}
    without = sorted(there - set(LAYER))
    assert not without, f"{without}: give each a layer in LAYERS, above all that it imports"


def test_the_library_imports_only_strictly_lower_layers() -> None:
    faults = [
        f"{found.place}: {(own := module_of(path))} (layer {LAYER.get(own)}) imports {target} (layer {LAYER[target]})"
        for path in modules_of(LIBRARY)
        for found in imports_in(path)
        if (target := library_module(found.name))
        and target != "__init__"
        and LAYER[target] >= LAYER.get(module_of(path), 9)
        and target != module_of(path)
    ]
    assert not faults, "\n".join(faults)


def test_the_library_knows_nothing_above_it() -> None:
    faults = [
        f"{found.place}: {found.name}"
        for path in modules_of(LIBRARY)
        for found in imports_in(path)
        if found.package in {"dashboard", "experiments", "subsystem", "tests"}
    ]
    assert not faults, "\n".join(faults)


def test_the_dashboard_uses_only_the_lower_layers() -> None:
    faults = [
        f"{found.place}: {found.name}"
        for path in modules_of(REPO / "dashboard")
        for found in imports_in(path)
        if found.package in {"tvm", "experiments", "subsystem", "matplotlib", "seaborn", "numpy"}
        or ((target := library_module(found.name)) and LAYER[target] >= DASHBOARD_MAY_USE)
    ]
    # health.py runs in a process of its own, on the TVM that it examines
    faults = [fault for fault in faults if "/artifacts/health.py:" not in fault]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("kind", ["experiments", "subsystem"])
def test_jobs_import_neither_the_dashboard_nor_one_another(kind: str) -> None:
    faults = []
    folders = [folder for folder in (REPO / kind).iterdir() if folder.is_dir()]
    names = {path.stem: folder for folder in folders for path in modules_of(folder)}
    for folder in folders:
        own = {path.stem for path in modules_of(folder)}
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
        for path in modules_of(LIBRARY)
        for found in imports_in(path)
        if found.package in HEAVY and (module_of(path) not in HEAVY[found.package] or found.eager)
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


def test_the_walk_sees_imports_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "import a.b\nif TYPE_CHECKING:\n    import t\ndef f():\n    from c import d\ntry:\n    import e\nfinally: 0\n"
    )
    seen = {(found.name, found.eager) for found in imports_in(path)}
    assert seen == {("a.b", True), ("t", False), ("c.d", False), ("e", True)}


def test_the_walk_reads_the_code_that_runs() -> None:
    assert len(modules_of(REPO / "dashboard")) > 20
    assert {"annotations"} <= {found.name.split(".")[-1] for found in imports_in(LIBRARY / "common.py")}
    assert "tvmdash" not in sys.stdlib_module_names
