"""What is declared of a number is found by its name or path, whatever these are."""

from __future__ import annotations

import pytest

from tvmdash.records.metrics import Declarations, declared_in


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("mean", "$.gpu.mean"),
        ("mean", "$.gpu.mean[3][0]"),
        ("gpu.mean", "$.gpu.mean"),
        ("me*", "$.gpu.mean"),
        ("*", "$.gpu.mean"),
        ("*ea*", "$.gpu.mean[1]"),
        ("g*a*n", "$.x.gpu.mean.an"),
        ("b[*", "$.b[0]"),
        ("a*b*a", "$.a.b.b.a"),
        ("a*", "$.xa.ab"),
        ("$.gpu.*", "$.gpu.mean"),
        ("$*mean*[0]", "$.gpu.mean[1][0]"),
        ("$", "$"),
        ("", "$."),
        ("a\nb*", "$.a\nb\n"),
    ],
)
def test_a_name_fits(name: str, path: str) -> None:
    assert Declarations({name: {}}).find(path) == name


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("mean", "$.gpu.geomean"),
        ("mean", "$.gpu.mean.x"),
        ("a*b", "$.ba"),
        ("a*a", "$.a"),
        ("ab*ba", "$.aba"),
        ("$.gpu", "$.gpu[0]"),
        ("$.gpu*", "$.cpu"),
        ("$*mean*[0]", "$.gpu.mean[1]"),
    ],
)
def test_a_name_does_not_fit(name: str, path: str) -> None:
    assert Declarations({name: {}}).find(path) is None


def test_a_name_of_many_stars_is_held_against_a_long_path() -> None:
    for name in ("*a" * 20 + "*b", "$" + "*a" * 20 + "*b"):
        assert Declarations({name: {}}).find("$." + "a" * 1000) is None


@pytest.mark.parametrize(
    ("metrics", "declares"),
    [
        ({"accuracy": {"unit": "%"}}, True),
        ({"accuracy": {"unit": "%", "tolerance": 0.1}}, True),
        ({"accuracy": {"unit": "%", "mean": 0.9}}, False),
        ({"accuracy": {"tolerance": 0.1}}, False),
        ({"accuracy": 0.9}, False),
        ([0.9], False),
        (None, False),
    ],
)
def test_metrics_of_a_foreign_file_declare_unless_they_were_measured(metrics: object, *, declares: bool) -> None:
    assert declared_in({"metrics": metrics}) == (metrics if declares else {})
    assert declared_in({}) == {}
