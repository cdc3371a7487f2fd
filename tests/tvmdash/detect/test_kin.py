"""Which of an experiment's other series say how builds differ: enough of them, and no more."""

from __future__ import annotations

import pytest

from tvmdash.detect.beside.contrasts import Contrast
from tvmdash.detect.beside.luck import MOST_KIN, find_kin


def series(count: int, *, same_code: bool) -> dict[str, list[Contrast]]:
    contrast = Contrast(0.0, 1.0, 1.0, 1.0, 1, 0, 1, same_code)
    return {f"{same_code}{at}": [contrast] for at in range(count)}


def test_in_a_small_experiment_every_series_is_kin_of_those_with_code_like_its_own() -> None:
    found = {**series(7, same_code=True), **series(3, same_code=False), "known from one build": []}
    kin = find_kin(found)
    assert kin == {True: [f"True{at}" for at in range(7)], False: [f"False{at}" for at in range(3)]}


@pytest.mark.parametrize("count", [MOST_KIN + 1, 5000])
def test_of_thousands_of_series_some_from_the_first_to_the_last_are_kin(count: int) -> None:
    kin = find_kin(series(count, same_code=True))[True]
    assert MOST_KIN / 2 <= len(kin) <= MOST_KIN
    assert int(kin[-1].removeprefix("True")) >= count - 2 * count / MOST_KIN
