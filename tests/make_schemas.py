"""Write the schemas of files that a stranger may read, and docs/reference/schemas.md: `python3 tests/make_schemas.py`.

Both are made from the dataclasses that read and write these files; a test keeps them true.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from tvmdash import common
from tvmdash.common.structured import Stamp, choices_of, is_literal, name_in_file, written_properties
from tvmdash.dashboard_info import Night
from tvmdash.dashboard_info.pages import DeadlinesAhead, ScorePage, Scores, TelemetryPage
from tvmdash.incidents.ledger import Incidents
from tvmdash.machine.identity import MachineIdentity
from tvmdash.machine.telemetry import Telemetry
from tvmdash.notify.message import Message
from tvmdash.notify.state import InSlack, RouteStates
from tvmdash.records.code_changes import CodeChanges
from tvmdash.trials.receipt import Receipt
from tvmdash.trials.trial import Trial, TrialRequest
from tvmdash.verdict import NightVerdict
from tvmdash.verdict.page import AlertsPage
from tvmdash.verdict.remeasured import Remeasured

REPOSITORY = Path(__file__).resolve().parent.parent
SCHEMAS = REPOSITORY / "shared" / "python" / "tvmdash" / "schemas"
PAGE = REPOSITORY / "docs" / "reference" / "schemas.md"
_OUTPUT = "results/subsystem/output"
_STAT_ALERTS = f"{_OUTPUT}/stat_alerts"


@dataclass(frozen=True)
class File:
    """A file that strangers may read: the name of its schema, where it lies, and what it holds."""

    schema: str
    path: str
    holds: type
    version: int | None = 1

    @property
    def made(self) -> Schema:
        return schema_of(self.holds, f"{self.path}, version {self.version or 1}", self.version)


FILES = (
    File("night_v1.json", "results/nights/<stamp>.json", Night, version=None),
    File("machine_v1.json", "results/machine.json", MachineIdentity),
    File("telemetry_v1.json", "results/experiments/telemetry/NAME/telemetry_<stamp>.json", Telemetry),
    File("verdict_v1.json", f"{_STAT_ALERTS}/verdict.json", NightVerdict),
    File("code_changes_v1.json", "results/experiments/graph/NAME/code_changes.json", CodeChanges),
    File("trial_v1.json", "results/tries/<stamp>.json", Trial),
    File("try_request_v1.json", "results/tries/queue/<id>.json", TrialRequest),
    File("scores_v1.json", f"{_OUTPUT}/score/scores.json", Scores),
    File("score_page_v1.json", f"{_OUTPUT}/score/page.json", ScorePage),
    File("telemetry_page_v1.json", f"{_OUTPUT}/telemetry/page.json", TelemetryPage),
    File("deadlines_v1.json", f"{_OUTPUT}/deadline/deadlines.json", DeadlinesAhead),
    File("alerts_page_v1.json", f"{_STAT_ALERTS}/page.json", AlertsPage),
    File("receipt_v1.json", f"{_OUTPUT}/website/receipts/<stamp>/NAME.json", Receipt),
    File("remeasured_v1.json", f"{_STAT_ALERTS}/remeasured/<stamp>.json", Remeasured),
    File("in_slack_v1.json", f"{_OUTPUT}/NAME/in_slack.json", InSlack),
    File("routes_v1.json", f"{_OUTPUT}/NAME/routes.json", RouteStates),
    File("webhook_v1.json", "what a route of kind webhook posts", Message),
    File("incidents_v1.json", f"{_STAT_ALERTS}/incidents.json", Incidents),
)


def outputs() -> dict[Path, str]:
    """What each file that this makes should hold."""
    schemas = {SCHEMAS / file.schema: common.dump_json(file.made) for file in FILES}
    return {**schemas, PAGE: "\n".join(_page()) + "\n"}


def _page() -> Iterator[str]:
    yield "# Schemas of files"
    yield ""
    yield "Made by `tests/make_schemas.py` from the classes that read and write these files; a test keeps it true."
    yield "Names and meanings stay while `schema_version` is the same, and more names may come: pass over what you do"
    yield "not know. A field that is not *required* may be missing in files of older dashboards."
    for file in FILES:
        schema = file.made
        yield from (
            "",
            f"## {file.path}",
            "",
            f"[{file.schema}](../../shared/python/tvmdash/schemas/{file.schema})",
            "",
        )
        yield from _described(schema)
        for name, inner in schema.get("$defs", {}).items():
            yield from ("", f"### {name} in `{file.path.rpartition('/')[2]}`", "")
            yield from _described(inner)


def _described(schema: Schema) -> Iterator[str]:
    yield schema["description"]
    if "enum" in schema:
        yield from ("", "One of: " + ", ".join(f"`{item}`" for item in schema["enum"]) + ".")
        return
    yield from ("", "| field | holds | required |", "|---|---|---|")
    for name, field in schema["properties"].items():
        yield f"| `{name}` | {_kind(field)} | {'yes' if name in schema['required'] else ''} |"


def _kind(field: dict[str, Any]) -> str:
    """What a field holds, for the table."""
    texts: dict[str, Callable[[Any], str]] = {
        "$ref": lambda name: str(name.rpartition("/")[2]),
        "const": lambda value: f"`{json.dumps(value)}`",
        "anyOf": lambda choices: " or ".join(map(_kind, choices)),
        "enum": lambda choices: ", ".join(f"`{item}`" for item in choices),
        "pattern": lambda _: "stamp",
        "prefixItems": lambda items: "list of " + ", ".join(map(_kind, items)),
        "items": lambda item: f"list of {_kind(item)}",
        "additionalProperties": lambda item: f"object of {_kind(item)}",
        "type": lambda kind: kind if isinstance(kind, str) else " or ".join(kind),
    }
    return next((text(field[key]) for key, text in texts.items() if key in field), "anything")


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
            **{name: _of(hints[field.name], defs) for name, field in named.items()},
            **{name: _of(get_type_hints(item.fget)["return"], defs) for name, item in written_properties(kind).items()},
        },
    }


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


if __name__ == "__main__":
    for path, content in outputs().items():
        path.write_text(content, encoding="utf-8")
