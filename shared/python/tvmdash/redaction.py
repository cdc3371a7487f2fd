"""Secrets in text: what looks like one, or is known to be one, is hidden before others see it.

Applied where text leaves the machine's owner: statuses and notes as the night's journal takes them, what is read of
old ones, the files of the website, messages to Slack. Hashes, paths, stamps and addresses without a password stay.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HIDDEN = "[hidden]"
_QUOTE = r"(?:\\?[\"']|&#3[49];|&quot;)?"
_KEY = r"[A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"
_SPACE = r"(?:\s|\\[nrt])"
_BEGIN = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{4}))"
"""Where a word may begin: behind a sign, or behind an escaped one in JSON."""
_NAMES = r"token|secret|passw(?:or)?d|passphrase|credentials?|(?:api|access|private|secret)_?key"
_NAMED = re.compile(rf"(?:{_NAMES})s?$", re.IGNORECASE)
_SPEAKS = re.compile(r"token|secret|passw|credential|api_?key|private_?key|access_?key|webhook", re.IGNORECASE)
_PLACE = re.compile(r"[/~.]")
_LEAST_CHARS = 6
"""A shorter value would hide common words."""
_SHORT_CHARS = 4096


@dataclass(frozen=True)
class _Shape:
    """How a kind of secret looks; it is looked for only in text that has one of the `marks` (in lower case).

    What a first group of the pattern holds stays: it is no part of the secret.
    """

    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(marks: str, pattern: str, flags: int = 0) -> _Shape:
    return _Shape(tuple(marks.split("|")), re.compile(pattern, flags))


_SHAPES = (
    _shape("hooks.slack", r"(hooks\.slack(?:-gov)?\.com/+(?:services|workflows|triggers)/+)[\w/%+=.-]+"),
    _shape("://", r"(?<=://)[^\s/@:\"'<>\\]*:[^\s/\"'<>\\]+(?=@)"),
    _shape(
        "authorization",
        rf"(authorization{_QUOTE}\s*[:=]\s*{_QUOTE}(?:bearer|basic|token)\s+)[\w.~+/=-]+",
        re.IGNORECASE,
    ),
    _shape("bearer", rf"({_BEGIN}bearer\s+)(?=[\w.~+/=-]*\d)[\w.~+/=-]{{12,}}", re.IGNORECASE),
    _shape("xox|xapp-", rf"{_BEGIN}(?:xox[a-z](?:\.xox[a-z])?|xapp)-[A-Za-z0-9-]{{8,}}"),
    _shape("hf_", rf"{_BEGIN}hf_[A-Za-z0-9]{{16,}}"),
    _shape("ghp_|gho_|ghu_|ghs_|ghr_", rf"{_BEGIN}gh[pousr]_[A-Za-z0-9]{{16,}}"),
    _shape("github_pat_|glpat-", rf"{_BEGIN}(?:github_pat_|glpat-)[\w-]{{16,}}"),
    _shape("akia|asia", rf"{_BEGIN}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
    _shape(
        "token=|secret=|password=|passwd=|key=",
        rf"({_BEGIN}(?:\w*_)?(?:{_NAMES})=){_QUOTE}(?!\[hidden)[^\s\"'<>&\\;,)]+",
        re.IGNORECASE,
    ),
    _shape(
        "private key",
        rf"-----BEGIN {_KEY}(?:[A-Za-z0-9+/=:,]|{_SPACE}|-(?!-))*(?:-----END {_KEY})?"
        rf"|(?:[A-Za-z0-9+/=]{{16,}}{_SPACE}+)*(?:[A-Za-z0-9+/=]+{_SPACE}+)?-----END {_KEY}",
    ),
)


def redact(text: str, known: tuple[str, ...] = ()) -> str:
    """The text with its secrets hidden: what has the shape of one, and the values in `known`."""
    return _redact_short(text, known) if len(text) <= _SHORT_CHARS else _replace(text, known, lambda _: HIDDEN)


def blank_out(text: str, known: tuple[str, ...] = ()) -> str:
    """As `redact`, with text of the same length: for formats that count bytes."""
    return _replace(text, known, lambda secret: "*" * len(secret))


@functools.lru_cache(maxsize=4096)
def _redact_short(text: str, known: tuple[str, ...]) -> str:
    """Remembered: a night's record is written many times."""
    return _replace(text, known, lambda _: HIDDEN)


def _replace(text: str, known: tuple[str, ...], hide: Callable[[str], str]) -> str:
    for value in known:
        text = text.replace(value, hide(value))
    lower = text.lower()
    for shape in _SHAPES:
        if any(mark in lower for mark in shape.marks):
            text = shape.pattern.sub(lambda match: _hide(match, hide), text)
    return text


def _hide(match: re.Match[str], hide: Callable[[str], str]) -> str:
    kept = (match[1] or "") if match.re.groups else ""
    return kept + hide(match[0][len(kept) :])


def redact_json(value: Any, known: tuple[str, ...] = ()) -> Any:
    """A JSON value of the same form, the secrets in its texts and keys hidden."""
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, Mapping):
        return {redact(str(name), known): redact_json(item, known) for name, item in value.items()}
    return [redact_json(item, known) for item in value] if isinstance(value, (list, tuple)) else value


def remove_secrets(config: Any) -> Any:
    """A config to be shown: neither values of fields whose names speak of secrets nor what looks like one."""
    if isinstance(config, Mapping):
        return {
            redact(str(name)): HIDDEN if _SPEAKS.search(str(name)) else remove_secrets(item)
            for name, item in config.items()
        }
    return [remove_secrets(item) for item in config] if isinstance(config, list) else redact_json(config)


def find_named_secrets(values: Any) -> Iterator[str]:
    """The texts in a config or environment whose fields are named as secrets are; of paths to secrets nothing."""
    for name, item in values.items() if isinstance(values, Mapping) else enumerate(values):
        if isinstance(item, str):
            text = item.strip()
            if _NAMED.search(str(name)) and len(text) >= _LEAST_CHARS and not _PLACE.match(text):
                yield text
        elif isinstance(item, (Mapping, list)):
            yield from find_named_secrets(item)


def known_secrets(*values: Mapping[str, Any]) -> tuple[str, ...]:
    """The distinct `find_named_secrets` of several configs and environments, longest first, as `redact` takes them."""
    secrets = {text for value in values for text in find_named_secrets(value)}
    return tuple(sorted(secrets, key=lambda text: (-len(text), text)))
