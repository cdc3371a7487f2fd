"""Print docs/reference/config.md: `python3 tests/make_config_docs.py > docs/reference/config.md`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tvmdash import config_util
from tvmdash.config_util import REQUIRED, Field, Fields
from tvmdash.config_util.fields import SAME

REPOSITORY = Path(__file__).resolve().parent.parent


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Config fields"
    yield ""
    yield "Made by `tests/make_config_docs.py`; a test keeps it true. An unknown or mistyped field is an error that"
    yield "names file, JSON path, value and remedy. A bad config of one job rejects that job alone; a bad top-level"
    yield "config stops the night before anything is touched."
    yield ""
    yield "Paths may begin with `~`; relative ones are relative to the home."
    yield from _table("config/config.json", config_util.HOME_FIELDS)
    yield from _table("config/experiments/NAME/config.json", config_util.EXPERIMENT_FIELDS)
    yield from _table("config/subsystem/NAME/config.json", config_util.SUBSYSTEM_FIELDS)
    yield from _table("A host (home's hosts.NAME)", config_util.HOST_FIELDS)
    yield from _table("A device (home's devices.NAME)", config_util.DEVICE_FIELDS)
    yield from _table("A route (home's routes.NAME)", config_util.ROUTE_FIELDS)
    yield from _table("Owners (home's owners)", config_util.OWNER_FIELDS)
    for name, fields in config_util.FIELD_SETS.items():
        what = {
            "timing": "Timing of a point",
            "target": "Target of TVM",
            "device": "Devices",
            "operators": "Operators",
            "slack": "A subsystem that speaks in Slack",
        }[name]
        yield from _table(f'{what} (`"include": ["{name}"]` in fields.json)', fields)
    for path in sorted(REPOSITORY.glob("*/*/fields.json")):
        own = {name: field for name, field in config_util.read_fields(path).items() if not _included(name, field)}
        if own:
            yield from _table(f"{path.parent.name}'s own", own)


def _included(name: str, field: Field) -> bool:
    """Whether the field is in an included set, with nothing changed."""
    return any(fields.get(name) == field for fields in config_util.FIELD_SETS.values())


def _table(title: str, fields: Fields) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| field | type | default | meaning |", "|---|---|---|---|")
    for name, field in fields.items():
        kind = f"{field.type} of {field.of.type}" if field.of else field.type
        default = "*must be given*" if field.default is REQUIRED else f"`{json.dumps(field.default)}`"
        default += f" (smoke: `{json.dumps(field.smoke)}`)" if field.smoke is not SAME else ""
        choices = f" One of: {', '.join(map(str, field.choices))}." if field.choices else ""
        yield f"| `{name}` | {kind} | {default} | {field.doc}{choices} |".replace("\n", " ")


if __name__ == "__main__":
    sys.stdout.write(page())
