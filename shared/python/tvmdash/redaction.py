"""Secrets in text, hidden before others see them: by shape, by field name, and by value.

The one owner of what a secret is: by the name of its field (`auth`, `pw`, `signingKey`), by its shape, and by both.
Applied where text leaves the machine's owner: statuses and notes as the night's journal takes them, what is read of
old ones, the files of the website, messages to Slack. Hashes, paths, stamps and addresses without a password stay.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

HIDDEN = "[hidden]"
_QUOTE = r"(?:\\?[\"']|&#3[49];|&quot;)?"
_KEY = r"[A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----"
_SPACE = r"(?:\s|\\[nrt])"
_BEGIN = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\u[0-9a-f]{4}))"
"""Word boundary: after a sign, or after an escaped one in JSON."""
_KEYS = (
    r"(?:access|account|admin|api|auth|client|deploy|encryption|hmac|license|master|private|secret|service|session"
    r"|shared|signing|ssh|storage|subscription)_?key"
)
_NAMES = rf"token|secret|passw(?:or)?d|pass_?phrase|pass_?word|credential|{_KEYS}"
_SHORT_NAMES = "creds|jwt|pw|pwd"
_UNSURE_NAMES = "auth|authentication|authorization|bearer|cookie|dsn|oauth|otp|pass|pat"
"""Names whose value is a secret unless it is a plain word: `"pass": "FoldConstant"` is a compiler's."""
_NAMED = re.compile(rf"(?:{_NAMES}|(?:^|_)(?:{_SHORT_NAMES}))s?$")
_MAYBE_NAMED = re.compile(rf"(?:^|_)(?:{_UNSURE_NAMES})s?$")
_SPEAKS = re.compile(rf"{_NAMES}|passw|webhook|(?:^|_)(?:{_SHORT_NAMES}|{_UNSURE_NAMES}|sas|signature)s?(?:_|$)")
"""Broader pattern for configs on display, where hiding too much is the lesser evil."""
_BEFORE_A_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")
_PLAIN_WORDS = re.compile(r"[A-Za-z_ -]+")
_SCHEME = re.compile(r"(?:bearer|basic|digest|negotiate|token|apikey)\s+(\S+)", re.IGNORECASE)
"""A whole value of this form is an Authorization header; in other text it may be prose."""
_BEGINS_AS_ONE = re.compile(
    r"(?:hf_|gh[pousr]_|github_pat_|gl[a-z]{2,4}-|xox[a-z]-|xapp-|npm_|dckr_pat_|hvs\.|ya29\.|AIza|AKIA|ASIA|eyJ)[\w.~+/=-]+"
)
_RANDOM = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+=]{28,}")
"""A whole value of letters of both cases and digits: hashes have one case, names of models have signs between."""
_PLACE = re.compile(r"[/~.]")
_KEY_LINES = 256
"""Lines of the largest RSA key; without a bound, each word of a long text is matched against all behind it."""
_LEAST_CHARS = 6
"""Shorter values are left alone, as hiding them would hide common words."""
_SHORT_CHARS = 4096


@dataclass(frozen=True)
class _Shape:
    """Pattern of a kind of secret, tried only on text that has one of the `marks` (in lower case).

    What a first group of the pattern holds stays: it is no part of the secret.
    """

    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def _shape(marks: str, pattern: str, flags: int = 0) -> _Shape:
    return _Shape(tuple(marks.split("|")), re.compile(pattern, flags))


_SHAPES = (
    _shape("hooks.slack", r"(hooks\.slack(?:-gov)?\.com/+(?:services|workflows|triggers)/+)[\w/%+=.-]+"),
    _shape("://", r"(?<=://)(?!:@)[^\s/@:\"'<>\\]*:[^\s/\"'<>\\]*(?=@)"),
    _shape(
        "authorization",
        rf"(authorization{_QUOTE}\s*[:=]\s*{_QUOTE}(?:bearer|basic|token)\s+)[\w.~+/=-]+",
        re.IGNORECASE,
    ),
    _shape("bearer", rf"({_BEGIN}bearer\s+)(?=[\w.~+/=-]*\d)[\w.~+/=-]{{12,}}", re.IGNORECASE),
    _shape("xox|xapp-", rf"{_BEGIN}(?:xox[a-z](?:\.xox[a-z])?|xapp)-[A-Za-z0-9-]{{8,}}"),
    _shape("hf_", rf"{_BEGIN}hf_(?:[A-Za-z0-9]{{16,}}|(?=[A-Za-z]*\d)[A-Za-z0-9]{{4,}})"),
    _shape("sk-|sk_live_|rk_live_", rf"{_BEGIN}(?:sk-(?:[a-z]+-)*|[sr]k_live_)[A-Za-z0-9_-]{{16,}}"),
    _shape("npm_|dckr_pat_|pypi-ag", rf"{_BEGIN}(?:npm_|dckr_pat_|pypi-Ag)[\w-]{{20,}}"),
    _shape("aiza|ya29.", rf"{_BEGIN}(?:AIza[\w-]{{30,}}|ya29\.[\w-]{{20,}})"),
    _shape("eyj", rf"{_BEGIN}eyJ[\w-]{{8,2048}}\.eyJ[\w-]{{8,}}\.[\w-]*"),
    _shape(
        "signature=|sig=|security-token=",
        r"([?&](?:amp;)?(?:sig|signature|x-amz-(?:signature|security-token)|x-goog-signature)=)[^&\s\"'<>\\]+",
        re.IGNORECASE,
    ),
    _shape("ghp_|gho_|ghu_|ghs_|ghr_", rf"{_BEGIN}gh[pousr]_[A-Za-z0-9]{{16,}}"),
    _shape("github_pat_|glpat-", rf"{_BEGIN}(?:github_pat_|glpat-)[\w-]{{16,}}"),
    _shape("akia|asia", rf"{_BEGIN}(?:AKIA|ASIA)[A-Z0-9]{{16}}(?![A-Za-z0-9])"),
    _shape(
        "token=|secret=|word=|wd=|phrase=|key=|pw=",
        rf"({_BEGIN}(?:\w*_)?(?:{_NAMES}|pw)=){_QUOTE}(?!\[hidden)[^\s\"'<>&\\;,)]+",
        re.IGNORECASE,
    ),
    _shape(
        "token|secret|passw|pass_|passphrase|credential|key",
        rf"([\"'](?:\w*[_-])?(?:{_NAMES})\\?[\"']\s*:\s*\\?[\"'])(?!\[hidden)[^\"'\\<>&\s]+(?=\\?[\"'])",
        re.IGNORECASE,
    ),
    _shape(
        "private key",
        rf"-----BEGIN {_KEY}(?:[A-Za-z0-9+/=:,]|{_SPACE}|-(?!-))*(?:-----END {_KEY})?"
        rf"|(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{{16,}}+{_SPACE}++){{0,{_KEY_LINES}}}"
        rf"(?:[A-Za-z0-9+/=]++{_SPACE}++)?-----END {_KEY}",
    ),
)


