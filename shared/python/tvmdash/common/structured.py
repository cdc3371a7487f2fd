"""JSON at the edges: a value read from a file as a frozen dataclass, and a dataclass as JSON. cattrs does both.

Reading is strict: true is no number, 1 is no text, a text is no list, NaN and Infinity are nothing. What a newer
dashboard added is passed over, and what an older one did not write has its default. A field that is called by another
name in the file says so: `field(metadata=named("break"))`. A property with `written_as("open")` is written and not
read.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NewType, TypeVar, get_args, get_origin

from tvmdash import common
from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    from cattrs import Converter

MAX_BYTES = 256 << 20
if TYPE_CHECKING:
    Stamp = str
else:
    Stamp = NewType("Stamp", str)
"""A night's stamp, as 20261121T031500Z, checked on reading; for type checkers any text."""
_NAME = "json"
_WRONG = (KeyError, TypeError, ValueError, OverflowError)
"""Raised by hooks, and by the code that cattrs makes, for a value of another shape."""
_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])
_Hook = Callable[[Any, Any], Any]


def named(name: str) -> Mapping[str, str]:
    """Return the metadata of a dataclass field that the file calls `name`."""
    return {_NAME: name}


def written_as(name: str) -> Callable[[_F], _F]:
    """Mark the function of a property that `to_json` writes under `name` as well; `from_json` ignores it."""

    def mark(function: _F) -> _F:
        function.written_as = name  # type: ignore[attr-defined]
        return function

    return mark


def written_properties(kind: type) -> Mapping[str, property]:
    """Return the properties of a class that `written_as` marks, by name in the file."""
    properties = [item for base in kind.__mro__ for item in vars(base).values() if isinstance(item, property)]
    names = {getattr(item.fget, "written_as", ""): item for item in properties}
    return {name: item for name, item in names.items() if name}


def name_in_file(field: Any) -> str:
    return str(field.metadata.get(_NAME, field.name))


def from_json(kind: type[_T], value: common.Json, where: str | Path, *, at: str = "$", remedy: str = "") -> _T:
    """Return `value` as the dataclass `kind`; DashboardError names the file `where`, the JSON path and the value.

    at: the path of `value` in the file.
    """
    try:
        return _converter(detailed=False).structure(value, kind)
    except _WRONG:
        raise DashboardError(f"{where}: {at}{_fault(kind, value)}" + (f" {remedy}" if remedy else "")) from None


def read(kind: type[_T], path: Path, *, max_bytes: int = MAX_BYTES, remedy: str = "") -> _T | None:
    """Read the file `path`; None where there is none, DashboardError where it is damaged."""
    if not path.is_file():
        return None
    return from_json(kind, common.read_json(path, max_bytes=max_bytes), path, remedy=remedy)


def check_version(value: common.Json, version: int, where: str | Path, *, remedy: str) -> None:
    """Raise DashboardError where the object `value` of the file `where` does not say that it is of this version."""
    said = value.get("schema_version") if isinstance(value, dict) else version
    if said != version:
        raise DashboardError(f"{where}: $.schema_version: {said!r:.40} is not {version}. {remedy}")


def to_json(value: Any) -> dict[str, Any]:
    """Return a dataclass as values for a JSON file, of which `from_json` makes an equal one."""
    done: dict[str, Any] = _converter(detailed=False).unstructure(value)
    return done


@functools.cache
def _converter(*, detailed: bool) -> Converter:
    """Make a converter: the fast one finds that a value is wrong, the `detailed` one where."""
    from cattrs import Converter  # here, so that importing this module is cheap

    made = Converter(detailed_validation=detailed)
    for kind, hook in _SCALARS.items():
        made.register_structure_hook(kind, hook)
    made.register_structure_hook_func(is_literal, _choice)
    made.register_structure_hook_factory(_is_tuple, lambda kind: _tuple_hook(kind, made))
    made.register_structure_hook_factory(_is_mapping, lambda kind: _mapping_hook(kind, made))
    made.register_structure_hook_factory(_is_dataclass, lambda kind: _dataclass_hook(kind, made))
    made.register_unstructure_hook_factory(_is_dataclass, lambda kind: _dataclass_to_json(kind, made))
    made.register_unstructure_hook_func(_holds_json, lambda value: value)
    return made


