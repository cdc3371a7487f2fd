"""Runs test modules in the order in which they are named: `python -P tests/benchmarks/nearest_first.py CPU_S MODULES`.

All cheap tests come before the first dear one, the other way round than in the suite, whose workers shall end together.
No test begins after so many CPU seconds. The last line says what the tests have cost.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from dataclasses import dataclass

import pytest

OUT_OF_TIME = 100
"""An exit code that pytest has no other meaning for."""


@dataclass(frozen=True)
class NearestFirst:
    limit_s: float

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        import costs  # the tests' own, as tests/conftest.py has put them on the path

        dear = costs.read().keys() | {costs.TVM}
        given: dict[str, int] = defaultdict(lambda: len(given))
        for name in session.config.args:
            given[costs.module_of(name)]
        session.items.sort(key=lambda item: (bool(dear & costs.names_of(item)), given[costs.module_of(item.nodeid)]))

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        if spent_s() > self.limit_s:
            pytest.exit("The time is up.", OUT_OF_TIME)


def spent_s() -> float:
    return sum(os.times()[:4])


if __name__ == "__main__":
    code = pytest.main(sys.argv[2:], plugins=[NearestFirst(float(sys.argv[1]))])
    print(f"\n{spent_s():.1f}")
    sys.exit(code)
