"""Messages for Slack as values: escaped, within Slack's limits, split and cut where they are longer.

Nothing here speaks to Slack. Whoever makes a message gives plain text through `escape` or `code`, and IDs through
`format_mention`; nothing else can ping anybody.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from tvmdash.text import clean, elide

Json = Any
BAD, STOPPED, UNFINISHED, GOOD, NOTE = "❌", "⛔", "⏳", "✅", "⚠️"
MAX_BLOCKS, MAX_SECTION, MAX_HEADER, MAX_MESSAGE, MAX_FALLBACK = 50, 3000, 150, 13000, 500
"""Slack's limits in UTF-16 units; MAX_MESSAGE is ours, over all blocks: Slack refuses somewhere above it."""
# Room for the last block, which counts what was cut and pings whom that would have pinged.
_RESERVED = 600
_CUT = " …"
_LOOKS_LIKE_A_PING = re.compile(r"<(?=[@!#])")
_BOLD = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")
_USER = re.compile(r"[UW][A-Z0-9]{7,20}")
_GROUP = re.compile(r"S[A-Z0-9]{7,20}")
_CHANNEL = re.compile(r"G[A-Z0-9]{7,20}")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_UNITS = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


@dataclass(frozen=True)
class Part:
    """One thing told: markup of whole lines, of at most MAX_SECTION, and whom it pings.

    `pings` are told even where the part itself has no room. Neighbours of one `group` share sections.
    """

    markup: str
    pings: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True)
class Payload:
    """A message in Slack's form: `text` in notifications, `blocks` in the channel."""

    text: str
    blocks: tuple[Json, ...]

    def to_json(self) -> dict[str, Any]:
        """The fields of chat.postMessage, chat.update and webhooks; links are not unfolded, names not linked."""
        return {"text": self.text, "blocks": list(self.blocks), "unfurl_links": False, "unfurl_media": False}

    @property
    def digest(self) -> str:
        """Two messages are shown alike where this is the same."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]

    def marked(self, note: str) -> Payload:
        """The message with a line of plain text in front of it."""
        return Payload(self.text, (_make_context(escape(note, 300)), *self.blocks)[:MAX_BLOCKS])

    def plain(self) -> str:
        """The message as text for a file: what a reader of the channel sees."""
        return "\n\n".join(_format_plain(block) for block in self.blocks) + "\n"


def count_bytes(text: str) -> int:
    """The length of `text` as the strictest reader of Slack's limits counts it: in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def escape(text: str, limit: int = MAX_SECTION) -> str:
    """Make markup of any text, of at most `limit`: lines stay, nothing in it pings, links or begins a block of code."""
    shown, size, room = [], 0, limit - len(_CUT)
    # Three backticks in a row would begin a block of code.
    for character in "\n".join(map(clean, text.splitlines())).replace("``", "`\u200b`"):
        piece = _ESCAPES.get(character, character)
        size += count_bytes(piece)
        shown.append((piece, size))
    if size > limit:
        return "".join(piece for piece, end in shown if end <= room) + _CUT
    return "".join(piece for piece, _ in shown)


def code(text: str, limit: int = MAX_SECTION) -> str:
    """Turn any text into a block of code of at most `limit`, its beginning cut where it is longer; empty for none."""
    lines: list[str] = []
    size = 8
    for line in reversed(text.rstrip().splitlines()):
        shown = escape(line.replace("`", "`\u200b"), min(400, limit - 8))
        size += count_bytes(shown) + 1
        if size > limit:
            break
        lines.append(shown)
    inner = "\n".join(reversed(lines)).strip("\n")
    return f"```\n{inner}\n```" if inner.strip() else ""


def format_bold(text: str, limit: int = 200) -> str:
    """Format any text in bold, on one line."""
    # An asterisk would end the bold.
    shown = escape(elide(text.replace("*", "\u2217"), limit), limit * 5)
    return f"*{shown}*" if shown.strip() else ""


