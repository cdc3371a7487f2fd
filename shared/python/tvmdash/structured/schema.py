"""The JSON Schema (draft 2020-12) of a file, made from the dataclass that reads and writes it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from tvmdash.structured import Stamp, choices_in, choices_of, is_literal, name_in_file, written_properties

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    Stamp: {"type": "string", "pattern": "^[0-9]{8}T[0-9]{6}Z$"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    Any: {},
}
Schema = dict[str, Any]


def schema_of(kind: type, title: str, version: int | None = 1) -> Schema:
    """The schema of a file that holds a `kind`; `version` is the number that stands in it, None where none does."""
    defs: dict[str, Schema] = {}
    whole = _of_dataclass(kind, defs)
    if version is not None:
        whole["properties"] = {"schema_version": {"const": version}, **whole["properties"]}
    head = {"$schema": _DIALECT, "title": title}
    return {**head, **whole, **({"$defs": dict(sorted(defs.items()))} if defs else {})}


def _of_dataclass(kind: Any, defs: dict[str, Schema]) -> Schema:
    hints = get_type_hints(kind)
    named = {name_in_file(field): field for field in fields(kind)}
    needed = [name for name, field in named.items() if field.default is MISSING and field.default_factory is MISSING]
    return {
        "description": inspect.cleandoc(kind.__doc__ or ""),
        "type": "object",
        "required": needed,
        "properties": {
            **{name: _of_field(field, hints[field.name], defs) for name, field in named.items()},
            **{name: _of(get_type_hints(item.fget)["return"], defs) for name, item in written_properties(kind).items()},
        },
    }


def _of_field(field: Any, kind: Any, defs: dict[str, Schema]) -> Schema:
    choices = choices_in(field)
    return {"enum": list(choices)} if choices else _of(kind, defs)


def _of(kind: Any, defs: dict[str, Schema]) -> Schema:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _any_of([_of(part, defs) for part in parts])
    if origin is tuple:
        return _of_tuple(parts, defs)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of(parts[1], defs)}
    if is_literal(kind):
        return {"enum": list(choices_of(kind))}
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    return _reference(kind, defs)


def _any_of(choices: list[Schema]) -> Schema:
    if all(set(choice) == {"type"} for choice in choices):
        return {"type": [choice["type"] for choice in choices]}
    return {"anyOf": choices}


def _of_tuple(parts: tuple[Any, ...], defs: dict[str, Schema]) -> Schema:
    if parts[-1] is ...:
        return {"type": "array", "items": _of(parts[0], defs)}
    return {"type": "array", "prefixItems": [_of(part, defs) for part in parts], "items": False, "minItems": len(parts)}


def _reference(kind: Any, defs: dict[str, Schema]) -> Schema:
    """A class by its name, described once."""
    if kind.__name__ not in defs:
        defs[kind.__name__] = {}  # met again below itself, it is known
        defs[kind.__name__] = _of_dataclass(kind, defs) if is_dataclass(kind) else _of_enum(kind)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _of_enum(kind: Any) -> Schema:
    return {"description": inspect.cleandoc(kind.__doc__ or ""), "enum": list(choices_of(kind))}
