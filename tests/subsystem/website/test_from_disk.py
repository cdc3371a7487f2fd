"""What pages opened from disk run: one script of all modules, and the data files as scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.subsystem import scripts
from tests.subsystem.website.sites import Site, job, record
from tvmdash.dashboard_info import Home

publishing = scripts.load("website").publishing


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(Home(tmp_path / "home"))
    made.data("nets", [record("mlp", 2.5), record("lstm", 7.0)])
    made.night(job("nets"))
    made.publish_here()
    return made


def test_each_data_file_that_pages_read_stands_beside_itself_as_a_script(site: Site) -> None:
    files = [*site.folder.glob("receipts/*/*.json"), site.folder / "index.json"]
    assert len(files) == 2
    assert not list(site.folder.glob("series/*.json")), "of points there are only scripts"
    for path in files:
        name = path.relative_to(site.folder).as_posix().encode()
        script = path.with_suffix(".js").read_bytes()
        assert script == b'(globalThis.tvmdashFiles ??= {})["%b"]=\n%b\n' % (name, path.read_bytes().rstrip())


def test_a_script_is_carried_with_its_data_file_and_made_again_where_it_was_damaged(site: Site) -> None:
    first, second = next(site.folder.glob("series/*.js")), next(site.folder.glob("receipts/*/*.js"))
    inode, content = first.stat().st_ino, second.read_bytes()
    second.write_bytes(content[:-9])
    site.publish_here()
    assert first.stat().st_ino == inode
    assert second.read_bytes() == content


@pytest.mark.parametrize(
    "text",
    [
        'import * as all from "./b.js";\n',
        'import "./b.js";\n',
        "export default 1;\n",
        "export let moved = 1;\n",
        "export { one };\n",
    ],
)
def test_a_module_that_cannot_be_put_into_one_script_stops_the_publish(tmp_path: Path, text: str) -> None:
    scripts_folder = tmp_path / "static" / "js"
    scripts_folder.mkdir(parents=True)
    (scripts_folder / "need.js").write_text("", encoding="ascii")
    (scripts_folder / "app.js").write_text(text, encoding="ascii")
    with pytest.raises(ValueError, match=r"static/js/app\.js: (import|export) .* cannot be put into one script"):
        publishing.copy_static(tmp_path / "static", tmp_path / "site")
