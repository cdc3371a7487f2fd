"""One job's config, read and checked against the fields that it declares."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from tvmdash import common, config_util
from tvmdash.config_util import ConfigError
from tvmdash.dashboard_info import HOST_SIGN, VARIANT_SIGN, variant_of
from tvmdash.errors import DashboardError
from tvmdash.stages import EXPERIMENT, SUBSYSTEM, pipeline

_MISSPELT = 0.8

_FIELDS = {EXPERIMENT.kind: config_util.EXPERIMENT_FIELDS, SUBSYSTEM.kind: config_util.SUBSYSTEM_FIELDS}
"""The fields that every job of a kind has."""


def read(kind: str, folder: Path, path: Path, shown: str) -> dict[str, Any]:
    """The checked config of the job whose scripts lie in `folder` and whose config folder is `path`.

    DashboardError says what is wrong with the folder, ConfigError every fault of the config; `shown` names the folder.
    """
    try:
        path.name.encode("utf-8")
    except UnicodeEncodeError:
        raise DashboardError(f"{shown!r}: the folder name is not valid UTF-8. Rename the folder.") from None
    if pipeline(kind).measures and variant_of(path.name):
        raise DashboardError(
            f"{shown}: {VARIANT_SIGN!r} is reserved; it separates an experiment from its TVM. Rename the folder."
        )
    if pipeline(kind).measures and HOST_SIGN in path.name:
        raise DashboardError(
            f"{shown}: {HOST_SIGN!r} is reserved; it separates an experiment from its host. Rename the folder."
        )
    file = path / config_util.CONFIG_FILE
    if not file.exists():
        raise DashboardError(f"{shown}: config.json is missing. Add one, or move the folder away.")
    common_fields = _FIELDS[kind]
    config_util.read_beside(folder / config_util.FIELDS_FILE)
    own = config_util.read_fields(folder / config_util.FIELDS_FILE)
    config_util.read_takes_minutes(folder / config_util.FIELDS_FILE)
    config_util.read_metrics(folder / config_util.FIELDS_FILE)
    if not own and not (folder / config_util.FIELDS_FILE).exists():
        return _read_undeclared(file, common_fields, f"{shown}/{file.name}")
    return config_util.read_config(file, {**common_fields, **own}, shown_as=f"{shown}/{file.name}")


def _read_undeclared(file: Path, fields: config_util.Fields, shown: str) -> dict[str, Any]:
    """The config of a job that declares no fields of its own: whatever else it holds is its own affair."""
    fields = {name: field for name, field in fields.items() if name not in config_util.SIZES}
    try:
        value = common.read_json(file, max_bytes=4 << 20)
    except DashboardError as error:
        raise ConfigError([str(error.at(shown))]) from error
    if not isinstance(value, dict):
        return config_util.check(value, fields, shown)
    own = {name: item for name, item in value.items() if name not in fields}
    near = [
        (name, matches[0])
        for name in own
        if (matches := difflib.get_close_matches(name, fields, n=1, cutoff=_MISSPELT))
    ]
    if near:
        remedy = f"If it is meant as a new field, declare it in the job's {config_util.FIELDS_FILE}."
        raise ConfigError([f"{shown}: $.{name}: Did you mean {right!r}? {remedy}" for name, right in near])
    known = {name: item for name, item in value.items() if name in fields}
    return {**own, **config_util.check(known, fields, shown)}
