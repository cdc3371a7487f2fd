"""Text for people: labels of any origin and length, numbers with the digits they deserve."""

from __future__ import annotations

import contextlib
import io
import math
import re
import sys
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO, Any

from tvmdash.redaction import redact

TIME_UNITS = ("ns", "µs", "us", "ms", "s")
_SMALLER = {"s": ("ms", 1000.0), "ms": ("µs", 1000.0), "µs": ("ns", 1000.0), "us": ("ns", 1000.0)}
_LARGER = {"ns": ("µs", 1000.0), "µs": ("ms", 1000.0), "us": ("ms", 1000.0), "ms": ("s", 1000.0)}
MINUS = "\u2212"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_MARKUP = re.compile(r"[\\`*\[\]<>|~&]")
_AUTOLINKS = re.compile(r"@|#(?=\d)|:(?=//)|www(?=\.)", re.IGNORECASE)
"""After these, a character without width keeps GitHub from making a link or a mention."""


_HARMFUL = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_WITHOUT_WIDTH = "\u200b\u200c\u200d"
"""Harmless format characters: scripts and emoji need two of them, our own escapes the third."""


def clean(text: str, kept: str = "") -> str:
    """Return a stranger's text on one line, without effect on the text around it.

    Each character becomes \ufffd that moves a cursor or gives a terminal orders, turns the direction of writing, is not
    seen, ends a line or cannot stand in XML; those in `kept` stay.
    """
    return text if text.isprintable() else "".join("\ufffd" if _is_harmful(c, kept) else c for c in text)


def _is_harmful(character: str, kept: str) -> bool:
    if unicodedata.category(character) in _HARMFUL:
        return character not in kept and character not in _WITHOUT_WIDTH
    return character in "\ufffe\uffff"


def clean_lines(text: str) -> str:
    """`clean` of each line; line ends and tabs stay."""
    return clean(text, "\n\t")


def clean_message(value: Any, known: tuple[str, ...] = ()) -> Any:
    """A JSON value of the same form as it may leave for a service: secrets hidden, every text and key cleaned."""
    if isinstance(value, str):
        return clean_lines(redact(value, known))
    if isinstance(value, Mapping):
        return {clean_message(str(name), known): clean_message(item, known) for name, item in value.items()}
    return [clean_message(item, known) for item in value] if isinstance(value, (list, tuple)) else value