def redact(text: str, known: tuple[str, ...] = ()) -> str:
    """Return the text with its secrets hidden: those recognized by shape, and the values in `known`."""
    return _redact_short(text, known) if len(text) <= _SHORT_CHARS else _replace(text, known, lambda _: HIDDEN)


def blank_out(text: str, known: tuple[str, ...] = ()) -> str:
    """Redact as `redact`, but keep the length: for formats that count bytes."""
    return _replace(text, known, lambda secret: "*" * len(secret))


@functools.lru_cache(maxsize=4096)
def _redact_short(text: str, known: tuple[str, ...]) -> str:
    # cached, as a night's record is written many times
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
    """Return a JSON value of the same form with its secrets hidden in texts and keys; the same object without any."""
    if isinstance(value, str):
        return redact(value, known)
    if isinstance(value, (Mapping, list, tuple)) and not _may_hold_secret(value, known):
        return value
    if isinstance(value, Mapping):
        return {redact(str(name), known): redact_json(item, known) for name, item in value.items()}
    return [redact_json(item, known) for item in value] if isinstance(value, (list, tuple)) else value


_MARKS = tuple(dict.fromkeys(mark for shape in _SHAPES for mark in shape.marks))


def _may_hold_secret(value: Any, known: tuple[str, ...]) -> bool:
    try:
        # one search of all texts at C's speed: one by one took most of the time of reading a record of 500 jobs
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that JSON does not know; it is the writer who tells
        return True
    lower = text.lower()
    return any(mark in lower for mark in _MARKS) or any(
        json.dumps(secret, ensure_ascii=False)[1:-1] in text for secret in known
    )


def remove_secrets(config: Any) -> Any:
    """Return a config for display: without values of secret-sounding fields and without texts that look secret."""
    if isinstance(config, Mapping):
        return {
            redact(str(name)): HIDDEN if _SPEAKS.search(_spell(name)) else remove_secrets(item)
            for name, item in config.items()
        }
    if isinstance(config, list):
        named = [_SPEAKS.search(_spell(name)) for name in _name_items(config)]
        return [HIDDEN if is_named else remove_secrets(item) for is_named, item in zip(named, config, strict=True)]
    if isinstance(config, str) and any(shape.fullmatch(config.strip()) for shape in (_SCHEME, _BEGINS_AS_ONE, _RANDOM)):
        return HIDDEN
    return redact_json(config)


def find_named_secrets(values: Any) -> Iterator[str]:
    """Yield the texts of secret-sounding fields in a config or environment, but no paths to secrets."""
    yield from _find_secrets(values, "")


def _find_secrets(value: Any, name: str) -> Iterator[str]:
    """Yield the secrets in a value of this name; items of a list or map of such a name are secrets as well."""
    if isinstance(value, (Mapping, list)):
        items = value.items() if isinstance(value, Mapping) else zip(_name_items(value), value, strict=True)
        for own, item in items:
            spelled = _spell(own)
            is_named = isinstance(own, str) and own and (_NAMED.search(spelled) or _MAYBE_NAMED.search(spelled))
            yield from _find_secrets(item, spelled if is_named or not name else name)
    elif isinstance(value, str):
        text = value.strip()
        scheme = _SCHEME.fullmatch(text)
        if scheme and (name or any(map(str.isdigit, text))):
            text, name = scheme[1], "token"
        if len(text) < _LEAST_CHARS or _PLACE.match(text):
            return
        if _NAMED.search(name) or (_MAYBE_NAMED.search(name) and not _PLAIN_WORDS.fullmatch(text)):
            yield text


def _spell(name: object) -> str:
    """Return a name in lower case, `_` between its words: signingKey, Signing-Key and SIGNING_KEY are one."""
    return _BEFORE_A_WORD.sub("_", str(name)).strip("_").lower()


def _name_items(items: list[Any]) -> list[str]:
    """Return the names of a list's items: what follows `--password` is a password; most have no name."""
    options = ["", *(item if isinstance(item, str) and item.startswith("-") else "" for item in items)]
    return options[: len(items)]


def known_secrets(*values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the distinct `find_named_secrets` of several configs and environments, longest first, for `redact`."""
    secrets = {text for value in values for text in find_named_secrets(value)}
    return tuple(sorted(secrets, key=lambda text: (-len(text), text)))
