"""A small config language: fields as data, compiled to JSON Schema; faults say place, value and remedy.

A field is `{"type": ..., "doc": ..., "default": ..., "min": ..., "max": ..., "choices": ..., "of": ...}`. Types:
bool, int, float, str, choice, list (of), map (str to of), any. A field without a default must be given; `smoke` is its
default where the config's `size` is smoke.
An experiment or a subsystem declares its own fields in `fields.json` beside its scripts. `"include": ["timing"]` there
adds the fields of `FIELD_SETS`; `"takes_minutes"` says how long it takes at each size, `"metrics"` what numbers of its
own an experiment has, `"needs_tvm": false` that it measures without TVM, `"beside_reference": "runs"` that it can be
measured beside a reference, by whole runs in turn, which adds the fields of that. `"axis"` in a field says that points
vary by it, and includes the timing. A field of an included name changes only what it states, as `{"default": 60}`.
"""

from __future__ import annotations

import copy
import difflib
import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmdash import common
from tvmdash.common.json_schema import Schema
from tvmdash.config_util.fields import (
    AXIS_COLUMNS,
    ENGINE,
    FIELD_SETS,
    HOME_FIELDS,
    JSON_TYPES,
    NIGHTLY,
    OF_A_SIZE,
    REQUIRED,
    RETIRED_HOME_FIELDS,
    SAME,
    SIZES,
    WORKLOAD,
    Field,
    Fields,
)
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

FIELDS_FILE = "fields.json"
FOREIGN_SCHEMA = Path(__file__).parents[1] / "schemas" / "foreign_v1.json"
CONFIG_FILE = "config.json"
_TAKES_MINUTES, METRICS, _NEEDS_TVM, _BESIDE = "takes_minutes", "metrics", "needs_tvm", "beside_reference"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PLAIN = re.compile(r"[\w-]+")
_AXIS = re.compile(rf"(?:{'|'.join(AXIS_COLUMNS)})(?:\.[a-z][a-z0-9_]*)?|{WORKLOAD}\.[a-z][a-z0-9_]*|{ENGINE}")
_TIMING = "timing"
_OF_RUNS = ("paired", "pairs")
"""Fields of the timing that experiments measured by whole runs in turn have as well."""


class Beside(enum.StrEnum):
    """Ways to measure an experiment without the template beside a reference.

    runs: the dashboard runs it on both TVMs in turn. reads: it finds the reference in TVMDASH_REFERENCE by itself.
    """

    RUNS = "runs"
    READS = "reads"


