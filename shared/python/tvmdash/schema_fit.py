"""Whether a value fits a JSON Schema, told fast: what is good, as nearly everything is, needs no schema library.

It knows the words that the schemas here are written in. A yes is final; anything else, a schema with other words too,
is for jsonschema to judge, which also says what is wrong. Loading that costs as much as a small job does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
_NO_RULES = frozenset({"$schema", "$id", "$defs", "title", "description", "default"})
_REF = "#/$defs/"

Schema = Mapping[str, Any]
_Check = Callable[[Any, Any, Schema, Schema], bool]
"""Whether a value keeps a rule of a schema; the rule's content, the schema and the outermost one are given."""


def fits(value: Any, schema: Schema) -> bool:
    """Whether `value` is sure to be valid by `schema`, of JSON Schema 2020-12; both as `json.loads` gives them."""
    return _fits(value, schema, schema)


def _fits(value: Any, schema: Any, root: Schema) -> bool:
    if not isinstance(schema, dict):
        return False
    return all(_CHECKS.get(name, _unknown)(value, rule, schema, root) for name, rule in schema.items())


def _unknown(_value: Any, _rule: Any, _schema: Schema, _root: Schema) -> bool:
    return False


def _no_rule(_value: Any, _rule: Any, _schema: Schema, _root: Schema) -> bool:
    return True


def _type(value: Any, rule: Any, _schema: Schema, _root: Schema) -> bool:
    names = (rule,) if isinstance(rule, str) else rule
    return any(type(value) in _TYPES[name] for name in names)


def _const(value: Any, rule: Any, _schema: Schema, _root: Schema) -> bool:
    return type(value) is type(rule) and bool(value == rule)


def _enum(value: Any, rule: Any, schema: Schema, root: Schema) -> bool:
    return any(_const(value, one, schema, root) for one in rule)


def _ref(value: Any, rule: Any, _schema: Schema, root: Schema) -> bool:
    return _fits(value, root.get("$defs", {}).get(rule.removeprefix(_REF)), root)


def _required(value: Any, rule: Any, _schema: Schema, _root: Schema) -> bool:
    return not isinstance(value, dict) or value.keys() >= set(rule)


def _properties(value: Any, rule: Any, _schema: Schema, root: Schema) -> bool:
    return not isinstance(value, dict) or all(
        _fits(item, rule[name], root) for name, item in value.items() if name in rule
    )


def _additional(value: Any, rule: Any, schema: Schema, root: Schema) -> bool:
    if not isinstance(value, dict):
        return True
    known = schema.get("properties", {})
    return all(_fits(item, rule, root) for name, item in value.items() if name not in known)


def _items(value: Any, rule: Any, _schema: Schema, root: Schema) -> bool:
    return not isinstance(value, list) or all(_fits(item, rule, root) for item in value)


def _min_items(value: Any, rule: Any, _schema: Schema, _root: Schema) -> bool:
    return not isinstance(value, list) or len(value) >= rule


def _min_length(value: Any, rule: Any, _schema: Schema, _root: Schema) -> bool:
    return not isinstance(value, str) or len(value) >= rule


def _pattern(value: Any, rule: Any, _schema: Schema, _root: Schema) -> bool:
    return not isinstance(value, str) or re.search(rule, value) is not None


def _minimum(value: Any, rule: Any, _schema: Schema, _root: Schema) -> bool:
    return type(value) not in _TYPES["number"] or value >= rule


def _maximum(value: Any, rule: Any, _schema: Schema, _root: Schema) -> bool:
    return type(value) not in _TYPES["number"] or value <= rule


_CHECKS: Mapping[str, _Check] = {
    **dict.fromkeys(_NO_RULES, _no_rule),
    "type": _type,
    "const": _const,
    "enum": _enum,
    "$ref": _ref,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "minItems": _min_items,
    "minLength": _min_length,
    "pattern": _pattern,
    "minimum": _minimum,
    "maximum": _maximum,
}
