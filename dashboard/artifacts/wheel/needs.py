"""What a wheel installed without its dependencies declares, held against the running Python's packages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dashboard.artifacts.artifact import ArtifactError

if TYPE_CHECKING:
    from importlib.metadata import Distribution

    from packaging.requirements import Requirement


_OF_DEVICES = ("nvidia-", "cuda-")
"""Packages that `artifacts.runtimes` brings where a home has such a device; without one, nothing loads them."""


def read_distribution(folder: Path, name: str) -> Distribution:
    """The package `name` as installed in `folder`."""
    import importlib.metadata  # in each function that needs it: a tenth of what the command line takes to start

    distributions = list(importlib.metadata.distributions(name=name, path=[str(folder)]))
    if len(distributions) != 1:
        raise ArtifactError(
            f"{folder}: contains {len(distributions)} installations of {name}, expected one. Delete the folder."
        )
    return distributions[0]


def read_requirements(wheel: Distribution) -> list[Requirement]:
    """The requirements of `wheel` that hold for this Python and machine, those of its extras left out."""
    from packaging.requirements import Requirement

    needs = [Requirement(text) for text in wheel.requires or ()]
    return [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]


def check(wheel: Distribution, *, provided: frozenset[str]) -> None:
    """Raise ArtifactError where a requirement, other than those `provided`, is not met by the running Python."""
    from packaging.utils import canonicalize_name

    needs = [
        need
        for need in read_requirements(wheel)
        if (name := canonicalize_name(need.name)) not in provided and not name.startswith(_OF_DEVICES)
    ]
    lacking = [f"{need}: {fault}" for need in needs if (fault := _find_lack(need))]
    if lacking:
        raise ArtifactError(
            f"{wheel.metadata['Name']} {wheel.version} needs {'; '.join(lacking)}. "
            f"Add it to requirements.txt, or run {sys.executable} -m pip install it."
        )


def _find_lack(need: Requirement) -> str | None:
    import importlib.metadata

    try:
        version = importlib.metadata.version(need.name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
    return None if need.specifier.contains(version, prereleases=True) else f"{version} is installed"
