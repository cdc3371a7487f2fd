"""Annotations of nights and commits: words for charts, releases, and known breaks of the level.

`python3 -m dashboard annotate HOME list|add|remove`. A line of annotations.jsonl is one annotation, or the removal
of one; lines are only ever appended.
"""

from __future__ import annotations

import argparse
import fnmatch
import getpass
import hashlib
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import lines
from tvmdash.errors import DashboardError
from tvmdash.text import plain_output

ANNOTATIONS_FILE = "annotations.jsonl"
_log = logging.getLogger("annotations")
EXPECTED, RETIRED = "expected", "retired"
KINDS = ("night", "commit", "machine", "release")


@dataclass(frozen=True)
class Annotation:
    """Words about a night (a stamp or the beginning of one) or a commit (its first digits).

    kind: night, commit, machine (the hardware or system changed) or release. is_break: levels of series that `scope`
    matches (their experiment or name, with * and ?) begin anew there, without an alert. at: when it was written.
    series: EXPECTED or RETIRED where these series are, from then on, missed whenever they have no value, or never.
    """

    id: str
    at: str
    who: str
    kind: str
    place: str
    words: str
    is_break: bool = False
    scope: str = "*"
    series: str = ""

    def night(self, versions: Mapping[str, str]) -> str | None:
        """The stamp that it is about; `versions` has each night's version, in the order of the nights.

        A night: the first that is not before it. A commit: the first night that measured it. None: not yet.
        """
        if self.kind == "commit":
            return next((stamp for stamp, version in versions.items() if version.startswith(self.place)), None)
        return next((stamp for stamp in versions if stamp >= self.place), None)

    def covers(self, experiment: str, name: str) -> bool:
        """Match the scope against the experiment and the name of the series."""
        return fnmatch.fnmatch(experiment, self.scope) or fnmatch.fnmatch(name, self.scope)


@dataclass(frozen=True)
class _Removal:
    """The end of the annotation with that ID."""

    remove: str


def path_of(home: Path) -> Path:
    return home / "results" / ANNOTATIONS_FILE


def read(home: Path) -> list[Annotation]:
    """The annotations that stand, in the order they were written; a bad line is logged, and costs itself only."""
    path = path_of(home)
    if not path.is_file():
        return []
    annotations: dict[str, Annotation] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        where = f"{path}:{number}"
        try:
            value = common.parse_json(line, where)
            if isinstance(value, dict) and "remove" in value:
                annotations.pop(structured.from_json(_Removal, value, where).remove, None)
            else:
                annotation = structured.from_json(Annotation, value, where)
                annotations[annotation.id] = annotation
        except DashboardError as error:
            _log.warning("%s: invalid annotation: %s. Fix or remove the line.", where, error)
    return list(annotations.values())


def list_retired_experiments(home: Path, night: str) -> frozenset[str]:
    """The experiments (or one on a host or TVM, as in cnn~desk@release) that are retired by their whole names.

    night: the stamp as of which.
    """
    said = {
        each.scope: each.series for each in read(home) if each.kind == "night" and each.place <= night and each.series
    }
    return frozenset(scope for scope, series in said.items() if series == RETIRED)


def make(
    kind: str, place: str, words: str, *, who: str, at: str, is_break: bool = False, scope: str = "*", series: str = ""
) -> Annotation:
    """A checked annotation; DashboardError says what is wrong with the place."""
    if kind not in KINDS:
        raise DashboardError(f"unknown kind of annotation {kind!r}. Use one of: {', '.join(KINDS)}.")
    if not words.strip():
        raise DashboardError("The annotation has no text. Give one.")
    if kind == "commit":
        if len(place) < 4:
            raise DashboardError(f"commit {place!r} is too short. Give at least 4 characters.")
    else:
        place = _parse_night(place)
    # Without `series` the ID is that of older dashboards: their removals name it.
    name = hashlib.sha256(
        json.dumps([kind, place, words, who, at, scope, *([series] if series else [])]).encode()
    ).hexdigest()[:6]
    return Annotation(f"a{name}", at, who, kind, place, words, is_break, scope, series)


