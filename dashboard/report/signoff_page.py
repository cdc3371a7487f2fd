"""A signoff as Markdown, for a release's issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dashboard.report.markdown import escape, format_table

if TYPE_CHECKING:
    from tvmdash.trials.signoff import Signoff


def format_page(done: Signoff) -> str:
    """The headline, the table, and what is known of the rest."""
    from tvmdash.signoff import text

    rows = [[escape(cell) for cell in row] for row in text.list_rows(done)]
    table = ["", *format_table(text.HEAD, rows, words=len(text.HEAD))] if rows else []
    facts = [f"- {escape(line)}" for line in (*text.format_facts(done), *text.format_rest(done))]
    commands = ["", "For details:", "", *(f"    {command}" for command in done.commands)] if done.commands else []
    return "\n".join([escape(text.format_headline(done)), *table, "", *facts, *commands]) + "\n"
