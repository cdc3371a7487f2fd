"""Print docs/reference/commands.md: `python3 tests/make_commands_docs.py > docs/reference/commands.md`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

import tvmdash.traces.__main__  # noqa: F401 - adds a verb
from dashboard.cli import main as cli
from dashboard.cli.arguments import (
    BUG,
    CANNOT_TELL,
    HELD,
    OK_CODE,
    REFUSED,
    SOME_FAILED,
    STOPPED,
    TVM_WORSE,
    USAGE,
)
from tvmdash.incidents import annotations
from tvmdash.incidents import command as incidents
from tvmdash.notify import command as routes
from tvmdash.records.exchange import __main__ as records
from tvmtraces import __main__ as traces

PROGRAM = "python3 -m dashboard"
PASSED_ON = {"annotate": annotations, "incidents": incidents, "records": records, "routes": routes, "traces": traces}
"""Commands whose arguments are read by a parser of their own."""
CODES = {
    OK_CODE: "Success. The night's verdict on TVM changes the exit code only with `--fail-on`.",
    SOME_FAILED: "A job or an archive failed; the summary, the status files and the page show which.",
    USAGE: "A usage or config error, or a missing prerequisite; the message says what to do.",
    BUG: "Internal error: a bug in the dashboard. The message names its log.",
    CANNOT_TELL: "Inconclusive: `reproduce`, `signoff`, `try --fail-over`, and `--fail-on` without a verdict.",
    TVM_WORSE: "TVM is worse: `signoff`, `try --fail-over`, and `--fail-on` at that level or a worse one.",
    HELD: "Another night is using the home, another job its folder, or another worker its queue. Nothing was done.",
    REFUSED: "`try-request`: the requester is not on the list.",
    STOPPED: "Interrupted.",
}


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "Made by `tests/make_commands_docs.py` from the argument parsers; a test keeps it true. Times are written"
    yield "`90s`, `10m`, `3h` or `2d`."
    yield from ("", "## Exit codes", "", "| code | means |", "|---|---|")
    yield from (f"| {code} | {text} |" for code, text in sorted(CODES.items()))
    for name, about, parser in _list_verbs(cli._make_parser()):
        yield from ("", f"## {name}", "", f"{_sentence(about)}")
        yield from _describe(name, PASSED_ON[name]._make_parser() if name in PASSED_ON else parser)


def _list_verbs(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            abouts = {choice.dest: choice.help or "" for choice in action._choices_actions}
            yield from ((name, abouts.get(name, ""), inner) for name, inner in action.choices.items())


def _describe(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
    own = [action for action in shown if not isinstance(action, argparse._SubParsersAction)]
    options = sorted((action for action in own if action.option_strings), key=lambda action: not action.required)
    positional = [action for action in own if not action.option_strings]
    words = [*map(_usage, positional), *map(_usage, options)]
    verbs = list(_list_verbs(parser))
    yield from ("", "    " + " ".join([PROGRAM, name, *words, *(["VERB", "..."] if verbs else [])]), "")
    for action in [*positional, *options]:
        if action.help:
            yield f"- `{_title(action)}`: {_clean(action)}"
    for verb, about, inner in verbs:
        yield from ("", f"### {name} {verb}", "", f"{_sentence(about)}")
        before = " ".join([name, *map(_usage, positional), verb])
        yield from _describe(before, inner)


def _usage(action: argparse.Action) -> str:
    text = _title(action)
    return text if action.required or (not action.option_strings and action.nargs not in {"?", "*"}) else f"[{text}]"


def _title(action: argparse.Action) -> str:
    value = action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
    )
    value = value if isinstance(value, str) else " ".join(value)
    value += " ..." if action.nargs in {"+", "*"} or action.nargs == argparse.REMAINDER else ""
    if not action.option_strings:
        return value
    return action.option_strings[-1] if action.nargs == 0 else f"{action.option_strings[-1]} {value}"


def _clean(action: argparse.Action) -> str:
    return _sentence((action.help or "").replace("%%", "%").replace("%(default)s", str(action.default)))


def _sentence(text: str) -> str:
    text = re.sub(r"(?<![`\w])<(\w+)>", r"`<\1>`", " ".join(text.split()))
    text = text[:1].upper() + text[1:]
    return text if not text or text.endswith(".") else text + "."


if __name__ == "__main__":
    sys.stdout.write(page())
