"""Modules that have another place since the library became packages. The old names go on, with a word to the author."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.abc import InspectLoader, MetaPathFinder
else:
    InspectLoader = MetaPathFinder = object  # every stage imports this; importlib.abc takes longer than all the rest

PACKAGE = "tvmdash"

RENAMED: Mapping[str, str] = {
    "accuracy": "networks.accuracy",
    "annotations": "incidents.annotations",
    "backfill_calls": "backfill.calls",
    "backfill_nights": "backfill.nights",
    "bisection": "stats.bisection",
    "capture": "measure.capture",
    "capture_format": "measure.capture_format",
    "case_words": "experiment.configuration_text",
    "cause_words": "incidents.cause_text",
    "change_ahead": "detect.fleet.ahead",
    "change_cause": "detect.cause",
    "change_common": "detect.fleet.common",
    "change_confirm": "detect.confirm",
    "change_controls": "detect.fleet.controls",
    "change_early": "detect.early",
    "change_fleet": "detect.fleet.fleet",
    "change_grade": "detect.grade",
    "change_levels": "detect.levels",
    "change_locate": "detect.locate",
    "change_luck": "detect.luck",
    "change_noise": "detect.noise",
    "change_place": "detect.place",
    "change_points": "detect.change_points",
    "change_rerun": "detect.rerun",
    "change_rules": "detect.rules",
    "change_scan": "detect.scan",
    "change_search": "detect.search",
    "change_series": "detect.series",
    "change_strong": "detect.strong",
    "comparison": "stats.comparison",
    "config_fields": "config_util.fields",
    "data_migrations": "records.migrations",
    "doubts": "measure.quality",
    "elf": "measure.elf",
    "engine_store": "experiment.engine_store",
    "engine_words": "experiment.engine_text",
    "engines": "experiment.engines",
    "experiment_info": "experiment.info",
    "experiment_measure": "experiment.measure",
    "experiment_points": "experiment.points",
    "experiment_results": "experiment.results",
    "experiment_rounds": "experiment.rounds",
    "experiment_run": "experiment.run",
    "experiment_setup": "experiment.setup",
    "incident_file": "incidents.file",
    "incident_ledger": "incidents.ledger",
    "incident_replay": "incidents.replay",
    "incident_words": "incidents.text",
    "machine_identity": "machine.identity",
    "metrics": "records.metrics",
    "network_layers": "networks.layers",
    "network_ops": "networks.ops",
    "onnx_lower": "networks.to_onnx",
    "phases": "measure.phases",
    "plot_canvas": "plot_util.canvas",
    "plot_courses": "plot_util.courses",
    "plot_files": "plot_util.files",
    "plot_layout": "plot_util.layout",
    "plot_lines": "plot_util.lines",
    "plot_rows": "plot_util.rows",
    "plot_specs": "plot_util.specs",
    "ratios": "stats.ratios",
    "reduction": "stats.reduction",
    "relax_lower": "relax_util.lowering",
    "relax_passes": "relax_util.passes",
    "relax_target": "relax_util.targets",
    "relax_tuning": "relax_util.tuning",
    "relax_workload": "relax_util.workloads",
    "removal": "files.removal",
    "rivals": "experiment.reference_engines",
    "rpc_sessions": "relax_util.rpc",
    "series_names": "series.naming",
    "series_plots": "experiment.plots",
    "signs": "stats.signs",
    "slack_delivery": "slack_util.delivery",
    "slack_errors": "slack_util.errors",
    "slack_http": "slack_util.transport",
    "slack_ledger": "slack_util.ledger",
    "slack_parts": "slack_util.parts",
    "slack_patience": "slack_util.patience",
    "slack_payloads": "slack_util.payloads",
    "slack_secrets": "slack_util.token",
    "slack_threads": "slack_util.threads",
    "store": "series.store",
    "store_packed": "series.packed",
    "telemetry_data": "machine.telemetry",
    "torch_lower": "networks.to_torch",
    "traces.converters": "traces.export.converters",
    "traces.event_writers": "traces.export.event_writers",
    "traces.events": "traces.export.events",
    "traces.json_reader": "traces.readers.json_reader",
    "traces.raw_reader": "traces.readers.raw_reader",
    "traces.raw_reading": "traces.readers.raw_reading",
    "traces.raw_runs": "traces.readers.raw_runs",
    "traces.rocpd_queries": "traces.readers.rocpd_queries",
    "traces.rocpd_reader": "traces.readers.rocpd_reader",
    "traces.sqlite_input": "traces.readers.sqlite_input",
    "version_history": "backfill.history",
    "version_history_words": "backfill.history_text",
    "within_night": "measure.within_night",
    "words": "text",
}
"""The old name of a module of tvmdash, and the new one."""

FUNCTIONS: Mapping[str, Mapping[str, str]] = {
    "tvmdash.text": {
        "missing_backups_in_words": "describe_missing_backups",
        "bytes_in_words": "format_bytes",
        "duration_in_words": "format_duration",
        "estimate_in_words": "format_estimate",
        "exact_in_words": "format_exact",
        "list_in_words": "format_list",
        "percent_in_words": "format_percent",
        "percent_range_in_words": "format_percent_range",
        "quantity_in_words": "format_quantity",
    },
    "tvmdash.summary_util": {
        "bytes_in_words": "format_bytes",
        "duration_in_words": "format_duration",
        "list_in_words": "format_list",
        "percent_change_in_words": "format_percent_change",
        "quantity_in_words": "format_quantity",
        "ratio_in_words": "format_ratio",
    },
    "tvmdash.stats.ratios": {
        "ratio_in_words": "format_ratio",
    },
    "tvmdash.plot_util.courses": {
        "course_in_words": "format_course",
    },
}
"""By module: the old name of a function, and the new one."""


class _Loader(InspectLoader):
    """Loads the module at its new place; the old name is another name of the same module."""

    def __init__(self, new: str) -> None:
        self._new = new
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system wrote the old name into it

    def get_code(self, fullname: str) -> CodeType | None:
        """What `python3 -m OLD_NAME` runs."""
        spec = importlib.util.find_spec(self._new)
        get_code: Callable[[str], CodeType | None] | None = getattr(spec and spec.loader, "get_code", None)
        return get_code(self._new) if get_code else None

    def get_source(self, fullname: str) -> str | None:
        return None


class RenamedModules(MetaPathFinder):
    """Finds modules of tvmdash by the names that they had."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a renamed module, after a DeprecationWarning that names its place; None for any other name."""
        package, _, old = fullname.partition(".")
        if package != PACKAGE or old not in RENAMED:
            return None
        new = f"{PACKAGE}.{RENAMED[old]}"
        warnings.warn(f"{fullname} is now {new}; import it from there.", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, _Loader(new))


def install() -> None:
    """Make the old names known, once, after every other way of finding a module."""
    if not any(isinstance(finder, RenamedModules) for finder in sys.meta_path):
        sys.meta_path.append(RenamedModules())


def function_finder(module: str) -> Callable[[str], object]:
    """What `__getattr__` of the module is: functions by the names that they had, each with a DeprecationWarning."""

    def find(name: str) -> object:
        new = FUNCTIONS[module].get(name)
        if new is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is now {module}.{new}.", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], new)

    return find
