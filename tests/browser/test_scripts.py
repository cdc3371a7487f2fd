"""The site's scripts without a browser: their types, their pure functions, what they are made of."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
STATIC = REPO / "subsystem" / "website" / "static"
JS = STATIC / "js"
CLASSIC = {"start.js", "age.js", "need.js"}


def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip(
            "node is not installed: the site's scripts were not tested by it (Debian, Ubuntu: apt install nodejs)"
        )
    return found


def compiler() -> Path:
    """TypeScript as package-lock.json pins it, installed once into the cache of the tests."""
    node()
    locked = (HERE / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("TVMDASH_TEST_CACHE") or REPO / ".test-cache")
    folder = cache / f"typescript-{hashlib.sha256(locked).hexdigest()[:12]}"
    program = folder / "node_modules" / ".bin" / "tsc"
    if program.exists():
        return program
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(
            "npm is not installed: the types of the site's scripts were not checked (Debian, Ubuntu: apt install npm)"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, folder / name)
    argv = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or not program.exists():
        pytest.skip(
            f"npm cannot fetch TypeScript: the types of the site's scripts were not checked. {done.stderr[-300:]}"
        )
    return program


def test_types_of_the_scripts_hold_under_strict() -> None:
    argv = [str(compiler()), "-p", str(HERE / "tsconfig.json"), "--pretty", "false"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("", 0)


def emitted(folder: Path, target: Path) -> dict[str, str]:
    """What TypeScript makes of the scripts in `folder`, comments left out."""
    options = ["--allowJs", "--checkJs", "false", "--removeComments", "--target", "esnext", "--module", "esnext"]
    files = [str(path) for path in sorted(folder.rglob("*.js"))]
    argv = [str(compiler()), *options, "--ignoreConfig", "--outDir", str(target), *files]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {str(path.relative_to(target)): path.read_text(encoding="utf-8") for path in target.rglob("*.js")}


def published(code: str, *arguments: str) -> str:
    """What code of the publisher prints; `static` is the module that knows the scripts."""
    path = os.pathsep.join(map(str, (STATIC.parent, REPO / "shared" / "python")))
    argv = [sys.executable, "-c", f"import json, sys, pathlib\nfrom files import static\n{code}", *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(argv, check=True, env=environment, timeout=300, capture_output=True, text=True).stdout


def test_shortened_scripts_are_the_same_programs(tmp_path: Path) -> None:
    for path in JS.rglob("*.js"):
        (tmp_path / "bare" / path.relative_to(JS)).parent.mkdir(parents=True, exist_ok=True)
    published(
        "for path in pathlib.Path(sys.argv[1]).rglob('*.js'):\n"
        "  bare = pathlib.Path(sys.argv[2], path.relative_to(sys.argv[1]))\n"
        "  bare.write_text(static.shorten(path.read_text()))",
        str(JS),
        str(tmp_path / "bare"),
    )
    assert emitted(tmp_path / "bare", tmp_path / "without") == emitted(JS, tmp_path / "with")
    assert all("@param" not in path.read_text(encoding="utf-8") for path in (tmp_path / "bare").rglob("*.js"))


def test_published_scripts_hold_each_module_that_they_need_and_none_twice(tmp_path: Path) -> None:
    published("static.copy_static(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))", str(STATIC), str(tmp_path))
    defined = {
        path.relative_to(tmp_path / "js").as_posix(): re.findall(r'^modules\["(.+?)"\]', path.read_text(), re.MULTILINE)
        for path in (tmp_path / "js").rglob("*.js")
    }
    everything = {path.relative_to(JS).as_posix() for path in JS.rglob("*.js")} - CLASSIC
    assert {name for names in defined.values() for name in names} == everything
    for page in ("explore", "compare", "receipt"):
        main = f"{page}/{page}.js"
        both = [*defined[main], *defined["app.js"]]
        assert len(set(both)) == len(both)
        needed = {f"{page}/{page}", "app", *imports(f"{page}/{page}"), *imports("app")}
        assert {f"{name}.js" for name in needed} == set(both)
    around = [*defined["explore/explore.js"], *defined["app.js"], *defined["explore/around.js"]]
    assert len(set(around)) == len(around)
    assert {f"{name}.js" for name in imports("explore/around")} <= set(around)
    for name in defined:
        assert subprocess.run([node(), "--check", str(tmp_path / "js" / name)], check=False).returncode == 0
    vendored = STATIC / "vendor" / "uplot" / "uPlot.iife.min.js"
    assert (tmp_path / vendored.relative_to(STATIC)).read_bytes() == vendored.read_bytes()


def test_published_style_sheets_have_every_rule_and_no_comment(tmp_path: Path) -> None:
    published("static.copy_static(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))", str(STATIC), str(tmp_path))
    sheets = sorted(path.name for path in STATIC.glob("*.css"))
    assert {"explore.css", "site.css"} <= set(sheets)
    for name in sheets:
        rules = re.sub(r"/\*.*?\*/", "", (STATIC / name).read_text(encoding="utf-8"), flags=re.DOTALL)
        short = (tmp_path / name).read_text(encoding="utf-8")
        assert short.split() == rules.split(), name
        assert len(short) < len(rules)


def test_every_script_asks_to_be_checked() -> None:
    assert [
        path.name for path in JS.rglob("*.js") if not path.read_text(encoding="utf-8").startswith("// @ts-check\n")
    ] == []


def test_pure_functions() -> None:
    argv = [node(), "--test", "--test-reporter=tap", str(HERE / "pure.test.mjs")]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "TZ": "Asia/Tokyo"}
    )
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) >= 30


def test_vendored_files_are_those_that_the_readme_names() -> None:
    folder = STATIC / "vendor" / "uplot"
    named = re.findall(
        r"^ {4}([0-9a-f]{64}) {2}(\S+)$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {name for _, name in named} | {"README.md"} == {path.name for path in folder.iterdir()}
    for digest, name in named:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


def imports(name: str) -> set[str]:
    """The modules that a module imports at once, and theirs."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        path = JS / f"{waiting.pop()}.js"
        text = path.read_text(encoding="utf-8")
        for named in re.findall(r'^(?:import|export) .*?from "(\.[\w./]+)\.js";$', text, re.MULTILINE | re.DOTALL):
            other = os.path.relpath(path.parent / named, JS)
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def test_no_script_makes_elements_or_code_of_text() -> None:
    dangerous = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|\.srcdoc"
    )
    assert {
        path.name: found for path in JS.rglob("*.js") if (found := dangerous.findall(path.read_text(encoding="utf-8")))
    } == {}


def test_templates_have_no_script_or_style_of_their_own() -> None:
    inline = re.compile(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:|(?:src|href)=\"(?:https?:)?//")
    templates = (STATIC.parent / "templates").rglob("*.html")
    assert {path.name: found for path in templates if (found := inline.findall(path.read_text(encoding="utf-8")))} == {}
