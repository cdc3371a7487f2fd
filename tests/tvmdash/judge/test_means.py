"""How many times as fast, in words that say how sure that is."""

from __future__ import annotations

from tvmdash.summary_util import Ratio, format_ratio, geometric_mean_ratio
from tvmdash.text import format_estimate, format_quantity


def test_an_interval_that_says_nothing_is_not_told() -> None:
    wide = geometric_mean_ratio([(1.0, 10.0), (10.0, 1.0)])
    assert format_ratio(wide) == "1.00x faster (2 workloads, too few or too different for an interval)"
    assert format_ratio(Ratio(2.0, 1.5, 2.5, 4)).endswith("(1.50 to 2.50, 4 workloads)")


def test_an_interval_has_the_unit_of_its_value() -> None:
    assert format_estimate(12.1, 11.85, 12.4, "ms") == "12.1 ms (11.8 to 12.4)"
    assert format_estimate(1200.0, 900.0, 2000.0, "ms") == "1.20 s (0.900 to 2.00)"
    assert format_estimate(0.002, 0.0, 0.01, "ms") == "2.00 µs (0 to 10.0)"
    assert format_estimate(12.1, None, 12.4, "ms") == "12.1 ms"
    assert format_estimate(1500, 1000, 2000, "bytes") == format_quantity(1500, "bytes") == "1.50 kB"
