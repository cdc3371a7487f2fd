"""A survey of what this machine's drivers and a TVM can do with a device, with the command that installs what lacks."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts.artifact import RUNTIMES, Artifact, ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.runtimes.abilities import DRIVERS, find_abilities, list_driver_devices
from dashboard.artifacts.runtimes.recipes import PACKAGES, RECIPES, format_packages
from dashboard.artifacts.runtimes.runtimes import find_lacking, tag_of
from dashboard.artifacts.spec import WHEEL

_TVM_S, _ASK_S = 300.0, 60.0


@dataclass(frozen=True)
class DeviceFinding:
    """A finding about one device, in a sentence. is_fault: its points would fail."""

    text: str
    is_fault: bool = False


def survey(kind: str, index: int, artifact: Artifact | None, source: str) -> DeviceFinding:
    """Examine that device of this machine. artifact: the TVM that the home has by now, where it has one.

    source: the git remote that the runtime which a wheel lacks is built from.
    """
    seen = list_driver_devices(kind)
    if not seen:
        what = "no driver is installed" if seen is None else "the driver reports no device"
        return DeviceFinding(f"{what} ({DRIVERS[kind]}).", is_fault=True)
    if index >= len(seen):
        return DeviceFinding(
            f"the driver reports only {len(seen)}: {', '.join(seen)}; numbering starts at 0.", is_fault=True
        )
    driver = f"the driver reports {seen[index]}"
    if artifact is None:
        return DeviceFinding(f"{driver}; the first night tests whether TVM can use it.")
    if find_lacking(artifact, [kind]):
        if kind in PACKAGES:
            return DeviceFinding(
                f"{driver}; the next night installs {format_packages(kind)} for TVM {artifact.version}."
            )
        return _describe_build(kind, driver, artifact, source)
    return _ask_tvm(kind, index, driver, artifact)


def _describe_build(kind: str, driver: str, artifact: Artifact, source: str) -> DeviceFinding:
    recipe = RECIPES[kind]
    missing = [name for name in ("git", "c++") if shutil.which(name) is None]
    if not missing and not _has_headers(recipe.header, recipe.libraries):
        missing = ["headers or library"]
    if missing:
        text = f"TVM {artifact.version} has no runtime for it, and building one requires {', '.join(missing)}"
        return DeviceFinding(f"{driver}; {text} (Debian, Ubuntu: {recipe.install}).", is_fault=True)
    try:
        Mirror.of(artifact.path.parent, source).check_offered(tag_of(artifact.version), LockDeadline(_ASK_S))
    except ArtifactError as error:
        what = f"TVM {artifact.version} has no runtime for it, and its source cannot be reached"
        return DeviceFinding(f"{driver}; {what}: {error} Set tvm_source to a remote that has it.", is_fault=True)
    return DeviceFinding(f"{driver}; the next night builds its runtime for TVM {artifact.version} from {source}.")


def _has_headers(header: str, libraries: tuple[str, ...]) -> bool:
    """Return True where a program that includes the header links with the libraries."""
    with tempfile.TemporaryDirectory() as folder:
        argv = ["c++", "-x", "c++", "-", "-o", str(Path(folder) / "a"), *(f"-l{name}" for name in libraries)]
        text = f"#include <{header}>\nint main() {{ return 0; }}\n"
        try:
            return (
                subprocess.run(argv, input=text.encode(), capture_output=True, timeout=60, check=False).returncode == 0
            )
        except (OSError, subprocess.SubprocessError):
            return False


def _ask_tvm(kind: str, index: int, driver: str, artifact: Artifact) -> DeviceFinding:
    tvm = f"TVM {artifact.version}"
    with tempfile.TemporaryDirectory() as folder:
        context = BuildContext(artifact.path.parent, Path(folder), LockDeadline(_TVM_S))
        try:
            can = find_abilities(artifact, kind, index, context, Path(folder) / "scratch")
        except ArtifactError as error:
            return DeviceFinding(f"{driver}; {tvm} cannot use it: {error}", is_fault=True)
    if not can.drives:
        return DeviceFinding(f"{driver}; {tvm} has no runtime for it: {_describe_lack(kind, artifact)}.", is_fault=True)
    if not can.model:
        return DeviceFinding(f"{driver}; {tvm} does not detect it.", is_fault=True)
    if can.max_error is None:
        return DeviceFinding(f"{driver}; {tvm} can access it but cannot generate code for it.", is_fault=True)
    return DeviceFinding(f"{driver}; {tvm} computes correctly on it (largest error {can.max_error:.2g}).")


def _describe_lack(kind: str, artifact: Artifact) -> str:
    if kind in {*RECIPES, *PACKAGES} and artifact.provider == WHEEL:
        return (
            f"the runtime built for it does not load; delete {artifact.path / RUNTIMES / kind}, and the next night "
            "rebuilds it"
        )
    return f"build it from source (tvm_remote, tvm_branch) with USE_{kind.upper()} on"
