"""Statements that mean the same to SQLite and to DuckDB, so that the faster one may answer.

Everything that the two read in different ways is left out: `LIKE`, division, texts beside numbers, names that stand for
two things, functions but the five that count and sum up. What is not sure is SQLite's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from tvmtraces.planning import describe_view
from tvmtraces.tables import TEXT
from tvmtraces.views import VIEWS

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>\d+(?:\.\d+)?)(?![\w.])|(?P<word>[A-Za-z_]\w*)"""
    r"""|(?P<sign><>|!=|<=|>=|[=<>+*,.()-]))"""
)
_KEYWORDS = frozenset(
    {"select", "distinct", "from", "where", "and", "or", "not", "is", "null", "group", "by", "order", "asc", "desc",
     "limit", "as", "having"}
)  # fmt: skip
_FUNCTIONS = frozenset({"count", "sum", "min", "max", "avg"})
_COMPARISONS = frozenset({"=", "<>", "!=", "<", ">", "<=", ">="})
_SUMMED = frozenset({"duration", "size", "value", "cpu_ns", "elapsed_ns", "total_calls"})
"""Columns whose sums fit: others' (moments, addresses) leave 64 bits, which is an error in SQLite alone."""
_CALL = re.compile(r"^(\s*(?:select\s+(?:distinct\s)?)?\s*)(\w+\s*\([^()']*\))(?=\s*$)", re.IGNORECASE)
"""Matches an item of a SELECT that is one call."""
_MOST_DIGITS = 15
"""SQLite reads a longer literal as another number."""


@functools.cache
def _columns_of(view: str) -> dict[str, bool]:
    """Return the columns of a view; True for texts."""
    return {name.lower(): kind == TEXT for name, kind in describe_view(view)}


def find_common(sql: str) -> str | None:
    """Translate a statement for DuckDB where both read it alike: one SELECT from one view; else None.

    What is called without a name has SQLite's: as it is written.
    """
    sql = sql.strip().removesuffix(";")
    if not _is_common(sql):
        return None
    items, rest = re.split(r"\b(?=from\b)", sql, maxsplit=1, flags=re.IGNORECASE)
    if "'" in items:
        return None
    return ",".join(_CALL.sub(r'\g<0> AS "\g<2>"', item) for item in items.split(",")) + rest


def _is_common(sql: str) -> bool:
    tokens = _split(sql)
    if tokens is None:
        return False
    words = [text for _, text in tokens]
    views = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "from"]
    if words[0] != "select" or words.count("select") != 1 or len(views) != 1 or views[0] not in VIEWS:
        return False
    columns = _columns_of(views[0])
    aliases = {words[at + 1] for at, word in enumerate(words[:-1]) if word == "as"}
    known = columns.keys() | aliases | _KEYWORDS | {views[0]}
    called = {at for at, word in enumerate(words) if word in _FUNCTIONS and words[at + 1 : at + 2] == ["("]}
    return (
        words[words.index("from") + 2 : words.index("from") + 3] != [","]
        and _are_numbers_exact(tokens)
        and _are_nulls_last(words)
        and not any(word == "not" and words[at - 1] != "is" for at, word in enumerate(words))
        and not aliases & columns.keys()
        and _are_items_named(words, columns)
        and all(kind != "word" or text in known or at in called for at, (kind, text) in enumerate(tokens))
        and _are_kinds_alike(tokens, columns)
    )


def _split(sql: str) -> list[tuple[str, str]] | None:
    """Return the tokens with their kinds, words in lower case; None where there is another."""
    tokens, at = [], 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        if match is None or match.lastgroup is None:
            return None
        text = match[match.lastgroup]
        tokens.append((match.lastgroup, text.lower() if match.lastgroup == "word" else text))
        at = match.end()
    return tokens or None


