"""Configs: fields as data, compiled to JSON Schema, and the check that names file, place, value and remedy."""

from __future__ import annotations

from tvmdash.config_util.fields import (
    EXPERIMENT_FIELDS,
    FIELD_SETS,
    HOME_FIELDS,
    JOB_FIELDS,
    REQUIRED,
    SIZES,
    SUBSYSTEM_FIELDS,
    Field,
    Fields,
)
from tvmdash.config_util.schema import (
    CONFIG_FILE,
    FIELDS_FILE,
    FOREIGN_SCHEMA,
    METRICS,
    ConfigError,
    check,
    check_metrics,
    compile_schema,
    faults_of,
    read_config,
    read_fields,
    read_metrics,
    read_needs_tvm,
    read_takes_minutes,
)
from tvmdash.config_util.typed import Config, JobConfig, make, resolve_annotations, structure, values_of

__all__ = [
    "CONFIG_FILE",
    "EXPERIMENT_FIELDS",
    "FIELDS_FILE",
    "FIELD_SETS",
    "FOREIGN_SCHEMA",
    "HOME_FIELDS",
    "JOB_FIELDS",
    "METRICS",
    "REQUIRED",
    "SIZES",
    "SUBSYSTEM_FIELDS",
    "Config",
    "ConfigError",
    "Field",
    "Fields",
    "JobConfig",
    "check",
    "check_metrics",
    "compile_schema",
    "faults_of",
    "make",
    "read_config",
    "read_fields",
    "read_metrics",
    "read_needs_tvm",
    "read_takes_minutes",
    "resolve_annotations",
    "structure",
    "values_of",
]
