"""What the comment in a pull request says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvmdash import common
from tvmdash.contracts.tries import Try
from tvmdash.text import escape_markdown
from tvmdash.tries.text import format_markdown


@dataclass(frozen=True)
class Circumstances:
    """Where a try was made and who asked for it; the addresses are empty where there are none."""

    machine: str
    asked_by: str = ""
    run_url: str = ""
    site_url: str = ""


def format_begun(where: Circumstances) -> str:
    """While it is built and measured."""
    text = f"Building TVM with this pull request and measuring it on {escape_markdown(where.machine)}."
    return _join(where, f"{text} This comment will be updated with the result.")


def format_result(done: Try, where: Circumstances) -> str:
    """What was measured."""
    text = f"On {escape_markdown(where.machine)}:\n\n{format_markdown(done).strip()}"
    page = f"tries/{done.stamp}.html" if common.is_stamp(done.stamp) else ""
    return _join(where, text, page)


def format_nothing(where: Circumstances) -> str:
    """Where there is no result."""
    text = f"No result from {escape_markdown(where.machine)}: TVM could not be built or measured."
    return _join(where, f"{text} See the log of the run for the reason." if where.run_url else text)


def _join(where: Circumstances, text: str, page: str = "") -> str:
    ends = " · ".join(_list_ends(where, page))
    return f"{text}\n\n{ends}\n" if ends else f"{text}\n"


def _list_ends(where: Circumstances, page: str) -> Iterator[str]:
    """page: where the website has the result once it is published again."""
    site = where.site_url.rstrip("/")
    if site and page:
        yield f"[all numbers]({site}/{page}) (once the website is published again)"
    elif site:
        yield f"[dashboard]({site}/)"
    if where.run_url:
        yield f"[log of this run]({where.run_url})"
    if where.asked_by:
        yield f"requested by {escape_markdown(where.asked_by)}"
