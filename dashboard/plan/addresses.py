"""Addresses, folders and times of a config that are used late: what is wrong with them is told before.

A night needs none of them, so none keeps it from measuring. Nothing is asked over the network.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dashboard.archive.remote import REQUIREMENTS
from dashboard.plan.settings import HomeConfig
from dashboard.schedule.cron import parse_cron
from tvmdash import github_api
from tvmdash.errors import DashboardError
from tvmdash.http_util import find_url_fault, is_link
from tvmdash.secret_file import SecretFile

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_SCHEMES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (*_PROXIES, *map(str.upper, _PROXIES)), ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
    ),
    "PIP_INDEX_URL": ("https", "http", "file"),
    "PIP_EXTRA_INDEX_URL": ("https", "http", "file"),
    "GITHUB_API_URL": ("https", "http"),
    "AWS_ENDPOINT_URL": ("https", "http"),
}
"""The variables that name an address, and what it may begin with."""


def find_late_faults(home: Path, value: Mapping[str, Any], config: HomeConfig, shown: str) -> Iterator[str]:
    """A sentence for each. value: the config's fields, of which `config` was made."""
    if value["heartbeat_url"] and (fault := find_url_fault(value["heartbeat_url"])):
        yield f"{shown}: $.heartbeat_url: the URL {fault}, so nobody would hear that nights stopped. Use https://HOST/PATH."
    if value["website_url"] and not is_link(value["website_url"]):
        fault = find_url_fault(value["website_url"]) or "contains a character that no link may have"
        yield f"{shown}: $.website_url: {value['website_url']!r:.100} {fault}. Use https://HOST/PATH."
    if value["schedule"]:
        try:
            parse_cron(value["schedule"])
        except DashboardError as error:
            yield f"{shown}: $.schedule: {error}"
    if config.backup_copy and importlib.util.find_spec("s3fs") is None:
        yield f"{shown}: $.backup_copy: needs s3fs. Run pip install --no-deps --require-hashes -r {REQUIREMENTS}"
    yield from _find_folder_faults(value, config, shown)
    if config.github.may_ask:
        yield from _find_token_faults(home, config.github.token_file, shown)
    yield from _find_variable_faults(config.env, f"{shown}: $.env.")
    yield from _find_variable_faults(os.environ, "environment variable ")


def _find_folder_faults(value: Mapping[str, Any], config: HomeConfig, shown: str) -> Iterator[str]:
    file = config.prometheus_file
    if file is not None and (
        file.is_dir() or not os.access(file.parent, os.W_OK | os.X_OK) or not file.parent.is_dir()
    ):
        yield f"{shown}: $.prometheus_file: {file} cannot be written. Create {file.parent}, writable by this user."
    for at, folder in enumerate(config.candidates_may_read):
        if not folder.exists():
            yield f"{shown}: $.candidates_may_read[{at}]: {folder} does not exist. Remove it."


def _find_token_faults(home: Path, named: str, shown: str) -> Iterator[str]:
    path = home / Path(named).expanduser()
    try:
        lines = SecretFile(path, "GitHub token", github_api.DEFAULT_FILE).read_lines(home)
    except DashboardError as error:
        yield f"{shown}: $.github_token_file: {error}"
        return
    if lines is None and named != github_api.DEFAULT_FILE:
        yield f"{shown}: $.github_token_file: {path} does not exist. Put the token into it, with mode 600."


def _find_variable_faults(variables: Mapping[str, str], where: str) -> Iterator[str]:
    """What is wrong with the addresses in an environment; none is shown, as it may hold a password."""
    for name, schemes in _SCHEMES.items():
        for url in variables.get(name, "").split():
            is_short = name.lower() in _PROXIES and "://" not in url  # curl, pip and requests take HOST:PORT
            if fault := find_url_fault(f"http://{url}" if is_short else url, schemes):
                yield f"{where}{name}: the URL {fault}. Correct it."
