"""What a TVM's name on the command line asks for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dashboard.artifacts.artifact import MANIFEST, ArtifactSpec
from dashboard.plan.artifact_names import spec_of
from tvmdash.errors import DashboardError

PYPI = ArtifactSpec("pypi", "latest")


@pytest.fixture
def config(tmp_path: Path) -> SimpleNamespace:
    """A home with one artifact at hand."""
    (tmp_path / "wheel-0.26").mkdir()
    (tmp_path / "wheel-0.26" / MANIFEST).write_text("{}")
    return SimpleNamespace(artifacts=tmp_path, tvm=PYPI)


def test_a_key_at_hand_asks_for_nothing(config: SimpleNamespace) -> None:
    assert spec_of("wheel-0.26", config) is None


@pytest.mark.parametrize(
    ("name", "remote", "branch"),
    [
        ("pypi:0.26.0", "pypi", "0.26.0"),
        ("pypi:latest", "pypi", "latest"),
        ("https://example.org/tvm@main", "https://example.org/tvm", "main"),
    ],
)
def test_a_name_asks_for_a_tvm(config: SimpleNamespace, name: str, remote: str, branch: str) -> None:
    spec = spec_of(name, config)
    assert spec is not None
    assert (spec.remote, spec.branch) == (remote, branch)


@pytest.mark.parametrize("name", ["wheel-0.27", "./wheel-0.26", "elsewhere/wheel-0.26"])
def test_what_is_no_key_at_hand_and_no_name_is_refused(config: SimpleNamespace, name: str) -> None:
    with pytest.raises(DashboardError):
        spec_of(name, config)