def _text(value: Any, _: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError("is not a text")


def _flag(value: Any, _: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise TypeError("is not true or false")


def _whole(value: Any, _: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError("is not a whole number")


def _number(value: Any, _: Any) -> float:
    if isinstance(value, (float, int)) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
        raise ValueError("is not a finite number")
    raise TypeError("is not a number")


def _stamp(value: Any, _: Any) -> str:
    if isinstance(value, str):
        with contextlib.suppress(DashboardError):
            common.parse_stamp(value)
            return value
    raise TypeError("is not a stamp like 20261121T031500Z")


def _choice(value: Any, kind: Any) -> Any:
    choices = choices_of(kind)
    if isinstance(value, str) and value in choices:
        return choices[value]
    raise TypeError(f"is not one of: {', '.join(choices)}")


@functools.cache
def choices_of(kind: Any) -> Mapping[str, Any]:
    """Return the values of an enum or a Literal by their text in a file."""
    return {item: item for item in get_args(kind)} or {item.value: item for item in kind}


_PLAIN: frozenset[Any] = frozenset((str, int, float, bool, float | None))
_SCALARS: Mapping[Any, _Hook] = {
    enum.StrEnum: _choice, str: _text, bool: _flag, int: _whole, float: _number, Stamp: _stamp,
}  # fmt: skip


def is_literal(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) in (Mapping, dict)


def _holds_json(kind: Any) -> bool:
    """Return True where a file can hold its values unchanged: a mapping to anything, or lists of texts and numbers."""
    if _is_mapping(kind):
        return get_args(kind)[1] is Any
    return _is_tuple(kind) and all(part in _PLAIN or part is ... or _holds_json(part) for part in get_args(kind))


def _is_dataclass(kind: Any) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def _tuple_hook(kind: Any, converter: Converter) -> _Hook:
    from cattrs.cols import homogenous_tuple_structure_factory

    parts = get_args(kind)
    if parts[-1] is ...:
        each = homogenous_tuple_structure_factory(kind, converter)
        return _only((list, tuple), "a list", _all_at_once(parts[0], each))
    hooks = [(converter.get_structure_hook(part), part) for part in parts]

    def of_each(value: Any, _: Any) -> tuple[Any, ...]:
        if len(value) != len(hooks):
            raise TypeError(f"is not a list of {len(hooks)}")
        return tuple(hook(item, part) for item, (hook, part) in zip(value, hooks, strict=True))

    return _only((list, tuple), "a list", of_each)


def _all_at_once(part: Any, of_each: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the hook of a list of texts or numbers: one check of all items replaces one for each."""
    known: Mapping[Any, set[type]] = {str: {str}, float: {float}, float | None: {float, type(None)}}
    if part not in known:
        return of_each

    def checked(value: Any, kind: Any) -> Any:
        alike = set(map(type, value)) <= known[part]
        # a sum is finite only where every number is; one that overflows merely takes the slow way
        if alike and (part is str or math.isfinite(sum(filter(None, value)))):
            return tuple(value)
        return of_each(value, kind)

    return checked


def _mapping_hook(kind: Any, converter: Converter) -> _Hook:
    from cattrs.cols import mapping_structure_factory

    as_it_is = get_args(kind)[1] is Any
    hook = _same if as_it_is else mapping_structure_factory(kind, converter, structure_to=dict)
    return _only(dict, "an object", hook)


def _same(value: Any, _: Any) -> Any:
    return value


def _dataclass_hook(kind: Any, converter: Converter) -> _Hook:
    from cattrs.gen import make_dict_structure_fn

    made: _Hook = make_dict_structure_fn(kind, converter, _cattrs_use_linecache=False, **_overrides(kind))
    return _only(dict, "an object", made)


def _dataclass_to_json(kind: Any, converter: Converter) -> Callable[[Any], Any]:
    from cattrs.gen import make_dict_unstructure_fn

    made: Callable[[Any], Any] = make_dict_unstructure_fn(
        kind, converter, _cattrs_use_linecache=False, **_overrides(kind)
    )
    properties = written_properties(kind)
    if not properties:
        return made
    return lambda value: {**made(value), **{name: item.__get__(value) for name, item in properties.items()}}


def _overrides(kind: Any) -> dict[str, Any]:
    """Return cattrs' overrides for the fields that the file calls by another name."""
    from cattrs.gen import override

    return {field.name: override(rename=name_in_file(field)) for field in fields(kind) if field.metadata}


def _only(kind: type | tuple[type, ...], expected: str, hook: Callable[..., Any]) -> _Hook:
    """Guard the hook: else a text would be a list of letters, and a list an empty object."""

    def checked(value: Any, wanted: Any) -> Any:
        if not isinstance(value, kind):
            raise TypeError(f"is not {expected}")
        return hook(value, wanted)

    return checked


def _fault(kind: Any, value: common.Json) -> str:
    """Return the first fault: JSON path, value, and the expected kind."""
    try:
        _converter(detailed=True).structure(value, kind)
    except Exception as error:  # noqa: BLE001 - cattrs gathers what every hook raised
        path, cause = next(_leaves(error, ()))
        return _describe(value, path, cause)
    raise AssertionError(f"{kind} was refused by one converter alone")


_Path = tuple[str | int, ...]


def _leaves(error: BaseException, path: _Path, owner: Any = None) -> Iterator[tuple[_Path, BaseException]]:
    """Yield each error that is no group, with the path to its value; `owner` is the class around that value."""
    path = (*path, *_steps(error, owner))
    inner = getattr(error, "exceptions", None)
    if inner is None:
        yield path, error
        return
    for part in inner:
        yield from _leaves(part, path, getattr(error, "cl", None))


def _steps(error: BaseException, owner: Any) -> Iterator[str | int]:
    """Yield the attribute, key or index that cattrs noted on an error."""
    from cattrs import AttributeValidationNote, IterableValidationNote

    for note in getattr(error, "__notes__", ()):
        if isinstance(note, AttributeValidationNote):
            yield next(name_in_file(field) for field in fields(owner) if field.name == note.name)
        elif isinstance(note, IterableValidationNote):
            yield note.index


def _describe(value: common.Json, path: _Path, cause: BaseException) -> str:
    json_path = "".join(f"[{step}]" if isinstance(step, int) else f".{common.format_key(step)}" for step in path)
    if isinstance(cause, KeyError):
        return f"{json_path}: is missing."
    for step in path:
        value = value[step]
    shown = repr(value)
    return f"{json_path}: {shown if len(shown) <= 60 else shown[:57] + '...'} {cause}."
