"""Homes for the website, published by its real run.sh; its pages, read as a browser would."""

from __future__ import annotations

import datetime
import functools
import html.parser
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest

from tests.subsystem import scripts
from tvmdash import common
from tvmdash.dashboard_info import (
    BLOCKED,
    FAILED,
    OK,
    RUNNING,
    Home,
    HostNight,
    JobResult,
    MissingBackup,
    Night,
    PartialData,
    Reference,
    StepResult,
)
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.events import Opened
from tvmdash.incidents.ledger import OPENED, Event, Incident, changed
from tvmdash.machine.identity import MachineChange

REPO = Path(__file__).resolve().parents[3]
SCRIPT = REPO / "subsystem" / "website" / "run.sh"
CONFIG = REPO / "sample-dashboard-home" / "config" / "subsystem" / "website"
LAST = datetime.datetime(2026, 11, 21, 3, 15, tzinfo=datetime.UTC)
STAMP = "20261121T031500Z"
STAGES = ("precheck", "run", "analyze", "visualize", "summarize")
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "../../etc",
    "{{ 7*7 }} ünïcödé 編譯器 😀",
    "x" * 300,
    "a\x00b\x1b[31m\u202ec",
)
APART = {"td", "th", "dt", "dd", "li", "p", "tr", "summary", "section", "article", "h1", "h2", "h3"}
VOID = {"meta", "link", "img", "br", "input", "hr", "col", "wbr"}


def stamp(nights_ago: int) -> str:
    return common.stamp_of(LAST - datetime.timedelta(days=nights_ago))


def job(name: str, at: str = STAMP, *, title: str = "", description: str = "", **failing: StepResult) -> JobResult:
    """An experiment whose stages are ok but for `failing`, the stages behind the first of which are blocked."""
    steps: list[StepResult] = []
    for stage in STAGES:
        blocked = any(not step.success for step in steps)
        ok = StepResult(stage, BLOCKED if blocked else OK, "run failed" if blocked else "good", at, 0 if blocked else 2)
        steps.append(failing.get(stage, ok))
    return JobResult("experiment", name, title or name, description, tuple(steps))


def as_shown(text: str) -> str:
    """The text as pages have it: without control characters and what turns the text around it."""
    return "".join("\ufffd" if sign < " " or sign == "\u202e" else sign for sign in text)


def failure(message: str, tail: str = "", stage: str = "run") -> StepResult:
    return StepResult(stage, FAILED, message, STAMP, 1.5, tail)


@functools.cache
def _website() -> ModuleType:
    return scripts.load("website")