def _items(words: Sequence[str]) -> list[list[str]]:
    """Return the items of the SELECT list, each as its words."""
    items: list[list[str]] = [[]]
    depth = 0
    for word in words[1 : words.index("from")]:
        depth += (word == "(") - (word == ")")
        if word == "," and not depth:
            items.append([])
        else:
            items[-1].append(word)
    items[0] = items[0][items[0][:1] == ["distinct"] :]
    return items


def _are_numbers_exact(tokens: Sequence[tuple[str, str]]) -> bool:
    """Return True where all numbers stay exact in 64 bits, and LIMIT has one number."""
    for at, (kind, text) in enumerate(tokens):
        before, after = tokens[at - 1][1], tokens[at + 1][1] if at + 1 < len(tokens) else ""
        if (
            (kind == "number" and (len(text) > _MOST_DIGITS or ("." in text and before not in _COMPARISONS)))
            or (kind == "sign" and text == "+")
            or (kind == "sign" and text == "*" and before not in {"(", ",", "select"})
            or (text == "limit" and at + 2 != len(tokens))
            or (text == "sum" and after == "(" and tokens[at + 2][1] not in _SUMMED)
        ):
            return False
    return True


def _are_nulls_last(words: Sequence[str]) -> bool:
    """Return True where both engines sort NULLs last: SQLite has them first, unless the order is descending."""
    if "order" not in words:
        return True
    until = words.index("limit") if "limit" in words else len(words)
    ordered = " ".join(words[words.index("order") + 2 : until]).split(",")
    return all(item.split()[-1:] == ["desc"] for item in ordered)


def _are_items_named(words: Sequence[str], columns: dict[str, bool]) -> bool:
    """Return True where each item is `*`, a column, a call, or has a name: the engines name others differently."""
    return all(
        item == ["*"] or (len(item) == 1 and item[0] in columns) or "as" in item[-2:-1] or _is_call(item)
        for item in _items(words)
    )


def _is_call(item: Sequence[str]) -> bool:
    return item[0] in _FUNCTIONS and item[1:2] == ["("] and item.index(")") == len(item) - 1 and "(" not in item[2:]


def _are_kinds_alike(tokens: Sequence[tuple[str, str]], columns: dict[str, bool]) -> bool:
    """Return True where comparisons are of texts with texts, or of numbers with numbers."""
    for at, (kind, text) in enumerate(tokens):
        if text in _COMPARISONS and kind == "sign":
            left, right = tokens[at - 1], tokens[at + 1] if at + 1 < len(tokens) else ("", "")
            sides = [_is_text(side, columns) for side in (left, right)]
            if None in sides or sides[0] != sides[1]:
                return False
        elif (
            (kind == "text" and (at == 0 or tokens[at - 1][1] not in _COMPARISONS))
            or (text in {"+", "-", "*"} and kind == "sign" and _touches_text(tokens, at, columns))
            or (text in {"sum", "avg"} and tokens[at + 2 : at + 3] and _is_text(tokens[at + 2], columns) is not False)
        ):
            return False
    return all(
        _is_compared(tokens, at) for at, (_, text) in enumerate(tokens) if text in {"where", "and", "or", "having"}
    )


def _is_text(token: tuple[str, str], columns: dict[str, bool]) -> bool | None:
    """Return True where a side of a comparison is a text; None where it is neither a literal nor a column."""
    kind, text = token
    if kind in {"text", "number"}:
        return kind == "text"
    return columns.get(text) if kind == "word" else None


def _touches_text(tokens: Sequence[tuple[str, str]], at: int, columns: dict[str, bool]) -> bool:
    return any(_is_text(token, columns) for token in (*tokens[max(0, at - 1) : at], *tokens[at + 1 : at + 2]))


def _is_compared(tokens: Sequence[tuple[str, str]], at: int) -> bool:
    """Return True where a comparison or test for NULL follows: DuckDB takes a lone column for a truth value."""
    after = [text for _, text in tokens[at + 1 : at + 4]]
    return len(after) == 3 and (after[1] in _COMPARISONS or after[1:] in (["is", "null"], ["is", "not"]))
