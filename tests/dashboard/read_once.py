"""Reads and writes a night's record, as every command does; importing it makes the functions that do so.

They are made of the dataclasses when a process first needs them: one that was forked from a process that has imported
this has them already.
"""

from __future__ import annotations

from pathlib import Path

from tvmdash.dashboard_info import COMPLETE, Night

Night.from_json(Night("20260101T000000Z", COMPLETE).to_json(), Path("night.json"))
