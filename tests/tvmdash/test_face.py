"""The names of tvmdash that authors import."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import tvmdash

LIBRARY = Path(tvmdash.__file__).parent
PUBLIC = (
    "common",
    "dashboard_info",
    "plot_util",
    "config_util",
    "check_prerequisites",
    "trial_util",
    "analysis_util",
    "exp_templates",
    "summary_util",
    "slack_util",
    "relax_util",
    "traces",
)
"""What the ancestor's experiments and private ones of today import; they stay where they are."""
NAMES: dict[str, str] = {
    "common": "Json STAMP_FORMAT DashboardError dump_json first_non_finite folder_beside is_stamp object_in parse_json"
    " parse_stamp read_json remove_unfinished stamp_of swap_in utc_now write_bytes write_json write_text",
    "dashboard_info": "BLOCKED COMPLETE FAILED HOST_SIGN Home HostNight HostState INTERRUPTED JobResult MissingBackup"
    " Night OF_REFERENCE OK PartialData RUNNING Reference ReferenceChoice SKIPPED STAMP_FILE StepReason StepResult"
    " VARIANT_SIGN check_summary experiment_of host_of make_title variant_of Home.config Home.data Home.data_file"
    " Home.data_stamps Home.graph Home.last_nights Home.night_file Home.night_stamps Home.of_data_dir Home.output"
    " Home.read_night Home.read_report Home.read_summary Home.store_file Home.summary Night.experiments"
    " Night.subsystems",
    "plot_util": "Bar BarValue Course Distribution Estimate GroupedBar HeatMap Line Longitudinal Mark Panel Plot Span"
    " Track alt_text draw render",
    "config_util": "Beside CONFIG_FILE Config ConfigError DEVICE_FIELDS EXPERIMENT_FIELDS FIELDS_FILE FIELD_SETS"
    " FOREIGN_SCHEMA Field Fields HOME_FIELDS HOST_FIELDS JOB_FIELDS JobConfig METRICS OWNER_FIELDS REQUIRED"
    " ROUTE_FIELDS SIZES SUBSYSTEM_FIELDS check check_metrics compile_schema faults_of make read_beside read_config"
    " read_fields read_metrics read_needs_tvm read_takes_minutes resolve_annotations structure values_of",
    "check_prerequisites": "Need is_switched_off needs_any needs_config needs_experiment needs_setting needs_subsystem"
    " unmet",
    "trial_util": "MIN_SAMPLES Sample Timer Timing calibrate python_timer take_sample time_workload waiting_timer",
    "analysis_util": "Beside EndedBy METRICS OPERATORS SCHEMA_VERSION Failure Record Reduced Trial describe_statistics"
    " failure_of find_doubts group_by_point reduce reduce_processes",
    "exp_templates": "Axis Engine EngineFacts Experiment ExperimentConfig History OperatorSpan Point Prepared Record"
    " Experiment.axes Experiment.derive Experiment.environment Experiment.inputs Experiment.inputs_engine"
    " Experiment.leave_files Experiment.main Experiment.make_inputs Experiment.plots Experiment.points"
    " Experiment.prepare Experiment.runs_on_devices Experiment.summary Experiment.target History.values",
    "summary_util": "Failure Measured Ratio SUMMARY_SCHEMA Section SectionKind Summary default_summary format_bytes"
    " format_duration format_list format_percent_change format_quantity format_ratio geometric_mean_ratio parse_summary"
    " Summary.to_json Summary.with_lines Summary.without SectionKind.CHANGES SectionKind.ENGINES SectionKind.EXTREMES"
    " SectionKind.FAILED SectionKind.MEASURED SectionKind.OTHER",
    "slack_util": "API_URL API_URL_VARIABLE EVENT SCOPES SPEAKERS Slack check main",
    "slack_util.delivery": "Attachment SlackConfig attach deliver open_slack tell",
    "relax_util": "CompileOptions Compiled EXEC_MODES Loaded TvmFacts compile_module load tvm_facts use_threads"
    " Loaded.python_timer Loaded.run Loaded.timer",
    "relax_util.workloads": "TVM Program make_prepared make_target target target_text",
    "traces": "Connection Cursor DataError DatabaseError Error Filters IntegrityError InterfaceError InternalError"
    " NotSupportedError OperationalError ProgrammingError Straddle Warning Window apilevel connect paramstyle"
    " threadsafety Cursor.arrow Cursor.df",
    "traces.retention": "prune",
    "traces.sealing": "seal",
    # what the same pages name beside these modules
    "convert": "Counter Flow Slice write_perfetto",
    "errors": "DashboardError",
    "experiment.on_devices": "AXIS",
    "experiment.reference_engines": "ONNXRUNTIME TORCH",
    "networks.accuracy": "check_answer",
    "records": "read_data",
    "relax_templates": "CompileOptions Program RelaxExperiment make_program RelaxExperiment.options",
    "slack_delivery": "open_slack tell",
    "store": "open_for_reading",
    "subsys_templates": "Report Subsystem Subsystem.faults Subsystem.main Subsystem.needs Subsystem.work",
    "text": "format_duration",
    "within_night": "allowed_s call",
}
"""By module the names that commit 67c9a73 documented, or had in the module's own list, for whoever writes outside."""


@pytest.mark.parametrize("name", PUBLIC)
def test_the_modules_that_authors_know_are_there(name: str) -> None:
    importlib.import_module(f"tvmdash.{name}")


@pytest.mark.parametrize("module", NAMES)
def test_the_names_that_authors_know_are_there(module: str) -> None:
    package, _, last = f"tvmdash.{module}".rpartition(".")
    found: dict[str, object] = {}
    exec(f"from {package} import {last}", found)  # as an author writes it
    assert [name for name in NAMES[module].split() if not has(found[last], name)] == []


def has(value: object, name: str) -> bool:
    first, _, rest = name.partition(".")
    return hasattr(value, first) and (not rest or has(getattr(value, first), rest))


@pytest.mark.parametrize("name", tvmdash.__all__)
def test_the_face_of_the_library_gives_what_it_lists(name: str) -> None:
    assert getattr(tvmdash, name).__name__ == name


def test_type_checkers_see_the_same_face() -> None:
    stub = (LIBRARY / "__init__.pyi").read_text(encoding="utf-8")
    assert all(f"import {name} as {name}\n" in stub for name in tvmdash.__all__)
