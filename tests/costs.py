"""What tests cost in CPU seconds: the dear ones begin first, so that all workers end together; --quick leaves them out.

costs.txt has a line for each test function, and each fixture that tests share, of DEAR_S or more, with what it starts.
`tests/run.sh --measure` writes it anew. It is advice: a test without a line is taken for a cheap one, a line without a
test does no harm.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("costs.txt")
DEAR_S = 0.3
TVM = "tests::tvm_artifact"
"""The fixture of tests that use TVM in their own process, dear to whichever comes first."""
_BEGUN = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("costs")
    group.addoption("--quick", action="store_true", help=f"leave out tests of {DEAR_S:g} CPU seconds or more")
    group.addoption("--measure", action="store_true", help=f"write {FILE.name} anew, of the tests that run")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--measure") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Measured())


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the dearest modules first; with --quick, leave out what is dear and what needs a dear fixture."""
    costs = read()
    if config.getoption("--quick"):
        dear = [item for item in items if (costs.keys() | {TVM}) & names_of(item)]
        config.hook.pytest_deselected(items=dear)
        items[:] = [item for item in items if item not in set(dear)]
    modules: dict[str, float] = defaultdict(float)
    for name, cost_s in costs.items():
        modules[module_of(name)] += cost_s
    items.sort(key=lambda item: -modules[module_of(item.nodeid)])  # stable: in a module they stay as they stand


def read() -> dict[str, float]:
    """The cost of each dear test function and fixture."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return {name: float(cost_s) for cost_s, name in (line.split(maxsplit=1) for line in lines)}


def names_of(item: pytest.Item) -> set[str]:
    """The test function and its fixtures, as costs.txt names them."""
    known = getattr(item, "_fixtureinfo", None)
    fixtures = known.name2fixturedefs.values() if known else []
    return {function_of(item.nodeid), *(name_of(one) for group in fixtures for one in group)}


def function_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def module_of(name: str) -> str:
    return name.partition("::")[0]


def name_of(fixture: pytest.FixtureDef[Any]) -> str:
    return f"{fixture.baseid}::{fixture.argname}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _spent.clear()
    item.stash[_BEGUN] = _cpu_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    begun, inner_s = _cpu_s(), sum(_spent.values())
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            _spent[name_of(fixturedef)] = _cpu_s() - begun - (sum(_spent.values()) - inner_s)


_spent: dict[str, float] = {}
"""What each shared fixture made for the present test has cost, without those it needs itself."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.config.getoption("--measure") and report.when == "teardown":
        own_s = _cpu_s() - item.stash[_BEGUN] - sum(_spent.values())
        report.user_properties = [(function_of(item.nodeid), own_s), *_spent.items()]
    return report


def _cpu_s() -> float:
    """What this process has used, with its children that have ended and programs that ran in a warm process."""
    warm = sys.modules.get("tests.warm")
    return sum(os.times()[:4]) + (warm.spent_s() if warm else 0.0)


class Measured:
    """Adds up what workers report. A fixture that two workers made counts twice, as it costs twice."""

    def __init__(self) -> None:
        self.costs: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            for name, cost_s in report.user_properties:
                self.costs[name] += cost_s

    def pytest_sessionfinish(self) -> None:
        dear = {name: cost_s for name, cost_s in self.costs.items() if cost_s >= DEAR_S}
        FILE.write_text("".join(f"{dear[name]:.1f} {name}\n" for name in sorted(dear)), encoding="utf-8")
