"""The explorer over a home whose truth is planted, from disk: what it shows is what was measured."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from watching import Watched, opening

from tests.subsystem.stat_alerts.alert_homes import stamp_of
from tests.subsystem.website import planted
from tvmdash import common

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tvmdash.dashboard_info import Home


WALK = """() => {
  const chart = document.querySelector("#chart"), found = [];
  const texts = (name) => [...document.querySelectorAll(`#card ${name}`)].map((one) => one.textContent);
  for (let key = "Home"; ; key = "ArrowRight") {
    chart.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
    const values = texts("dd"), facts = texts("dt").map((name, at) => [name, values[at]]);
    if (key !== "Home" && JSON.stringify(found[found.length - 1][1]) === JSON.stringify(facts)) return found;
    const x = Number(document.querySelector(".chart-dot").style.transform.match(/[\\d.]+/)[0]);
    found.push([x, facts, texts(".card-value strong")[0]]);
  }
}"""


class Explorer:
    """The page of the planted home in a browser."""

    def __init__(self, home: Home, watched: Watched) -> None:
        self.home = home
        self.watched = watched
        self.page = watched.page
        index = common.read_json(home.output("website") / "index.json")["series"]
        rows = zip(index["name"], index["id"], strict=True)
        self.ids = {name: series for name, series in rows if name.endswith("run time")}

    def id_of(self, name: str) -> str:
        return self.ids[f"{name} run time"]

    def show(self, names: list[str], **state: str) -> None:
        """Chart series, as in "cnn_comp cnn.resnet18"."""
        parts = {"series": ",".join(map(self.id_of, names)), **state}
        self.watched.go("index.html")
        self.watched.go("explore.html#" + "&".join(f"{key}={value}" for key, value in parts.items()), drawn=True)
        self.watched.settle()

    def ms(self, experiment: str, workload: str, night: int) -> float:
        """What was measured."""
        data = common.read_json(self.home.data(experiment) / f"data_{stamp_of(night)}.json")
        (found,) = (record for record in data["records"] if record["workload"] == workload)
        return found["execution_elapsed_ms_mean"]

    def walk(self) -> list[tuple[float, dict[str, str], str]]:
        """From the first point in view to the last by the arrow keys: where it is, its facts, its value."""
        return [(x, dict(facts), value) for x, facts, value in self.watched.evaluate(WALK)]


@pytest.fixture
def explorer(chromium: Browser, planted_home: Home) -> Iterator[Explorer]:
    with opening(chromium, f"{planted_home.output('website').resolve().as_uri()}/") as watched:
        yield Explorer(planted_home, watched)


RESNET = "cnn_comp cnn.resnet18"


def gaps(places: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(places)]


def day_of(night: int) -> str:
    return f"{common.parse_stamp(stamp_of(night)):%-d %b %Y, %H:%M UTC}"


def test_by_date_nights_are_as_far_apart_as_they_were_and_by_night_all_alike(explorer: Explorer) -> None:
    nights = planted.nights()
    off = nights.index(planted.OFF and max(planted.OFF) + 1) - 1
    explorer.show([RESNET])
    by_date = list(explorer.walk())
    assert [facts["night"] for _, facts, _ in by_date] == [day_of(night) for night in nights]
    for night, (_, facts, value) in zip(nights, by_date, strict=True):
        assert value == f"{explorer.ms('cnn_comp', 'cnn.resnet18', night):.2f} ms"
        assert facts["TVM"] == planted.commit_of(night)
    wide = gaps([x for x, _, _ in by_date])
    assert wide.pop(off) == pytest.approx((len(planted.OFF) + 1) * wide[0], rel=0.01)
    assert wide == pytest.approx([wide[0]] * len(wide), rel=0.02)
    explorer.page.select_option("#x", label="by night")
    explorer.page.wait_for_function("() => location.hash.includes('x=night')")
    explorer.watched.settle()
    by_night = list(explorer.walk())
    assert [words for _, *words in by_night] == [words for _, *words in by_date]
    even = gaps([x for x, _, _ in by_night])
    assert even == pytest.approx([even[0]] * len(even), rel=0.02)


def test_by_commit_the_nights_of_one_stand_together(explorer: Explorer) -> None:
    explorer.show([RESNET], x="commit")
    assert explorer.page.input_value("#x") == "commit"
    walked = list(explorer.walk())
    assert [facts["night"] for _, facts, _ in walked] == [day_of(night) for night in planted.nights()]
    places: dict[str, list[float]] = {}
    for x, facts, _ in walked:
        places.setdefault(facts["TVM"], []).append(x)
    together = places[planted.commit_of(planted.SAME_COMMIT[0])]
    assert [len(found) for found in places.values() if len(found) > 1] == [len(planted.SAME_COMMIT)]
    middles = gaps([sum(found) / len(found) for found in places.values()])
    assert middles == pytest.approx([middles[0]] * len(middles), rel=0.02)
    assert max(gaps(together)) < middles[0] / 3
    before = list(places.values())[list(places).index(planted.commit_of(planted.SAME_COMMIT[0])) - 1][0]
    assert together[0] - before > 2 * max(gaps(together))


def test_a_part_of_the_commits_is_a_part_of_the_nights_on_any_axis(explorer: Explorer) -> None:
    explorer.show([RESNET], x="commit")
    box = explorer.page.locator("#chart .u-over").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    explorer.page.mouse.move(box["x"] + box["width"] * 0.8, middle)
    explorer.page.mouse.down()
    explorer.page.mouse.move(box["x"] + box["width"] * 0.9, middle)
    explorer.page.mouse.move(box["x"] + box["width"] - 1, middle)
    explorer.page.mouse.up()
    explorer.watched.settle()
    chosen = [facts["night"] for _, facts, _ in explorer.walk()]
    assert 5 < len(chosen) < 10
    assert chosen[-1] == day_of(planted.TONIGHT)
    assert re.search(r"from=20260[56]\d\dT031500Z&to=20260609T031500Z", explorer.page.url)
    for other in ("by night", "by date"):
        explorer.page.select_option("#x", label=other)
        explorer.page.wait_for_function(
            f"() => location.hash.includes('x={other.split()[1]}')"
            if other != "by date"
            else "() => !location.hash.includes('x=')"
        )
        explorer.watched.settle()
        assert [facts["night"] for _, facts, _ in explorer.walk()] == chosen
