"""Sources of TVM's wheels: a package, a page of links or an index, with or without pre-releases.

As text, what a config's `tvm_remote` and a command line say: `pypi`, `pypi+pre`, `wheel:mlc-ai-nightly-cpu`,
`wheel:PACKAGE+pre,https://host/page`, `wheel:PACKAGE,index=https://host/simple`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from dashboard.artifacts.artifact import ArtifactError
from tvmdash.redaction import redact

PYPI, WHEEL_SIGN, PRE_SIGN = "pypi", "wheel:", "+pre"
TVM = "apache-tvm"
"""The package of the releases."""
MLC_PAGE = "https://mlc.ai/wheels"
"""The page of MLC's builds of TVM; the packages begin with `mlc-ai-`."""
_INDEX = "index="
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?", re.ASCII)
_ADDRESS = re.compile(r"(https?|file)://\S+|/\S+")
_FIELDS = ("package", "find_links", "index", "pre")


@dataclass(frozen=True)
class WheelSource:
    """A source of wheels of TVM. find_links, index: an address or a folder; with neither, where pip looks by itself."""

    package: str = TVM
    find_links: str = ""
    index: str = ""
    pre: bool = False

    def __str__(self) -> str:
        pre = PRE_SIGN if self.pre and not _is_nightly(self.package) else ""
        if self.package == TVM and not self.find_links and not self.index:
            return f"{PYPI}{pre}"
        address = f"{_INDEX}{self.index}" if self.index else self.find_links
        is_known = _is_mlc(self.package) and address == MLC_PAGE
        return f"{WHEEL_SIGN}{self.package}{pre}{f',{address}' if address and not is_known else ''}"

    @property
    def id(self) -> str:
        """The source in an artifact's facts: without secrets of an address, and alike whether pre-releases count."""
        return redact(str(replace(self, pre=False)))


def is_wheel(remote: str) -> bool:
    """Return True for a source of wheels; any other `tvm_remote` is for git."""
    return remote.partition("+")[0] == PYPI or remote.startswith(WHEEL_SIGN)


def parse_source(text: str) -> WheelSource:
    """Parse a source of wheels; ArtifactError where the text names none."""
    name, _, address = text.removeprefix(WHEEL_SIGN).partition(",")
    package, sign, rest = name.partition("+")
    if sign and f"+{rest}" != PRE_SIGN:
        raise ArtifactError(f"tvm_remote: {_show(text)}: '+{rest}' is unknown. Use '+pre' to count pre-releases.")
    if text.startswith(WHEEL_SIGN):
        is_index = address.startswith(_INDEX)
        found = {"index" if is_index else "find_links": address.removeprefix(_INDEX)} if address else {}
    elif name == text:
        package, found = TVM, {}
    else:
        raise ArtifactError(f"tvm_remote: {_show(text)}: an address follows a package. Use wheel:{TVM},ADDRESS.")
    return _make(package, **found, pre=bool(sign))


def read_remote(value: Any) -> Any:
    """Return a config's `tvm_remote` as text, a source of wheels spelled as always; ArtifactError where it is none."""
    if isinstance(value, str) and is_wheel(value):
        return str(parse_source(value))
    if value is None or (isinstance(value, str) and value):
        return value
    if not isinstance(value, Mapping):
        raise ArtifactError(f"tvm_remote: {value!r:.100} is neither a text nor an object with {', '.join(_FIELDS)}.")
    unknown = sorted(set(value) - set(_FIELDS))
    if unknown:
        raise ArtifactError(f"tvm_remote.{unknown[0]}: unknown field. Use {', '.join(_FIELDS)}.")
    for name, kind in zip(_FIELDS, (str, str, str, bool), strict=True):
        if not isinstance(value.get(name, kind()), kind):
            raise ArtifactError(f"tvm_remote.{name}: must be {'true or false' if kind is bool else 'a text'}.")
    if value.get("find_links") and value.get("index"):
        raise ArtifactError("tvm_remote: has both find_links and index. Keep the one that has the wheels.")
    return str(_make(**{"package": TVM, **value}))


def _make(package: str, find_links: str = "", index: str = "", *, pre: bool = False) -> WheelSource:
    from packaging.utils import canonicalize_name

    if not _PACKAGE.fullmatch(package):
        raise ArtifactError(f"tvm_remote: {package[:100]!r} is not a package name. Use e.g. wheel:mlc-ai-nightly-cpu.")
    package = str(canonicalize_name(package))
    if _is_mlc(package) and not find_links and not index:
        find_links = MLC_PAGE
    find_links, index = (_check_address(address) for address in (find_links, index))
    return WheelSource(package, find_links, index, pre or _is_nightly(package))


def _check_address(address: str) -> str:
    """Return the address as pip takes it; ArtifactError never prints one that could hold a secret."""
    if not address:
        return ""
    address = os.path.expanduser(address)
    if not _ADDRESS.fullmatch(address):
        raise ArtifactError(
            f"tvm_remote: {_show(address)} is not an address. Use https://..., file://... or an absolute path; write a "
            "space as %20."
        )
    user = urlsplit(address).netloc.rpartition("@")[0]
    if user and ":" not in user:
        raise ArtifactError(
            "tvm_remote: its address has a user without a password. Write USER:PASSWORD@, or use ~/.netrc."
        )
    return address


def _show(text: str) -> str:
    return repr(redact(text)[:100])


def _is_mlc(package: str) -> bool:
    return package.startswith("mlc-ai-")


def _is_nightly(package: str) -> bool:
    """Return True for a package of which every version is a pre-release."""
    return "nightly" in package
