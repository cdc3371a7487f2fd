"""A small config language: fields as data, compiled to JSON Schema; faults say place, value and remedy.

A field is `{"type": ..., "doc": ..., "default": ..., "min": ..., "max": ..., "choices": ..., "of": ...}`. Types:
bool, int, float, str, choice, list (of), map (str to of), any. A field without a default must be given.
An experiment or a subsystem declares its own fields in `fields.json` beside its scripts; `"include": ["timing"]` there
adds the fields of `FIELD_SETS`.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmdash import common
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

REQUIRED = object()
FIELDS_FILE = "fields.json"
CONFIG_FILE = "config.json"
_JSON_TYPES = {
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "str": "string",
    "list": "array",
    "map": "object",
}
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Field:
    """One config field; `default` is REQUIRED where the field must be given."""

    type: str
    doc: str
    default: common.Json = REQUIRED
    min: float | None = None
    max: float | None = None
    choices: tuple[common.Json, ...] = ()
    of: Field | None = None
    nullable: bool = False

    def schema(self) -> dict[str, Any]:
        """The field as JSON Schema."""
        schema: dict[str, Any] = {"description": self.doc}
        if self.type == "choice":
            schema["enum"] = list(self.choices)
        elif self.type != "any":
            name = _JSON_TYPES[self.type]
            schema["type"] = [name, "null"] if self.nullable else name
        if self.type == "str" and self.min:
            schema["minLength"] = self.min
        elif self.type in {"int", "float"}:
            schema.update(
                {key: value for key, value in (("minimum", self.min), ("maximum", self.max)) if value is not None}
            )
        elif self.type == "list":
            schema["items"] = self.of.schema() if self.of else {}
            schema["minItems"] = self.min or 0
        elif self.type == "map":
            schema["additionalProperties"] = self.of.schema() if self.of else {}
        if self.default is not REQUIRED:
            schema["default"] = self.default
        return schema


Fields = Mapping[str, Field]


class ConfigError(DashboardError):
    """Every fault of one file; the message has a line for each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


