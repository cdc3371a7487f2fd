"""Tells which jobs of the night did not go well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import Home, Night
from tvmdash.subsys_templates import Report, Subsystem


class Example(Subsystem):
    """A report where there is something to tell; the names as a file every night."""

    def work(self, config: Mapping[str, Any], output: Path, home: Home, tonight: Night) -> Report | None:
        bad = sorted(job.name for job in tonight.jobs if job.steps and not job.well)
        common.write_json(output / "page.json", {"stamp": tonight.stamp, "not_well": bad})
        return Report("Not well", ", ".join(bad)) if len(bad) >= config["least"] else None


if __name__ == "__main__":
    raise SystemExit(Example().main())