@dataclass
class Site:
    """A home with a website."""

    home: Home

    @property
    def folder(self) -> Path:
        return self.home.output("website")

    def night(
        self,
        *jobs: JobResult,
        at: str = STAMP,
        state: str = RUNNING,
        notes: tuple[str, ...] = (),
        missing_backups: tuple[MissingBackup, ...] = (),
        machine_changes: tuple[MachineChange, ...] = (),
        partial: tuple[PartialData, ...] = (),
        references: tuple[Reference, ...] = (),
        hosts: tuple[HostNight, ...] = (),
        **built: Any,
    ) -> None:
        """Leave a night's record; `built` are fields of its artifact."""
        artifact = {"key": "wheel-0.27", "provider": "wheel", "version": "0.27.0", "commit": "7b5acb32b", "facts": {}}
        artifact |= built
        website = JobResult("subsystem", "website", "Website", "", (StepResult("precheck", OK, "", at),))
        own = {
            "notes": notes,
            "missing_backups": missing_backups,
            "partial": partial,
            "machine_changes": machine_changes,
            "references": references,
            "hosts": hosts,
        }
        night = Night(at, state, elapsed_s=754, artifacts=(artifact,), jobs=(*jobs, website), **own)
        self.home.nights.mkdir(parents=True, exist_ok=True)
        common.write_json(self.home.night_file(at), night.to_json())

    def results(
        self, name: str, at: str = STAMP, value: str = "All is well.", graphs: Mapping[str, str] | None = None
    ) -> None:
        for folder in (self.home.summary(name), self.home.graph(name)):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / ".stamp").write_text(at + "\n")
        common.write_json(
            self.home.summary(name) / "summary.json", {"title": f"Summary of {name}"[:200], "value": value}
        )
        for file, words in (graphs or {}).items():
            svg = f"<svg xmlns='http://www.w3.org/2000/svg'>\n <title>t</title><desc>{words}</desc></svg>"
            (self.home.graph(name) / file).write_text(svg)

    def data(self, name: str, records: Sequence[Mapping[str, Any]], at: str = STAMP, **machine: Any) -> None:
        """Leave a data file of an experiment; `machine` are facts of its fingerprint."""
        facts = {"host": "bench", "hw_model": "AMD EPYC x 2", **machine}
        value = {"schema_version": 1, "timestamp": at, "tvm_hash": "0.27.0", "records": list(records)}
        self.home.data(name).mkdir(parents=True, exist_ok=True)
        common.write_json(self.home.data_file(name, at), {**value, "environment": {"machine": facts}})

    def output(self, subsystem: str, file: str, value: Any) -> None:
        """Leave a file of another subsystem; text is written as it is."""
        path = self.home.output(subsystem) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")

    def incidents(self, *incidents: Incident) -> None:
        """Leave a ledger that comes to these."""
        path = incident_file.file_of(self.home)
        path.unlink(missing_ok=True)
        for incident in incidents:
            opened = Opened(**{each.name: getattr(incident, each.name) for each in fields(Opened)})
            events = [Event.of("2026-01-01T00:00:00Z", "detector", OPENED, incident.id, opened)]
            events += [
                changed(incident.id, to.state, at=to.at, who=to.who, words=to.words, end=incident.end)
                for to in incident.changes
                if to.state != "new"
            ]
            incident_file.append(path, events)

    def publish_here(self, at: str = STAMP) -> Page:
        """Publish in this process, which is faster; the first page."""
        _website().publishing.publish(self.home, self.home.read_night(at), self.folder, common.utc_now())
        return self.page()

    def start(self, limit: str = "") -> subprocess.Popen[str]:
        self.folder.mkdir(parents=True, exist_ok=True)
        bin_folder = Path(sys.executable).parent
        environment = {
            "PATH": f"{bin_folder}:/usr/bin:/bin",
            "PYTHONPATH": str(REPO / "shared" / "python"),
            "LC_ALL": "C.UTF-8",
        }
        argv = ["bash", "-c", f'{limit}exec "$0" "$@"', str(SCRIPT), str(CONFIG), str(self.folder), str(self.home.root)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv,
            cwd=SCRIPT.parent,
            env=environment,
            text=True,
            stdout=pipe,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def publish(self, limit: str = "") -> int:
        process = self.start(limit)
        self.said, _ = process.communicate(timeout=120)
        return process.returncode

    def published(self) -> Page:
        """Run the subsystem in this process, as run.sh does in one of its own; the first page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("TVMDASH_NIGHT", raising=False)
            patch.chdir(SCRIPT.parent)
            code = _website().Website().main([str(CONFIG), str(self.folder), str(self.home.root)])
        assert code == 0, common.read_json(self.folder / "status.json")
        return self.page()

    def published_by_script(self) -> Page:
        """Run run.sh; the first page."""
        code = self.publish()
        assert code == 0, self.said
        return self.page()

    def page(self, name: str = "index.html") -> Page:
        return Page.read(self.folder / name)

    def experiment(self, name: str) -> Page:
        """The page of an experiment, found by its name, as a reader finds it."""
        pages = [Page.read(path) for path in sorted((self.folder / "experiments").iterdir())]
        return next(page for page in pages if page.first("code") == as_shown(name))

    def pages(self) -> list[Page]:
        return [Page.read(path) for path in sorted(self.folder.rglob("*.html"))]

    def inodes(self) -> dict[str, int]:
        return {path.name: path.stat().st_ino for path in (self.folder / "nights").iterdir()}


def record(
    workload: str, median_ms: float, *, engine: str = "tvm", level: int = 3, spread: float = 0.002
) -> dict[str, Any]:
    """A record of one point, with an interval of `spread` to both sides."""
    return {
        "timestamp": "2026-11-21T03:20:00+00:00",
        "schema_version": 1,
        "additional_info": {
            "docker_tag": None,
            "docker_hash": None,
            "execution_elapsed_ms_median": median_ms,
            "execution_elapsed_ms_low": median_ms * (1 - spread),
            "execution_elapsed_ms_high": median_ms * (1 + spread),
            "samples": 10,
        },
        "workload": f"network.{workload}",
        "workload_args": {"batch": 1},
        "engine": engine,
        "engine_version": "0.27.0",
        "engine_config": {},
        "target": "llvm",
        "build_config": {"opt_level": level},
        "env_name": "sample",
        "hw_model": "AMD EPYC x 2",
        "runtime_config": {"threads": 1},
        "execution_config": {"number": 89, "repeat": 10},
        "execution_elapsed_ms_mean": median_ms,
        "execution_elapsed_ms_std": median_ms * 0.002,
    }


@dataclass
class Page(html.parser.HTMLParser):
    """A page as parsed: its text, its elements, its references."""

    path: Path
    text: str = ""
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Page:
        try:
            return replace(_parse(path.read_text(encoding="utf-8")), path=path)
        except AssertionError as error:
            raise AssertionError(f"{path}: {error}") from None

    def parse(self, text: str) -> None:
        html.parser.HTMLParser.__init__(self, convert_charrefs=True)
        self.feed(text)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._part(tag)
        assert len(dict(attrs)) == len(attrs)
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self._part(tag)
        assert self._open.pop() == tag, self.getpos()

    def _part(self, tag: str) -> None:
        """What stands in different cells and paragraphs is not one word."""
        if tag in APART:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        self.text += data
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def first(self, tag: str) -> str:
        """The text of the first such element."""
        return self.texts.get(tag, [""])[0].strip()

    @property
    def words(self) -> str:
        return " ".join(self.text.split())

    def list_sentences(self, *more: str) -> str:
        """What it says, a line for each heading, paragraph and item, and each of `more`; not when it was written."""
        blocks = (text for tag in ("h1", "h2", "h3", "p", "li", "dt", "dd", *more) for text in self.texts.get(tag, ()))
        lines = (" ".join(text.split()) for text in blocks)
        return "\n".join(dict.fromkeys(line for line in lines if line and not line.startswith("Written ")))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def ids(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.tags if "id" in attributes]

    @property
    def references(self) -> Iterator[str]:
        for _, attributes in self.tags:
            yield from (str(attributes[name]) for name in ("href", "src") if name in attributes)


@functools.lru_cache(4096)
def _parse(text: str) -> Page:
    """A page as parsed; most pages of a site are read again and again as they were."""
    page = Page(Path())
    page.parse(text)
    return page


def assert_whole(site: Site) -> None:
    """Every page is well-formed, every reference leads to what is there, nothing is inline or foreign."""
    inside = site.folder.resolve()
    pages = {page.path.resolve(): page for page in site.pages()}
    assert inside / "index.html" in pages
    for path, page in pages.items():
        assert len(set(page.ids)) == len(page.ids), (path, sorted(page.ids))
        for reference in page.references:
            target, _, anchor = reference.partition("#")
            if target.startswith("https://"):
                continue  # checked below: only links, never anything that is loaded
            assert ":" not in target, (path, reference)
            assert not target.startswith("/"), (path, reference)
            there = (path.parent / unquote(target)).resolve() if target else path
            assert inside in there.parents, (path, reference)
            assert there.is_file(), (path, reference)
            state_of_a_script = "=" in anchor
            assert not anchor or state_of_a_script or unquote(anchor) in pages[there].ids, (path, reference)
        assert_strict(page)


def assert_strict(page: Page) -> None:
    """The page satisfies its own policy, and says everything in words."""
    assert all(
        str(item.get("src", "")).removeprefix("../").startswith(("js/", "vendor/")) for item in page.all("script")
    )
    assert all(item.get("rel") == "noreferrer" for item in page.all("a") if str(item["href"]).startswith("https:"))
    loaded = [str(item.get("src") or item.get("href")) for name in ("img", "link", "script") for item in page.all(name)]
    assert not [name for name in loaded if ":" in name]
    assert not [name for name in ("style", "iframe", "object", "form") if page.all(name)]
    for _, attributes in page.tags:
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
    policy = [item["content"] for item in page.all("meta") if item.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'self'; base-uri 'none'; form-action 'none'"]
    assert all("alt" in image for image in page.all("img"))
    assert all(item.get("aria-label") for item in page.all("svg"))
    labels = {
        str(item[name]) for _, item in page.tags for name in ("aria-labelledby", "aria-describedby") if name in item
    }
    assert labels <= set(page.ids), page.path