class _PlainStream:
    """A terminal or what stands for one, which gets text of any origin without what steers it."""

    def __init__(self, stream: IO[str]) -> None:
        self.steered = stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no terminal shows all characters

    def write(self, text: str) -> int:
        self.steered.write(clean_lines(text))
        return len(text)

    def writelines(self, lines: Sequence[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.steered, name)


def exact_output(stream: IO[str]) -> IO[str]:
    """Return the stream below `plain_output`, which takes a text unchanged: for programs, and our own progress."""
    return stream.steered if isinstance(stream, _PlainStream) else stream


@contextlib.contextmanager
def plain_output() -> Iterator[None]:
    """Remove from stdout and stderr, while the block lasts, whatever steers a terminal: the edge of every command.

    Here and not where things are printed, because names, errors and rows of strangers are in all of that.
    """
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        stream if isinstance(stream, _PlainStream) else _PlainStream(stream) for stream in (out, err)
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def is_commit(text: str) -> bool:
    return _COMMIT.fullmatch(text) is not None


def width_of(text: str) -> int:
    """Return the columns that `text` takes: 2 for a wide character (Chinese, emoji), 0 for a combining one."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def elide(text: str, limit: int) -> str:
    """`text` on one line in at most `limit` columns, its middle replaced by an ellipsis where it is longer.

    Secrets are hidden first: half of one could not be told from other text.
    """
    text = clean(" ".join(redact(text).split()))
    if width_of(text) <= limit:
        return text
    head, tail = (limit - 1) - (limit - 1) // 2, (limit - 1) // 2
    return f"{_cut(text, head)}…{_cut(text[::-1], tail)[::-1]}"


def elide_begin(text: str, limit: int) -> str:
    """Shorten as `elide`, first the content of brackets, then whole words at the beginning: the end stays."""
    text = clean(" ".join(redact(text).split()))
    if width_of(text) > limit:
        text = re.sub(r"\([^()]*\)", "(…)", text)
    words = text.split(" ")
    kept = next((at for at in range(len(words)) if width_of(" ".join(words[at:])) <= limit - 2 * bool(at)), 0)
    return elide(f"{'… ' * bool(kept)}{' '.join(words[kept:])}", limit)


def _cut(text: str, limit: int) -> str:
    for index, character in enumerate(text):
        limit -= _columns(character)
        if limit < 0:
            return text[:index]
    return text


def escape_markdown(text: str) -> str:
    """Escape `text` for one line of GitHub's Markdown: no markup, link, mention or reference."""
    marked = _MARKUP.sub(r"\\\g<0>", clean(" ".join(text.split())))
    return _AUTOLINKS.sub("\\g<0>\u200b", marked)


def cut_lines(text: str, limit: int) -> str:
    """Cut whole lines from the end of a longer text and say so in its last line."""
    if len(text) <= limit:
        return text
    note = "\n\n(Truncated: the text is too long.)\n"
    return text[: limit - len(note)].rpartition("\n")[0] + note


def align(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """A line for each row, its cells in columns, flush right in those of the numbers `right`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def three_digits(value: float) -> str:
    """`value` with three significant digits and no exponent from 0.00001 to a million: 0.105, 12.1, 1740, 2.5e+09."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    rounded = float(f"{value:.2e}")
    magnitude = math.floor(math.log10(abs(rounded)))
    if not -5 <= magnitude < 7:
        return f"{value:.3g}"
    return f"{rounded:.{max(0, 2 - magnitude)}f}"


def format_list(items: Sequence[str], limit: int) -> str:
    """Join items as in "a, b and c"; more than `limit` (1 or more) as in "a, b and 3 more"."""
    if len(items) > limit:
        return f"{', '.join(items[:limit])} and {len(items) - limit} more"
    return " and ".join(part for part in (", ".join(items[:-1]), *items[-1:]) if part)


def describe_missing_backups(moments: Sequence[str]) -> str:
    """Name the archives before and after the night that failed; empty for none."""
    if len(moments) > 1:
        return "the backup failed"
    return f"the backup {moments[0]} the night failed" if moments else ""


def format_duration(seconds: float) -> str:
    """Format a duration, as in "0.25 s", "42 s", "5 min 12 s", "2 h 5 min", "3 d 4 h"."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    for size, unit, part_size, part in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // part_size
            return f"{whole // size} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"


def format_bytes(size_bytes: float) -> str:
    """Format a size, as in "512 bytes", "36.0 kB", "1.74 GB"; powers of 1000."""
    size = float(size_bytes)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if abs(size) < 999.5 or unit == "TB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{three_digits(size)} {unit}"


def format_percent(effect: float) -> str:
    """Format a fraction as a change: +0.25 %, \u22123.1 %, +104 %; 0 % where it rounds to nothing."""
    return f"{_format_rounded_percent(effect)} %"


def format_percent_range(low: float, high: float) -> str:
    """Format a range, as in "\u22121.2 to +3.4 %"."""
    return f"{_format_rounded_percent(low)} to {_format_rounded_percent(high)} %"


def format_percents(effects: Sequence[float], *, sign: bool = False) -> str:
    """Format least and greatest, as in "7.1 to 8.1 %"; one of them where they are alike when rounded."""
    ends = dict.fromkeys(_format_rounded_percent(effect) for effect in (min(effects), max(effects)))
    return f"{' to '.join(end if sign else end.lstrip('+') for end in ends)} %"


def _format_rounded_percent(effect: float) -> str:
    percent = max(100 * effect, -99.9) if effect > -1 else 100 * effect  # -100 % is nothing left
    digits = 0 if percent >= 99.5 or percent <= -100 else 1 if abs(percent) >= 0.995 else 2
    return format_signed(percent, f".{digits}f") if round(percent, digits) else "0"


def format_signed(value: float, form: str) -> str:
    """Format a number with its sign, a true minus."""
    return f"{MINUS if value < 0 else '+'}{abs(value):{form}}"


def format_exact(value: float, unit: str, *, sign: bool = False) -> str:
    """Format a size or a count with all its digits: 20,481 bytes, 1 byte, 1 register; as a difference, +1 byte."""
    form = ",.0f" if value == round(value) else ",.12g"
    number = format_signed(value, form) if sign else f"{value:{form}}"
    name = "bytes" if unit == "B" else unit
    return f"{number} {name.removesuffix('s') if name in _PLURALS and abs(value) == 1 else name}".rstrip()


_PLURALS = frozenset({"bytes", "instructions", "kernels", "registers"})


def format_quantity(value: float, unit: str) -> str:
    """`value` with three significant digits; times in the unit that suits them: 0.105 ms, 12.1 ms, 1.74 s, 350 ns."""
    if unit in ("bytes", "B"):
        return format_bytes(value)
    shown, factor = _choose_unit(value, unit)
    return f"{three_digits(value * factor)} {shown}".rstrip()


def format_estimate(value: float, low: float | None, high: float | None, unit: str) -> str:
    """Format a quantity and its interval in the unit that suits the value, as in "12.1 ms (11.9 to 12.4)"."""
    return add_in_brackets(*estimate_in_parts(value, low, high, unit))


def estimate_in_parts(value: float, low: float | None, high: float | None, unit: str) -> tuple[str, str]:
    """Return the quantity, and its interval or an empty text."""
    text = format_quantity(value, unit)
    if low is None or high is None or unit in ("bytes", "B"):
        return text, ""
    factor = _choose_unit(value, unit)[1]
    return text, f"{three_digits(low * factor)} to {three_digits(high * factor)}"


def add_in_brackets(text: str, more: str) -> str:
    return f"{text} ({more})" if more else text


def _choose_unit(value: float, unit: str) -> tuple[str, float]:
    """Return the unit that suits a value, and the factor that converts to it."""
    factor = 1.0
    while abs(value * factor) >= 999.5 and unit in _LARGER:
        unit, step = _LARGER[unit]
        factor /= step
    while 0 < abs(value * factor) < 0.01 and unit in _SMALLER:
        unit, step = _SMALLER[unit]
        factor *= step
    return unit, factor
