"""Which artifact, and which code of its own, an experiment had on a night: as its data files say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError


@dataclass(frozen=True)
class Build:
    """One night of one experiment. artifact: None where it is not known (imported, added by hand)."""

    artifact: str | None
    fingerprint: str | None


@dataclass
class Builds:
    """The builds of a home; each data file that is asked for is read once."""

    home: Home
    _known: dict[tuple[str, str], Build] = field(default_factory=dict)

    def of(self, experiment: str, stamp: str) -> Build:
        """The experiment's build of that night."""
        if (experiment, stamp) not in self._known:
            self._known[experiment, stamp] = self._read(experiment, stamp)
        return self._known[experiment, stamp]

    def _read(self, experiment: str, stamp: str) -> Build:
        try:
            value = common.read_json(self.home.data_file(experiment, stamp))
        except DashboardError:  # taken in once and gone since: what it was made with is not known
            return Build(None, None)
        night: Any = value.get("night") if isinstance(value, dict) else None
        night = night if isinstance(night, dict) else {}
        artifact = night.get("artifact")
        key = artifact.get("key") if isinstance(artifact, dict) else None
        fingerprint = night.get("fingerprint")
        return Build(key if isinstance(key, str) else None, fingerprint if isinstance(fingerprint, str) else None)