class ConfigError(DashboardError):
    """All faults of one file; the message has a line for each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


def compile_schema(fields: Fields) -> dict[str, Any]:
    """Compile the fields to a JSON Schema object that refuses every other name."""
    properties = {name: field.schema() for name, field in fields.items()}
    sizes = _of_a_size(fields)
    of_a_size = {name: schema for name, schema in properties.items() if name not in {"size", *sizes}}
    for name in sizes:
        properties[name] = {**properties[name], "properties": of_a_size, "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": properties,
        "required": [name for name, field in fields.items() if field.default is REQUIRED],
        "additionalProperties": False,
    }


def _of_a_size(fields: Fields) -> list[str]:
    """Return the names of the fields that hold others for one size; an experiment may have its own of that name."""
    return [name for name, field in OF_A_SIZE.items() if fields.get(name) is field]


def read_config(path: Path, fields: Fields, *, shown_as: str = "") -> dict[str, Any]:
    """Read the config in `path`, check it and fill in defaults; ConfigError lists every fault."""
    shown = shown_as or str(path)
    try:
        value = common.read_json(path, max_bytes=4 << 20)
    except DashboardError as error:
        raise ConfigError([str(error.at(shown))]) from error
    return check(value, fields, shown)


def check(value: common.Json, fields: Fields, shown: str, *, at: str = "$") -> dict[str, Any]:
    """Fill in the defaults of the value's size; ConfigError lists every fault, `shown` names the file.

    at: the JSON path of `value` in it.
    What it says under the name of its size stands in the place of those fields; what it says of another, nowhere.
    """
    if not isinstance(value, dict):
        raise ConfigError(
            [f"{shown}: {at}: {_format_brief(value)} is not an object. Write {{...}} with the fields in it."]
        )
    if fields is HOME_FIELDS:  # every reader of it must take old configs, also a subsystem of someone else's
        value = {name: item for name, item in value.items() if name not in RETIRED_HOME_FIELDS}
    errors = Schema(compile_schema(fields)).errors(value)
    faults = sorted({f"{shown}: {fault}" for error in errors for fault in faults_of(error, at)})
    if faults:
        raise ConfigError(faults)
    size = value.get("size", NIGHTLY)
    # a copy: whoever changes a list in a config must not change the next one's default
    defaults = {name: copy.deepcopy(field.default_of(size)) for name, field in fields.items()}
    filled = {**{name: default for name, default in defaults.items() if default is not REQUIRED}, **value}
    of_sizes = {name: filled.pop(name) for name in _of_a_size(fields)}
    return {**filled, **of_sizes.get(size, {})}


def faults_of(error: ValidationError, at: str = "$") -> Iterator[str]:
    """Yield an error of the schema validator as sentences: place, value, remedy. at: the checked value's JSON path."""
    json_path = at + "".join(map(_format_step, error.absolute_path))
    wanted: Any = error.validator_value
    given: Any = error.instance
    schema: Any = error.schema
    if error.validator == "additionalProperties":
        known = list(schema.get("properties", {}))
        for name in sorted(set(given) - set(known)):
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean {near[0]!r}?" if near else f"Known fields: {', '.join(sorted(known))}."
            yield f"{json_path}.{name}: unknown field. {remedy}"
    elif error.validator == "required":
        for name in sorted(set(wanted) - set(given)):
            doc = schema["properties"][name].get("description", "")
            yield f"{json_path}.{name}: required field is missing. Add it: {doc}"
    elif error.validator == "type":
        yield f"{json_path}: {_format_brief(given)} is not {_format_type(wanted)}."
    elif error.validator == "enum":
        near = difflib.get_close_matches(str(given), [str(choice) for choice in wanted], n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Use one of: {', '.join(map(str, wanted))}."
        yield f"{json_path}: {_format_brief(given)} is not a valid choice. {hint}"
    elif error.validator in {"minimum", "maximum"}:
        less = error.validator == "minimum"
        yield (
            f"{json_path}: {_format_brief(given)} is {'less' if less else 'more'} than {wanted}. "
            f"Use {wanted} or {'more' if less else 'less'}."
        )
    else:
        yield f"{json_path}: {error.message}."


def _format_step(part: str | int) -> str:
    return f".{part}" if isinstance(part, str) and _PLAIN.fullmatch(part) else f"[{part!r}]"


def _format_type(wanted: str | list[str]) -> str:
    names_of_types = {
        "boolean": "true or false",
        "integer": "a whole number",
        "number": "a number",
        "string": "a string",
        "array": "a list",
        "object": "an object",
        "null": "null",
    }
    names = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(names_of_types[name] for name in names)


def _format_brief(value: common.Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_fields(path: Path) -> dict[str, Field]:
    """Read the fields that a `fields.json` declares; an absent file declares none."""
    value = _read_object(path)
    value.pop(_TAKES_MINUTES, None)
    if not _is_field(value.get(_NEEDS_TVM)):
        value.pop(_NEEDS_TVM, None)
    in_turn = not _is_field(value.get(_BESIDE)) and value.pop(_BESIDE, None) == Beside.RUNS
    if _declares_metrics(value):
        del value[METRICS]
    sets = value.pop("include", [])
    if not isinstance(sets, list):
        raise DashboardError(f'{path}: $.include: {_format_brief(sets)} is not a list (expected e.g. ["timing"]).')
    unknown = [name for name in sets if not isinstance(name, str) or name not in FIELD_SETS]
    if unknown:
        raise DashboardError(f"{path}: $.include: {unknown[0]!r} is not one of: {', '.join(FIELD_SETS)}.")
    if any(isinstance(item, dict) and "axis" in item for item in value.values()):
        sets = [_TIMING, *sets]
    included = {name: FIELD_SETS[_TIMING][name] for name in _OF_RUNS} if in_turn else {}
    included |= {name: field for key in sets for name, field in FIELD_SETS[key].items()}
    own = {
        name: _change_field(included[name], item, f"{path}: $.{name}")
        if name in included and isinstance(item, dict) and "type" not in item
        else _parse_field(item, f"{path}: $.{name}", name)
        for name, item in value.items()
    }
    return {**included, **own}


def _change_field(included: Field, item: Mapping[str, common.Json], json_path: str) -> Field:
    """Apply a `fields.json`'s changes to an included field."""
    changed = _parse_field({"type": included.type, **item}, json_path)
    return replace(included, **{name: getattr(changed, name) for name in item})


def read_takes_minutes(path: Path) -> dict[str, float]:
    """Read minutes by size from a `fields.json`; DashboardError where they are malformed."""
    value = _read_object(path).get(_TAKES_MINUTES, {})
    wrong = not isinstance(value, dict) or set(value) - set(SIZES)
    if wrong or not all(isinstance(item, (int, float)) and item > 0 for item in value.values()):
        shown = f"{path}: $.{_TAKES_MINUTES}: {_format_brief(value)}"
        raise DashboardError(f'{shown} is not an object of minutes by size. Use e.g. {{"smoke": 0.3, "nightly": 6}}.')
    return {size: float(minutes) for size, minutes in value.items()}


def read_metrics(path: Path) -> dict[str, common.Json]:
    """Read the declarations of an experiment's own numbers; DashboardError where they are malformed."""
    value = _read_object(path)
    if not _declares_metrics(value):
        return {}
    check_metrics(value[METRICS], str(path))
    return dict(value[METRICS])


def _declares_metrics(value: Mapping[str, Any]) -> bool:
    # an older experiment may have a config field of that name
    return METRICS in value and not _is_field(value[METRICS])


def _is_field(item: common.Json) -> bool:
    """Return True where an entry of a `fields.json` under a reserved name is a config field of that name."""
    return isinstance(item, dict) and isinstance(item.get("type"), str)


def read_needs_tvm(path: Path) -> bool:
    """Return True unless a `fields.json` says that the experiment measures without TVM; DashboardError: no boolean."""
    needs_tvm = _read_object(path).get(_NEEDS_TVM, True)
    if _is_field(needs_tvm):
        return True
    if not isinstance(needs_tvm, bool):
        raise DashboardError(f"{path}: $.{_NEEDS_TVM}: {_format_brief(needs_tvm)} is not true or false.")
    return needs_tvm


def read_beside(path: Path) -> Beside | None:
    """Read how a `fields.json` lets the experiment be measured beside a reference; DashboardError where unknown."""
    beside = _read_object(path).get(_BESIDE)
    if beside is None or _is_field(beside):
        return None
    if beside not in set(Beside):
        choices = " or ".join(repr(str(choice)) for choice in Beside)
        raise DashboardError(f"{path}: $.{_BESIDE}: {_format_brief(beside)} is not {choices}.")
    return Beside(beside)


def check_metrics(value: common.Json, shown: str) -> None:
    """Raise ConfigError with every fault of declared `metrics`; `shown` names the file."""
    errors = Schema(common.read_json(FOREIGN_SCHEMA)).errors({METRICS: value})
    faults = sorted({f"{shown}: {fault}" for error in errors for fault in faults_of(error)})
    if faults:
        raise ConfigError(faults)


def _read_object(path: Path) -> dict[str, common.Json]:
    """Read the object in a `fields.json`; an absent file holds an empty one."""
    value = common.read_json(path, max_bytes=1 << 20) if path.exists() else {}
    if not isinstance(value, dict):
        raise DashboardError(f"{path}: $: {_format_brief(value)} is not an object of fields.")
    return value


def _parse_field(item: common.Json, json_path: str, name: str = "x") -> Field:
    known = {"type", "doc", "default", "smoke", "min", "max", "choices", "of", "nullable", "axis"}
    if not isinstance(item, dict) or set(item) - known:
        raise DashboardError(
            f"{json_path}: {_format_brief(item)} is not a field. A field has: {', '.join(sorted(known))}."
        )
    if not _NAME.fullmatch(name):
        raise DashboardError(f"{json_path}: invalid field name. Use lower-case letters, digits and underscores.")
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in {*JSON_TYPES, "choice", "any"}:
        raise DashboardError(
            f"{json_path}.type: {_format_brief(kind)} is not one of {', '.join([*JSON_TYPES, 'choice', 'any'])}."
        )
    if not isinstance(item.get("choices", []), list) or (kind == "choice" and not item.get("choices")):
        raise DashboardError(
            f"{json_path}.choices: missing or not a list. A field of type `choice` must list its choices."
        )
    for bound in ("min", "max"):
        if isinstance(item.get(bound, 0), bool) or not isinstance(item.get(bound, 0), (int, float)):
            raise DashboardError(f"{json_path}.{bound}: {_format_brief(item[bound])} is not a number.")
    axis = item.get("axis", "")
    if "axis" in item and not (isinstance(axis, str) and _AXIS.fullmatch(axis)):
        columns = ", ".join([*AXIS_COLUMNS, f"{WORKLOAD}.DOMAIN", ENGINE])
        raise DashboardError(
            f"{json_path}.axis: {_format_brief(axis)} is not one of {columns}; a column may have .NAME after it."
        )
    inner = item.get("of")
    return Field(
        type=kind,
        doc=str(item.get("doc", "")),
        default=item.get("default", REQUIRED),
        smoke=item.get("smoke", SAME),
        min=item.get("min"),
        max=item.get("max"),
        choices=tuple(item.get("choices", ())),
        of=_parse_field(inner, f"{json_path}.of") if inner is not None else None,
        nullable=bool(item.get("nullable", False)),
        axis=str(axis),
    )
