"""The TVM that tonight's is measured against, as the night names it to the run stage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.dashboard_info import OF_REFERENCE, VARIANT_SIGN

VARIABLE = "TVMDASH_REFERENCE"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Reference:
    """An artifact: its key and version, and its folders for Python and the loader.

    measured: how many pairs of processes were measured beside it, by the hash of all that a point ran.
    """

    key: str
    version: str
    commit: str | None
    pythonpath: tuple[str, ...]
    library_path: tuple[str, ...]
    measured: Mapping[str, int] = field(default_factory=dict)

    def environment(self, tonight: Mapping[str, str]) -> dict[str, str]:
        """Return the environment that imports the reference, from that of a process that imports tonight's TVM."""
        own = [str(Path(__file__).parents[3]), *self.pythonpath]
        return {
            **tonight,
            "PYTHONPATH": _join(own, tonight.get("PYTHONPATH", "")),
            "LD_LIBRARY_PATH": _join(self.library_path, tonight.get("LD_LIBRARY_PATH", "")),
            "TVMDASH_ARTIFACT": self.key,
            "TVMDASH_JOB": f"{tonight.get('TVMDASH_JOB', '')}{VARIANT_SIGN}{OF_REFERENCE}",
        }


def _join(first: tuple[str, ...] | list[str], rest: str) -> str:
    return os.pathsep.join(dict.fromkeys([*first, *filter(None, rest.split(os.pathsep))]))


def read_reference() -> Reference | None:
    """Return the reference of this run, None where the night has none; DashboardError where its file is damaged."""
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    path = Path(named)
    value = common.read_json(path)
    structured.check_version(value, SCHEMA_VERSION, path, remedy="The night writes it; run it again.")
    return structured.from_json(Reference, value, path)
