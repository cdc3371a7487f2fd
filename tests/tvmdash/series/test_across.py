"""The same point on several machines, whatever a host says of its target."""

from __future__ import annotations

import pytest

from tvmdash.series import naming


def test_what_follows_from_the_machine_is_left_out() -> None:
    here, there = '{"kind": "llvm", "mcpu": "znver4"}', '{"kind": "llvm", "mcpu": "apple-m1"}'
    assert naming.point_of("cnn", "time", {"target": here}) == naming.point_of("cnn~box", "time", {"target": there})


@pytest.mark.parametrize("target", ["[" * 100_000, "llvm", '{"kind": NaN}', "\ud800", "9" * 5000])
def test_a_target_that_is_no_json_is_compared_as_it_is(target: str) -> None:
    assert naming.point_of("cnn", "time", {"target": target}) != naming.point_of("cnn", "time", {"target": "c"})
