"""The pages on generated code: which functions changed on which night, how, and what leads to them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.subsystem.website.sites import HOSTILE, STAMP, Page, Site, as_shown, assert_whole, job, record, stamp
from tvmdash import common
from tvmdash.common import structured
from tvmdash.dashboard_info import Home
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from tvmdash.records import code_changes
from tvmdash.records.code_changes import ChangedFunction, ChangedPoint, CodeChanges, FunctionSide, OtherBuild
from tvmdash.series import store

BEFORE = FunctionSide("a", {"registers": 40, "source_size": 500}, "x = 1;\ny = 2;\nz = 3;", "for i in T.serial(4):")
AFTER = FunctionSide("b", {"registers": 41, "source_size": 500}, "x = 1;\ny = 7;\nz = 3;", "for i in T.serial(8):")
SOFTMAX = ChangedFunction("softmax_kernel", BEFORE, AFTER, first_pass="tirx.UnrollLoop")
VALUES = {"target": "cuda_sm80", "batch": 1}
POINT = ChangedPoint("code.mlp", VALUES, OtherBuild("wheel-0.26", "0.26.0"), (SOFTMAX,))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(Home(tmp_path / "home"))
    made.night(job("generated"))
    made.data("generated", [record("mlp", 1.0)])
    made.results("generated")
    return made


def leave(site: Site, *points: ChangedPoint, at: str = STAMP) -> None:
    value = {"schema_version": 1, **structured.to_json(CodeChanges(at, points))}
    common.write_json(site.home.graph("generated") / code_changes.FILE, value, durable=False)
    (site.home.graph("generated") / ".stamp").write_text(at)


def published(site: Site, at: str = STAMP) -> list[Page]:
    """The pages on code, those of nights before those of their points."""
    site.publish_here(at)
    assert_whole(site)
    pages = sorted((site.folder / "code").glob("*.html"), key=lambda path: (len(path.name), path.name))
    return [Page.read(path) for path in pages]


def test_each_changed_function_is_told_with_its_numbers_its_pass_and_both_sides(site: Site) -> None:
    leave(site, POINT)
    night, point = published(site)
    assert "1 function of 1 point is another one than on TVM 0.26.0" in night.words
    assert "mlp, cuda_sm80, 1 softmax_kernel +1 register tirx.UnrollLoop" in night.words
    assert "softmax_kernel" in point.words
    assert "40 → 41 registers; first differs after tirx.UnrollLoop" in point.words
    assert point.texts["del"] == ["-for i in T.serial(4):", "-y = 2;"]
    assert point.texts["ins"] == ["+for i in T.serial(8):", "+y = 7;"]
    assert "x = 1;" in point.text, "the lines around them are shown as well"


def test_a_function_that_came_or_went_is_called_so_and_why_no_pass_is_named(site: Site) -> None:
    came = ChangedFunction("a_kernel", None, AFTER, why_not="other hashes")
    went = ChangedFunction("b_kernel", BEFORE, None, first_pass="FuseOps")
    leave(site, replace(POINT, functions=(came, went)))
    _, point = published(site)
    assert "a_kernel new 41 registers, source size 500 bytes; no pass is named: other hashes" in point.words
    assert "b_kernel gone 40 registers before, source size 500 bytes before; first differs after FuseOps" in point.words


def test_the_experiments_page_leads_to_every_night_and_old_nights_stay(site: Site) -> None:
    site.night(job("generated", at=stamp(1)), at=stamp(1))
    leave(site, POINT, at=stamp(1))
    published(site, stamp(1))
    leave(site, replace(POINT, workload="code.dqn"))
    assert len(published(site)) == 4
    assert "Generated code that changed 2026-11-21, 2026-11-20" in site.experiment("generated").words
    kept = site.folder.glob(f"code/{stamp(1)}*")
    inodes = {path.name: path.stat().st_ino for path in kept}
    (site.home.graph("generated") / code_changes.FILE).unlink()
    assert len(published(site)) == 4, "the site itself keeps what no other file has"
    assert {path.name: path.stat().st_ino for path in site.folder.glob(f"code/{stamp(1)}*")} == inodes
    (site.folder / "published.json").unlink()
    assert len(published(site)) == 4, "without its notes too"
    shutil.rmtree(site.folder)
    assert len(published(site)) == 4, "a home that was restored has no site, and addresses that people have"


def test_what_an_older_dashboard_kept_in_its_site_alone_is_kept_in_the_home(site: Site) -> None:
    site.night(job("generated", at=stamp(1)), at=stamp(1))
    leave(site, POINT, at=stamp(1))
    published(site, stamp(1))
    shutil.rmtree(site.home.root / "results" / "code_changes")
    shutil.rmtree(site.home.graph("generated"))
    published(site)
    shutil.rmtree(site.folder)
    assert len(published(site)) == 2


def test_differences_of_nights_that_the_site_shows_no_more_are_not_kept(site: Site) -> None:
    long_ago = stamp(80)
    kept = site.home.root / "results" / "code_changes" / f"{long_ago}-generated.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    leave(site, POINT)
    published(site)
    assert [path.name[:16] for path in kept.parent.iterdir()] == [STAMP]


def test_strangers_text_is_shown_as_text_and_damaged_files_are_told(site: Site) -> None:
    side = replace(AFTER, code="\n".join(HOSTILE), tir=HOSTILE[0])
    hostile = ChangedFunction(HOSTILE[1], BEFORE, side, first_pass=HOSTILE[0])
    leave(site, ChangedPoint(HOSTILE[0], {"target": HOSTILE[1], "batch": 1}, OtherBuild("x", HOSTILE[3]), (hostile,)))
    _, point = published(site)
    shown = as_shown(point.text)
    for text in (HOSTILE[0], HOSTILE[1], HOSTILE[3]):
        assert text in shown
    (site.home.graph("generated") / code_changes.FILE).write_text('{"stamp": 3}')
    (night,) = published(site)
    assert "It could not be read" in night.words
    assert "$.stamp" in night.words


def test_of_thousands_of_changes_a_few_are_drawn_and_it_is_said(site: Site) -> None:
    long = replace(AFTER, code="\n".join(f"line {number}" for number in range(9000)))
    many = tuple(replace(SOFTMAX, name=f"f{number}_kernel", after=long) for number in range(3))
    leave(site, *(replace(POINT, values={**VALUES, "batch": batch}, functions=many) for batch in range(100)))
    night, *points = published(site)
    assert "300 functions of 100 points" in night.words
    assert len(points) == 100
    assert "f2_kernel" in points[0].words
    assert points[0].text.count("The code is not stored") == 1
    assert "more lines" in points[0].text
    assert max(page.path.stat().st_size for page in points) < 150_000


def test_an_incident_leads_to_the_point_that_changed(site: Site) -> None:
    code = record("mlp", 1.0) | {"workload": "code.mlp", "build_config": {"target": "cuda_sm80"}}
    code["additional_info"] |= {"registers": 41, "alike": {"registers": 2}}
    site.data("generated", [code])
    with store.open_for_writing(site.home.store_file) as opened:
        opened.ingest(site.home.data("generated"), "generated")
        (key,) = (series.id for series in opened.series("generated", "registers"))
    leave(site, POINT)
    moved = Moved(key, "mlp registers", "registers", "registers", None, 40, 41, 0.025, processes=2, kind="exact")
    told = Incident("i1", "change", "new", STAMP, stamp(1), STAMP, ("a", "b"), "compiler", (moved,))
    site.incidents(told)
    night, _ = published(site)
    (link,) = (each for each in site.page("incidents/i1.html").references if each.startswith("../code/"))
    assert link == f"../code/{night.path.name}#{next(each for each in night.ids if each.startswith('point-'))}"