def format_mention(identity: str) -> str | None:
    """The markup that pings a Slack ID, None where it is not one. A G... is a channel: it is linked, not pinged."""
    if _USER.fullmatch(identity):
        return f"<@{identity}>"
    if _GROUP.fullmatch(identity):
        return f"<!subteam^{identity}>"
    return f"<#{identity}>" if _CHANNEL.fullmatch(identity) else None


def format_pings(pings: Sequence[str]) -> str:
    """Format the line that pings; of very many, only the first."""
    return f"cc {' '.join(pings[:20])}" if pings else ""


def link(url: str, text: str) -> str:
    """A link with plain words; the words alone where `url` is not one that a browser may open."""
    # A bar stands between address and words.
    shown = escape(text.replace("|", "¦"), 300)
    try:
        parts = urlsplit(url.strip())
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        good = False
    if not good:
        return shown
    address = quote(url.strip(), safe=":/?#[]@!$&'()*+,;=%~")
    return f"<{escape(address, 2000)}|{shown}>" if len(address) <= 1500 else shown


def build(headline: str, about: str, parts: Sequence[Part], rest: str = "") -> Payload:
    """Build a message: the verdict, a line of markup about the night, the parts in order as far as there is room.

    Where not all have room, the last block says how many are missing, pings whom they would have pinged, and shows
    the markup `rest`, which says where the whole is.
    """
    # Slack shows plain text literally; what looks like a ping is broken up all the same.
    title = _LOOKS_LIKE_A_PING.sub("<\u200b", elide(headline, 140))
    while count_bytes(title) > MAX_HEADER:
        title = elide(title, len(title) - 10)
    blocks = [{"type": "header", "text": {"type": "plain_text", "text": title, "emoji": False}}]
    blocks += [_make_context(about)] if about else []
    room = MAX_MESSAGE - _RESERVED - count_bytes(title) - count_bytes(about)
    sections, left = _make_sections(parts, room, MAX_BLOCKS - len(blocks) - 1)
    blocks += [_make_section(text) for text in sections]
    if left:
        blocks.append(_make_context(_format_missing(left, rest)))
    return Payload(escape(headline, MAX_FALLBACK), tuple(blocks))


def _make_sections(parts: Sequence[Part], room: int, count: int) -> tuple[list[str], list[Part]]:
    """The texts of at most `count` sections within `room`, and the parts that are not in them."""
    texts: list[str] = []
    group = ""
    for index, part in enumerate(parts):
        between = "\n\n" if "\n" in part.markup else "\n"
        size = count_bytes(part.markup) + len(between)
        joins = bool(part.group) and part.group == group and count_bytes(texts[-1]) + size <= MAX_SECTION
        if size > min(room, MAX_SECTION + len(between)) or (not joins and len(texts) == count):
            return texts, list(parts[index:])
        if joins:
            texts[-1] += between + part.markup
        else:
            texts.append(part.markup)
        room -= size
        group = part.group
    return texts, []


def _format_missing(left: Sequence[Part], rest: str) -> str:
    pings = dict.fromkeys(ping for part in left for ping in part.pings)
    text = f"… and {len(left)} more omitted here. {rest}".rstrip()
    for ping in pings:
        if count_bytes(text) + count_bytes(ping) + 1 > _RESERVED - 20:
            return f"{text} …"
        text += f" {ping}"
    return text


def _make_section(markup: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": markup, "verbatim": True}}


def _make_context(markup: str) -> dict[str, Any]:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": markup, "verbatim": True}]}


def _format_plain(block: Json) -> str:
    if block["type"] == "header":
        return str(block["text"]["text"]).replace("\u200b", "")
    texts = [block["text"]] if block["type"] == "section" else block["elements"]
    text = "\n".join(item["text"] for item in texts).replace("\u200b", "")
    text = re.sub(r"<(?:@|!subteam\^|#)(\w+)>", r"@\1", text)
    text = re.sub(r"<(https?://[^|>]*)\|([^>]*)>", r"\2 (\1)", text)
    text = _BOLD.sub(r"\1", text.replace("```\n", "").replace("\n```", ""))
    return re.sub(r"&(?:amp|lt|gt);", lambda match: _UNITS[match[0]], text)
