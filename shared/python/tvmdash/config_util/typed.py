"""A job's checked config as a frozen dataclass, which its class names: `class Score(Subsystem[ScoreConfig])`.

fields.json says what a config may hold; the dataclass tells a type checker the same (those of this repository are made
from it: tests/make_config_classes.py). A field of type list is a `tuple[..., ...]`, a map a `Mapping[str, ...]`, a
choice a `str` or a `Literal`; a nullable one is `... | None`.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from tvmdash.config_util.fields import FIELD_SETS, Field, Fields
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Config = TypeVar("Config", default=Mapping[str, Any])
    """Config that a job's class gets: the dataclass that it names, else a mapping."""
else:
    from typing import TypeVar

    Config = TypeVar("Config")
_T = TypeVar("_T")
_ANY = Field("any", "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobConfig:
    """Config fields of every experiment and subsystem; the dataclass of one adds its own fields."""

    active: bool
    title: str
    description: str
    notify: tuple[str, ...]
    priority: int
    timeouts: Mapping[str, int]
    env: Mapping[str, str]


def config_class(job: type) -> type | None:
    """Return the dataclass that a job's class names as its config, itself or by inheritance; else None."""
    bases = [base for kind in job.__mro__ for base in vars(kind).get("__orig_bases__", ())]
    named = [part for base in bases for part in get_args(base)]
    return next((kind for kind in named if isinstance(kind, type) and dataclasses.is_dataclass(kind)), None)


def resolve_annotations(job: type) -> None:
    """Resolve the config's annotations once the job's class exists: its module can name them by then."""
    kind = config_class(job)
    if kind is not None:
        _resolve(kind)


def _resolve(kind: type) -> None:
    items = dataclasses.fields(kind)
    if any(isinstance(item.type, str) for item in items):
        hints = get_type_hints(kind)
        for item in items:
            item.type = hints[item.name]


def values_of(config: Any) -> Mapping[str, Any]:
    """Return the config's fields by name, of a mapping or a dataclass."""
    if isinstance(config, Mapping):
        return config
    return {item.name: getattr(config, item.name) for item in dataclasses.fields(config)}


def structure(job: type, values: Mapping[str, Any], fields: Fields, shown: str | Path) -> Any:
    """Return a checked config as the dataclass that the job's class names, unchanged where it names none.

    DashboardError where the dataclass does not agree with the fields; `shown` names their file.
    """
    kind = config_class(job)
    return values if kind is None else make(kind, values, fields, shown)


def make(kind: type[_T], values: Mapping[str, Any], fields: Fields, shown: str | Path) -> _T:
    """Return a checked config as the dataclass `kind`; DashboardError where that does not agree with the fields."""
    faults = [f"{shown}: {fault}" for fault in find_disagreements(kind, fields)]
    if faults:
        raise DashboardError("\n".join(faults))
    names = set(fields) - set(find_unread(kind, fields))
    return kind(**{name: _frozen(values[name], fields[name]) for name in names})


def _frozen(value: Any, field: Field) -> Any:
    """Return the value with tuples in place of lists, as far down as the field declares its items."""
    inner = field.of or _ANY
    if field.type == "list" and value is not None:
        return tuple(_frozen(item, inner) for item in value)
    if field.type == "map" and value is not None:
        return {name: _frozen(item, inner) for name, item in value.items()}
    return value


def find_disagreements(kind: type, fields: Fields) -> Iterator[str]:
    """Yield each disagreement of the dataclass with the fields: JSON path and remedy.

    A field of type any says nothing of its values, so that the dataclass may say what it expects there.
    """
    _resolve(kind)
    for item in dataclasses.fields(kind):
        name, own = item.name, f"{kind.__name__}.{item.name}"
        if name not in fields:
            yield f"$.{name}: the dataclass has {own}, but no such field is declared. {_remedy(name, kind)}"
        elif fields[name].type != "any" and not _holds(item.type, fields[name]):
            yield f"$.{name}: {own} is of another type. Make it `{annotation_of(fields[name])}`."


def _remedy(name: str, kind: type) -> str:
    sets = [key for key, fields in FIELD_SETS.items() if name in fields]
    return f'Add "include": ["{sets[0]}"].' if sets else f"Declare it, or take it out of {kind.__name__}."


def find_unread(kind: type, fields: Fields) -> list[str]:
    known = {item.name for item in dataclasses.fields(kind)}
    return [name for name in fields if name not in known]


_PLAIN: Mapping[str, Any] = {"bool": bool, "int": int, "float": float, "str": str, "any": Any}


def _holds(hint: Any, field: Field) -> bool:
    """Return True where the type fits the field's values, None included where the field is nullable."""
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not type(None)]
        return field.nullable and len(parts) == 1 and _holds_plain(parts[0], field)
    return not field.nullable and _holds_plain(hint, field)


def _holds_plain(hint: Any, field: Field) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if field.type == "choice":
        return set(parts) == set(field.choices) if origin is Literal else {hint} == set(map(type, field.choices))
    if field.type == "list":
        return origin is tuple and parts[1:] == (...,) and _holds_each(parts[0], field)
    if field.type == "map":
        return origin is Mapping and parts[0] is str and _holds_each(parts[1], field)
    return hint is _PLAIN[field.type] or (hint is float and field.type == "int")


def _holds_each(hint: Any, field: Field) -> bool:
    return field.of is None or _holds(hint, field.of)


def annotation_of(field: Field) -> str:
    """Return the field's type as one writes it in the dataclass."""
    inner = annotation_of(field.of) if field.of else "Any"
    kinds = {"list": f"tuple[{inner}, ...]", "map": f"Mapping[str, {inner}]", "any": "Any", "choice": "str"}
    if field.type == "choice" and field.choices:
        kinds["choice"] = type(field.choices[0]).__name__
    return kinds.get(field.type, field.type) + (" | None" if field.nullable else "")
