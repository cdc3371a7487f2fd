"""Traces: many databases of measurements read as one, by SQL. See docs/reference/traces.md."""

from __future__ import annotations

from tvmdash.traces.connection import Connection, connect
from tvmdash.traces.cursor import Cursor
from tvmdash.traces.filters import Filters, Straddle, Window

__all__ = ["Connection", "Cursor", "Filters", "Straddle", "Window", "connect"]
