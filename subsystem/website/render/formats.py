"""Values as the templates write them: dates, numbers, states with their icons."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from views.night_results import amount
from views.series import BLIND, GONE, MISSING, STEADY, SUSPECT, UNJUDGED, YOUNG

from tvmdash import common
from tvmdash.incidents.ledger import ACKNOWLEDGED, CONFIRMED, EXPECTED, FALSE_ALARM, FIXED, NEW
from tvmdash.records.metrics import BETTER, CHANGED, WORSE
from tvmdash.text import MINUS, elide, format_bytes, format_duration, format_percent, format_quantity, three_digits
from tvmdash.verdict.account import NightSeverity

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
SERIES_ICONS = {
    WORSE: "✖",
    SUSPECT: "!",
    BETTER: "★",
    CHANGED: "◇",
    STEADY: "=",
    BLIND: "≈",
    MISSING: "∅",
    YOUNG: "◔",
    UNJUDGED: "?",
    GONE: "\u2013",
}
SEVERITY_ICONS = {NightSeverity.GOOD: "✓", NightSeverity.WARN: "!", NightSeverity.BAD: "✖", NightSeverity.UNKNOWN: "?"}
INCIDENT_ICONS = {NEW: "●", CONFIRMED: "●", ACKNOWLEDGED: "◐", EXPECTED: "○", FIXED: "✓", FALSE_ALARM: "○"}


def share(value: float | None) -> str:
    """Format a fraction as in "1.2 %"; empty for None."""
    if value is None:
        return ""
    percent = 100 * value
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %" if percent >= 0.95 else f"{percent:.2g} %"


def signed_quantity(value: float, unit: str) -> str:
    r"""Format a difference: "+1.50 ms", "\u22120.20 ms", "0 ms"."""
    sign = MINUS if value < 0 else "+" if value > 0 else ""
    return f"{sign}{format_quantity(abs(value), unit)}"


def anchor(name: str) -> str:
    """Make any text a part of an HTML id; the IDs that this dashboard makes stay as they are."""
    return name if _PLAIN.fullmatch(name) else common.safe_name(name)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "moment": common.format_moment,
    "day": common.format_day,
    "anchor": anchor,
    "clip": elide,
    "amount": amount,
    "day_number": lambda stamp: common.parse_stamp(stamp).day,
    "duration": format_duration,
    "share": share,
    "quantity": format_quantity,
    "signed_quantity": signed_quantity,
    "percent": format_percent,
    "three_digits": three_digits,
    "size": format_bytes,
    "spaced": lambda name: str(name).replace("_", " "),
}
