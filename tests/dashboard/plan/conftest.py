"""What `check` starts of jobs costs less where it is forked: see tests/dashboard/warm_tools.py."""

from __future__ import annotations

import pytest

from tests.dashboard.warm_tools import warm_tools

__all__ = ["warm_tools"]


@pytest.fixture(autouse=True)
def _by_warm_tools(warm_tools: None) -> None: ...