def compile_schema(fields: Fields) -> dict[str, Any]:
    """The fields as one JSON Schema object that refuses every other name."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {name: field.schema() for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.default is REQUIRED],
        "additionalProperties": False,
    }


def read_config(path: Path, fields: Fields, *, shown_as: str = "") -> dict[str, Any]:
    """The checked config in `path` with defaults filled in; ConfigError lists every fault."""
    shown = shown_as or str(path)
    try:
        value = common.read_json(path, max_bytes=4 << 20)
    except DashboardError as error:
        raise ConfigError([str(error).replace(str(path), shown)]) from error
    return check(value, fields, shown)


def check(value: common.Json, fields: Fields, shown: str) -> dict[str, Any]:
    """`value` with defaults filled in; ConfigError lists every fault, `shown` names the file."""
    from jsonschema import Draft202012Validator  # here, so that importing this module is cheap

    if not isinstance(value, dict):
        raise ConfigError([f"{shown}: $: {_brief(value)} is not an object. Write {{...}} with the fields in it."])
    errors = Draft202012Validator(compile_schema(fields)).iter_errors(value)
    faults = sorted({f"{shown}: {fault}" for error in errors for fault in _faults(error)})
    if faults:
        raise ConfigError(faults)
    defaults = {name: copy.deepcopy(field.default) for name, field in fields.items() if field.default is not REQUIRED}
    return {**defaults, **value}


def _faults(error: ValidationError) -> Iterator[str]:
    """One error of the schema validator as sentences: place, value, remedy."""
    place = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    wanted: Any = error.validator_value
    given: Any = error.instance
    schema: Any = error.schema
    if error.validator == "additionalProperties":
        known = list(schema.get("properties", {}))
        for name in sorted(set(given) - set(known)):
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean {near[0]!r}?" if near else f"Known fields: {', '.join(sorted(known))}."
            yield f"{place}.{name}: there is no such field. {remedy}"
    elif error.validator == "required":
        for name in sorted(set(wanted) - set(given)):
            doc = schema["properties"][name].get("description", "")
            yield f"{place}.{name}: is missing. Add it: {doc}"
    elif error.validator == "type":
        yield f"{place}: {_brief(given)} is not {_type_in_words(wanted)}."
    elif error.validator == "enum":
        near = difflib.get_close_matches(str(given), [str(choice) for choice in wanted], n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Use one of: {', '.join(map(str, wanted))}."
        yield f"{place}: {_brief(given)} is not a choice. {hint}"
    elif error.validator in {"minimum", "maximum"}:
        less = error.validator == "minimum"
        yield (
            f"{place}: {_brief(given)} is {'less' if less else 'more'} than {wanted}. "
            f"Use {wanted} or {'more' if less else 'less'}."
        )
    else:
        yield f"{place}: {error.message}."


def _type_in_words(wanted: str | list[str]) -> str:
    words = {
        "boolean": "true or false",
        "integer": "a whole number",
        "number": "a number",
        "string": "a string",
        "array": "a list",
        "object": "an object",
        "null": "null",
    }
    names = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(words[name] for name in names)


def _brief(value: common.Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_fields(path: Path) -> dict[str, Field]:
    """The fields that a `fields.json` declares; an absent file declares none."""
    if not path.exists():
        return {}
    value = common.read_json(path, max_bytes=1 << 20)
    if not isinstance(value, dict):
        raise DashboardError(f"{path}: $: {_brief(value)} is not an object of fields.")
    sets = value.pop("include", [])
    if not isinstance(sets, list):
        raise DashboardError(f'{path}: $.include: {_brief(sets)} is not a list. Write it like ["timing"].')
    unknown = [name for name in sets if not isinstance(name, str) or name not in FIELD_SETS]
    if unknown:
        raise DashboardError(f"{path}: $.include: {unknown[0]!r} is not one of: {', '.join(FIELD_SETS)}.")
    included = {name: field for key in sets for name, field in FIELD_SETS[key].items()}
    return {**included, **{name: _parse_field(item, f"{path}: $.{name}", name) for name, item in value.items()}}


def _parse_field(item: common.Json, place: str, name: str = "x") -> Field:
    known = {"type", "doc", "default", "min", "max", "choices", "of", "nullable"}
    if not isinstance(item, dict) or set(item) - known:
        raise DashboardError(f"{place}: {_brief(item)} is not a field. A field has: {', '.join(sorted(known))}.")
    if not _NAME.fullmatch(name):
        raise DashboardError(f"{place}: a field's name is lower case with digits and underscores.")
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in {*_JSON_TYPES, "choice", "any"}:
        raise DashboardError(
            f"{place}.type: {_brief(kind)} is not one of {', '.join([*_JSON_TYPES, 'choice', 'any'])}."
        )
    if not isinstance(item.get("choices", []), list) or (kind == "choice" and not item.get("choices")):
        raise DashboardError(f"{place}.choices: is missing or not a list. A choice lists its choices.")
    for bound in ("min", "max"):
        if isinstance(item.get(bound, 0), bool) or not isinstance(item.get(bound, 0), (int, float)):
            raise DashboardError(f"{place}.{bound}: {_brief(item[bound])} is not a number.")
    inner = item.get("of")
    return Field(
        type=kind,
        doc=str(item.get("doc", "")),
        default=item.get("default", REQUIRED),
        min=item.get("min"),
        max=item.get("max"),
        choices=tuple(item.get("choices", ())),
        of=_parse_field(inner, f"{place}.of") if inner is not None else None,
        nullable=bool(item.get("nullable", False)),
    )


_TEXT = Field("str", "", default="")
_NAMES = Field("str", "A Slack ID such as U012ABCDEF.", min=1)
_TIMEOUTS = Field("int", "Seconds.", min=1)
_VARIABLES = Field("str", "The variable's value.")

JOB_FIELDS: Fields = {
    "active": Field("bool", "Whether this job takes part in the nights."),
    "title": Field("str", "Its name for people; by default the folder's.", default=""),
    "description": Field("str", "What it answers, in a sentence or two.", default=""),
    "notify": Field("list", "Slack IDs that are pinged when it fails.", default=[], of=_NAMES),
    "priority": Field("int", "Higher runs earlier.", default=0),
    "timeouts": Field("map", 'Seconds allowed by stage, as in {"run": 600}.', default={}, of=_TIMEOUTS),
    "env": Field("map", "Environment variables added for its stages.", default={}, of=_VARIABLES),
}
EXPERIMENT_FIELDS: Fields = {
    **JOB_FIELDS,
    "tvm_remote": Field("str", "Where its TVM comes from; by default the home's.", default=None, nullable=True),
    "tvm_branch": Field("str", "Which TVM: a version or `latest`; by default the home's.", default=None, nullable=True),
    "rerun_setup": Field("bool", "Run setup.sh every night, changed or not.", default=False),
}
SUBSYSTEM_FIELDS: Fields = JOB_FIELDS
HOME_FIELDS: Fields = {
    "tmp_data_dir": Field("str", "Working folder of the night; raw measurements are kept there.", min=1),
    "backup_dir": Field("str", "Folder of the archives.", min=1),
    "setup_dir": Field("str", "Folder for what setup stages leave.", min=1),
    "artifact_dir": Field("str", "Folder of the TVM artifacts.", default="artifacts", min=1),
    "tvm_remote": Field("str", "Where TVM comes from: `pypi`.", default="pypi", min=1),
    "tvm_branch": Field("str", "Which TVM: `latest` or an exact version.", default="latest", min=1),
    "randomize": Field(
        "bool", "Run experiments in random order (the seed is recorded), else by priority, name.", default=True
    ),
    "seed": Field("int", "Seed of the order; by default a new one each night.", default=None, nullable=True, min=0),
    "timeouts": Field("map", "Seconds allowed by stage; a job's own come first.", default={}, of=_TIMEOUTS),
    "artifact_timeout_s": Field("int", "Seconds allowed for getting one TVM artifact.", default=3600, min=1),
    "max_artifacts_gb": Field(
        "float", "Size limit of all artifacts; the ones used longest ago go first.", default=20.0, min=0
    ),
    "parallel_stages": Field("int", "Stages after `run` that may run at once; 0 = as many as cores.", default=0, min=0),
    "min_free_mb": Field("int", "A night starts only with this much free disk space.", default=500, min=0),
    "keep_archives": Field("int", "How many archives are kept (two a night).", default=60, min=2),
    "keep_raw_nights": Field("int", "How many nights' raw measurements are kept.", default=30, min=0),
    "env": Field("map", "Environment variables added for every stage.", default={}, of=_VARIABLES),
    "telemetry_rate": Field(
        "float",
        "Readings a second of temperatures, clocks, load, memory during each run; 0 = none.",
        1.0,
        min=0,
        max=10,
    ),
    "env_name": Field("str", "Name of this machine's set-up in records; by default its host name.", default="", min=0),
    "heartbeat_url": Field("str", "Fetched when a night ends (`/fail` added where a job failed).", default="", min=0),
    "website_url": Field("str", "Where the website is served, for links in messages.", default="", min=0),
}
FIELD_SETS: Mapping[str, Fields] = {
    "timing": {
        "number": Field("int", "Calls in one sample; 0 = as many as fill `min_repeat_ms`.", default=0, min=0),
        "repeat": Field("int", "Samples of each point.", default=10, min=1),
        "min_repeat_ms": Field("float", "Least length of a sample in ms, where `number` is 0.", default=20.0, min=0),
        "warmup": Field("int", "Samples taken first and not kept.", default=1, min=1),
        "max_seconds": Field(
            "float", "Fewer samples, but at least 3, where `repeat` would take longer than this.", default=20.0, min=0
        ),
        "threads": Field("int", "Threads of the measured runtime.", default=1, min=1),
        "data_seed": Field("int", "Seed of weights and inputs.", default=0, min=0),
    }
}
