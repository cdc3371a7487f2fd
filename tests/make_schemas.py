"""Write the schemas of files that a stranger may read, and docs/reference/schemas.md: `python3 tests/make_schemas.py`.

Both are made from the dataclasses that read and write these files; a test keeps them true.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.backfill.calls import Call
from tvmdash.contracts.alerts import AlertsPage
from tvmdash.contracts.bisection import Bisection
from tvmdash.contracts.code_changes import CodeChanges
from tvmdash.contracts.deadlines import DeadlinesAhead
from tvmdash.contracts.in_slack import InSlack
from tvmdash.contracts.receipts import Receipt
from tvmdash.contracts.remeasured import Remeasured
from tvmdash.contracts.reproduction import ReproductionResult
from tvmdash.contracts.routes import RouteStates
from tvmdash.contracts.scores import ScorePage, Scores
from tvmdash.contracts.signoff import Signoff
from tvmdash.contracts.telemetry import TelemetryPage
from tvmdash.contracts.tries import Try, TryRequest
from tvmdash.dashboard_info import Night
from tvmdash.incidents.ledger import Incidents
from tvmdash.machine.identity import MachineIdentity
from tvmdash.machine.telemetry import Telemetry
from tvmdash.routes.message import Message
from tvmdash.structured.schema import Schema, schema_of
from tvmdash.verdict import NightVerdict

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
    File("backfill_v1.json", "results/backfills/<stamp>.json", Call, version=None),
    File("bisection_v1.json", "results/bisections/NAME.json", Bisection),
    File("try_v1.json", "results/tries/<stamp>.json", Try),
    File("try_request_v1.json", "results/tries/queue/<id>.json", TryRequest),
    File("reproduction_v2.json", "results/reproductions/<stamp>.json", ReproductionResult, version=2),
    File("signoff_v1.json", "FILE of signoff --json", Signoff),
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


if __name__ == "__main__":
    for path, content in outputs().items():
        path.write_text(content, encoding="utf-8")
