"""Which tests a change reaches."""

from __future__ import annotations

import changed
import pytest


@pytest.mark.parametrize(
    ("name", "reached", "spared"),
    [
        (
            "shared/python/tvmdash/plot_util/canvas.py",
            "tests/tvmdash/plot_util/test_courses.py",
            "tests/tvmdash/common/files/test_sync.py",
        ),
        ("dashboard/night/journal.py", "tests/dashboard/night/test_night.py", "tests/tvmdash/stats/test_pooled.py"),
        ("experiments/canary/fields.json", "tests/experiments/test_canary.py", "tests/experiments/test_tuning.py"),
        (
            "subsystem/website/static/site.css",
            "tests/subsystem/website/test_website.py",
            "tests/dashboard/night/test_night.py",
        ),
        ("tests/dashboard/homes.py", "tests/dashboard/night/test_night.py", "tests/tvmdash/stats/test_pooled.py"),
        ("sample-dashboard-home/config/config.json", "tests/test_job_configs.py", "tests/tvmdash/stats/test_pooled.py"),
        (
            "shared/python/tvmdash/signoff/text.py",
            "tests/dashboard/trials/test_signoff.py",
            "tests/tvmdash/stats/test_pooled.py",
        ),
        ("docs/index.md", "tests/test_docs.py", "tests/dashboard/night/test_night.py"),
        ("tests/golden/messages/score.txt", "tests/subsystem/test_score.py", "tests/tvmdash/stats/test_pooled.py"),
    ],
)
def test_a_change_reaches_who_imports_or_starts_it_and_spares_the_others(name: str, reached: str, spared: str) -> None:
    found = changed.find_reached({name})
    assert reached in found
    assert spared not in found


def test_a_module_that_only_another_imports_reaches_the_tests_of_that_one() -> None:
    graph = {"a.py": {"b.py"}, "b.py": {"c.py"}, "c.py": set(), "tests/test_a.py": {"a.py"}}
    assert changed.find_reached({"c.py"}, graph) == {*changed.ALWAYS, "a.py", "b.py", "c.py", "tests/test_a.py"}
