"""The abilities of one TVM build with a device, tested in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts.artifact import Artifact, ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.proof import Check, read_answer
from dashboard.artifacts.runtimes import health
from tvmdash.errors import DashboardError


@dataclass(frozen=True)
class Abilities:
    """The abilities of a TVM build with a device.

    generates: it makes code for it. drives: it has a runtime for it. model, driver: of the device that the runtime
    sees, empty where it sees none. max_error: of an answer that it was asked for.
    """

    generates: bool
    drives: bool
    model: str
    driver: str
    max_error: float | None


def find_abilities(artifact: Artifact, kind: str, index: int, context: BuildContext, scratch: Path) -> Abilities:
    """Test the artifact on that device.

    ArtifactError where the process that finds out does not come to its end, or the device computes wrongly.
    """
    log = context.log_folder / f"device-{kind}-{index}-{artifact.version}.log"
    paths = artifact.import_path, artifact.loader_path
    check = Check(*paths, scratch, log, context.deadline, artifact.variables)
    tail = check.run([str(health.__file__), kind, str(index)])
    try:
        value = read_answer(tail, log)
        device = value["device"] or {}
        seen = str(device.get("model", "")), str(device.get("driver", ""))
        return Abilities(bool(value["generates"]), bool(value["drives"]), *seen, value["max_error"])
    except (DashboardError, KeyError, TypeError) as error:
        raise ArtifactError(f"the check wrote no readable result: {error} (log: {log})") from error