def _parse_night(text: str) -> str:
    digits = text.replace("-", "")
    if common.is_stamp(text):
        common.parse_stamp(text)
        return text
    if len(digits) == 8 and digits.isdigit():
        common.parse_stamp(f"{digits}T000000Z")
        return f"{digits}T000000Z"
    raise DashboardError(f"{text!r} is not a night. Use a stamp (20261121T031500Z) or a date (2026-11-21).")


def append(home: Path, line: Mapping[str, object]) -> None:
    path = path_of(home)
    if not path.parent.is_dir():
        raise DashboardError(f"{path.parent}: no such folder. Has a night run in {home}?")
    lines.append(path, [line])


def describe(annotation: Annotation) -> str:
    """Describe it on one line."""
    what = annotation.place if annotation.kind == "commit" else annotation.place[:8]
    scope = "" if annotation.scope == "*" else f" [{annotation.scope}]"
    known = ", a known break" if annotation.is_break else ""
    known += f", {annotation.series}" if annotation.series else ""
    return f"{annotation.id}  {annotation.kind} {what}{scope}{known}: {annotation.words} ({annotation.who})"


def name_user() -> str:
    try:
        return os.environ.get("TVMDASH_WHO") or getpass.getuser()
    except (KeyError, OSError):  # no such user in this container
        return f"uid {os.getuid()}"


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m dashboard annotate", description="Annotate nights and commits of a home."
    )
    parser.add_argument("home", type=Path, metavar="HOME")
    verbs = parser.add_subparsers(
        dest="verb", metavar="VERB", title="verbs", description="use VERB --help for details (default: list)"
    )
    verbs.add_parser("list", help="list the annotations in force")
    remove = verbs.add_parser("remove", help="withdraw an annotation; its line stays in the file")
    remove.add_argument("id", metavar="ID", help="ID as shown by `list`")
    add = verbs.add_parser("add", help="add one")
    add.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    add.add_argument("place", metavar="PLACE", help="a stamp or date, or for a commit its first characters")
    add.add_argument("words", metavar="WORDS")
    add.add_argument("--break", dest="is_break", action="store_true", help="start new levels there, without an alert")
    said = add.add_mutually_exclusive_group()
    for option, value, help_text in (
        ("--retire", RETIRED, "series in scope are not expected from that night on"),
        (
            "--expect",
            EXPECTED,
            "series in scope are reported as missing whenever they have no value, until they are retired",
        ),
    ):
        said.add_argument(option, dest="series", action="store_const", const=value, default="", help=help_text)
    add.add_argument(
        "--scope", default="*", help="limit it to series whose experiment or name matches; * and ? are wildcards"
    )
    add.add_argument("--who", metavar="NAME", help="author (default: the current user)")
    return parser


@plain_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0, or 2 where what was asked for cannot be."""
    parsed = _make_parser().parse_args(arguments)
    try:
        sys.stdout.write(_do(parsed))
    except DashboardError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _do(parsed: argparse.Namespace) -> str:
    if not any((parsed.home / name).is_dir() for name in ("config", "results")):
        raise DashboardError(
            f"{parsed.home}: not a dashboard home: it has neither config nor results. Give the path of a home."
        )
    standing = read(parsed.home)
    if parsed.verb == "add":
        at = f"{common.utc_now():%Y-%m-%dT%H:%M:%SZ}"
        made = make(
            parsed.kind, parsed.place, parsed.words, who=parsed.who or name_user(), at=at, is_break=parsed.is_break,
            scope=parsed.scope, series=parsed.series,
        )  # fmt: skip
        append(parsed.home, asdict(made))
        return describe(made) + "\n"
    if parsed.verb == "remove":
        if parsed.id not in {annotation.id for annotation in standing}:
            raise DashboardError(f"no annotation in force has the ID {parsed.id!r}. `list` shows them.")
        append(parsed.home, {"remove": parsed.id, "at": f"{common.utc_now():%Y-%m-%dT%H:%M:%SZ}", "who": name_user()})
        return f"{parsed.id} withdrawn.\n"
    return "".join(describe(annotation) + "\n" for annotation in standing) or "No annotations.\n"


if __name__ == "__main__":
    sys.exit(main())
