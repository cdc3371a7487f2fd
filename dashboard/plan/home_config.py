"""The top-level config of a home, checked, with its paths made absolute."""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashboard.archive.remote import REQUIREMENTS, check_url
from dashboard.artifacts.artifact import ArtifactSpec
from dashboard.artifacts.git.names import check_remote
from dashboard.artifacts.spec import Fallback, check_spec, parse
from dashboard.artifacts.wheel.source import is_wheel, read_remote
from dashboard.plan import home_machine
from dashboard.plan.settings import GitHubSettings, HomeConfig, Isolation, ReferenceRule, read_hosts
from dashboard.schedule.schedule import parse_cron
from tvmdash import common, config_util
from tvmdash.common import github_api
from tvmdash.common.http_util import find_url_fault, is_link
from tvmdash.common.secret_file import SecretFile
from tvmdash.config_util import ConfigError
from tvmdash.dashboard_info import OF_REFERENCE, VARIANT_SIGN, Home
from tvmdash.dashboard_info.stages import PIPELINES
from tvmdash.errors import DashboardError
from tvmdash.machine.devices import KINDS, read_devices

_TVM_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_TVM_FORMS = "pypi:0.26.0, pypi:latest, wheel:PACKAGE@VERSION, git:REVISION, REMOTE@REVISION"


def read_home_config(home: Home) -> HomeConfig:
    """Read the home's config; DashboardError lists every fault. Nothing is written."""
    if not home.root.is_dir():
        raise DashboardError(f"{home.root}: no such folder. Copy sample-dashboard-home to create a home.")
    value = config_util.read_config(home.config_file, config_util.HOME_FIELDS)
    broken = [name for name, item in value.items() if isinstance(item, str) and "\0" in item]
    if broken:
        raise ConfigError([f"{home.config_file}: $.{name}: contains a NUL character. Remove it." for name in broken])
    value = {**value, "tvm_remote": _read_remote(value["tvm_remote"], str(home.config_file))}
    config = replace(
        _parse(home, value),
        hosts=read_hosts(value["hosts"], str(home.config_file)),
        devices=read_devices(value["devices"], str(home.config_file)),
    )
    faults = [
        *find_spec_faults(config.tvm, str(home.config_file)),
        *_find_tvms_faults(value["tvms"], config.tvm, str(home.config_file)),
        *_find_reference_faults(value["reference"], value["tvms"], config.tvm, str(home.config_file)),
        *_find_source_faults(config.tvm_source, str(home.config_file)),
        *_find_folder_faults(home, config),
        *_find_code_folder_faults(home, value),
        *_find_value_faults(config, str(home.config_file)),
    ]
    if faults:
        raise ConfigError(faults)
    return replace(config, warnings=tuple(find_late_faults(home.root, value, config, str(home.config_file))))


def code_folders(home: Home) -> dict[str, tuple[Path, ...]]:
    """Read the config's folders of code by kind of job, also where something else in it is wrong.

    What is wrong is for `read_home_config` to say.
    """
    value: common.Json = {}
    with contextlib.suppress(DashboardError):
        value = common.read_json(home.config_file)
    stated = {row.kind: value.get(f"{row.kind}_dirs") if isinstance(value, dict) else None for row in PIPELINES}
    return {
        kind: tuple(_folder(home, text) for text in texts if isinstance(text, str) and "\0" not in text)
        for kind, texts in stated.items()
        if isinstance(texts, list)
    }


def _folder(home: Home, text: str) -> Path:
    """Resolve a folder as configs name it: `~` is the user's, a relative one is the home's."""
    return Path(os.path.normpath(home.root / os.path.expanduser(text)))


def _find_code_folder_faults(home: Home, value: Mapping[str, Any]) -> Iterator[str]:
    """Find missing folders of code: the jobs in one would be measured with other code."""
    for row in PIPELINES:
        field = f"{row.kind}_dirs"
        for number, text in enumerate(value[field]):
            where = f"{home.config_file}: $.{field}[{number}]"
            if "\0" in text:
                yield f"{where}: contains a NUL character. Remove it."
            elif not _folder(home, text).is_dir():
                yield f"{where}: {_folder(home, text)} is not a folder. Give the folder that contains your {row.kind}s."


def _parse(home: Home, value: dict[str, Any]) -> HomeConfig:
    def folder(name: str) -> Path:
        return _folder(home, value[name])

    cores = len(os.sched_getaffinity(0))
    options = value["tvm_options"] if is_wheel(value["tvm_remote"]) else _add_device_options(value)
    own = ArtifactSpec.of(value["tvm_remote"], value["tvm_branch"], options)
    return HomeConfig(
        tmp_data=folder("tmp_data_dir"),
        backup=folder("backup_dir"),
        setup=folder("setup_dir"),
        artifacts=folder("artifact_dir"),
        tvm=own,
        fallback=Fallback(value["measure_last_tvm"]),
        tvms={name: spec for name, text in value["tvms"].items() if (spec := _parse_spec(text, own))},
        reference=_parse_reference(value["reference"], value["tvms"], own),
        randomize=value["randomize"],
        seed=value["seed"],
        timeouts=value["timeouts"],
        artifact_timeout_s=value["artifact_timeout_s"],
        max_artifacts_bytes=int(value["max_artifacts_gb"] * 10**9),
        parallel_stages=value["parallel_stages"] or cores,
        min_free_bytes=value["min_free_mb"] * 10**6,
        keep_archives=value["keep_archives"],
        backup_copy=value["backup_copy"],
        keep_raw_nights=value["keep_raw_nights"],
        max_raw_bytes=int(value["max_raw_gb"] * 10**9),
        telemetry_rate=value["telemetry_rate"],
        env=value["env"],
        env_name=value["env_name"] or home_machine.name_of(home),
        prometheus_file=_folder(home, value["prometheus_file"]) if value["prometheus_file"] else None,
        website_url=value["website_url"],
        isolation=Isolation.REQUIRE if value["github_may_ask"] else Isolation(value["isolate_candidates"]),
        candidates_may_read=tuple(_folder(home, text) for text in value["candidates_may_read"]),
        tvm_source=value["tvm_source"],
        github=GitHubSettings(tuple(value["github_may_ask"]), value["github_token_file"], value["github_login"]),
    )


def _add_device_options(value: Mapping[str, Any]) -> dict[str, str]:
    """CMake's options of a source build, with the runtimes of the home's devices; what `tvm_options` says counts."""
    kinds = {name.partition(":")[0] for name in value["devices"]} & set(KINDS)
    return {**{f"USE_{kind.upper()}": "ON" for kind in kinds}, **value["tvm_options"]}


def _read_remote(value: Any, shown: str) -> str:
    try:
        return str(read_remote(value))
    except DashboardError as error:
        raise ConfigError([f"{shown}: $.{error}"]) from error


def _find_source_faults(remote: str, shown: str) -> list[str]:
    try:
        check_remote(remote)
    except DashboardError as error:
        return [f"{shown}: $.tvm_source: {error.problem}"]
    return []


def _parse_spec(text: str, own: ArtifactSpec) -> ArtifactSpec | None:
    """Parse the name of a TVM; None where another check reports what is wrong with it."""
    with contextlib.suppress(DashboardError):
        return parse(text, own)
    return None


def _parse_reference(text: str, tvms: Mapping[str, str], own: ArtifactSpec) -> ArtifactSpec | ReferenceRule:
    if text in set(ReferenceRule):
        return ReferenceRule(text)
    return _parse_spec(tvms.get(text, text), own) or ReferenceRule.NONE


def _find_tvms_faults(tvms: Mapping[str, str], own: ArtifactSpec, shown: str) -> Iterator[str]:
    """Find names that cannot stand in a file's name or a message, and texts that ask for no TVM."""
    for name, text in tvms.items():
        where = f"{shown}: $.tvms.{name}"
        if not _TVM_NAME.fullmatch(name):
            yield (
                f"{where}: invalid TVM name. Use up to 40 letters, digits, '-', '_', '.', starting with a letter or "
                "digit."
            )
        if name == OF_REFERENCE:
            yield (
                f"{where}: reserved name; in traces NAME{VARIANT_SIGN}{name} means the reference. Give this TVM "
                "another name, e.g. release."
            )
        yield from _find_tvm_faults(text, own, where, _TVM_FORMS)


def _find_reference_faults(text: str, tvms: Mapping[str, str], own: ArtifactSpec, shown: str) -> Iterator[str]:
    """Check the reference; a fault of a name in `tvms` is reported there."""
    if text not in set(ReferenceRule) and text not in tvms:
        forms = f"{', '.join(ReferenceRule)}, {_TVM_FORMS}, or a name in tvms ({', '.join(tvms) or 'it has none'})"
        yield from _find_tvm_faults(text, own, f"{shown}: $.reference", forms)


def _find_tvm_faults(text: str, own: ArtifactSpec, where: str, forms: str) -> Iterator[str]:
    """Check the TVM that stands at `where`; `forms`: what could stand there."""
    try:
        if parse(text, own) is None:
            yield f"{where}: {text!r} is not a TVM. Use {forms}."
    except DashboardError as error:
        yield f"{where}: {error}"


def find_spec_faults(spec: ArtifactSpec, shown: str) -> list[str]:
    """Check, offline, the TVM that the config `shown` asks for."""
    try:
        check_spec(spec)
    except DashboardError as error:
        return [f"{shown}: $.{error}"]
    return []


def _find_folder_faults(home: Home, config: HomeConfig) -> list[str]:
    """Find working folders that overlap the home's config, its results, or one another."""
    names = ("tmp_data_dir", "backup_dir", "setup_dir", "artifact_dir")
    faults = []
    for name, folder in zip(names, config.folders, strict=True):
        for taken in (home.root / "config", home.root / "results"):
            if folder in {taken, home.root} or taken in folder.parents or folder in taken.parents:
                faults.append(f"{home.config_file}: $.{name}: {folder} overlaps {taken}. Give it a folder of its own.")
                break
    for index, (name, folder) in enumerate(zip(names, config.folders, strict=True)):
        for other_name, other in list(zip(names, config.folders, strict=True))[:index]:
            if folder == other or folder in other.parents or other in folder.parents:
                faults.append(
                    f"{home.config_file}: $.{name}: {folder} overlaps {other_name}. Give it a folder of its own."
                )
    return faults


def _find_value_faults(config: HomeConfig, shown: str) -> list[str]:
    names = [stage.name for row in PIPELINES for stage in row.stages]
    faults = [*find_env_faults(config.env, shown), *find_timeout_faults(config.timeouts, names, shown)]
    if config.backup_copy:
        try:
            check_url(config.backup_copy)
        except DashboardError as error:
            faults.append(f"{shown}: $.backup_copy: {error}")
    return faults


def find_timeout_faults(timeouts: Mapping[str, int], names: Sequence[str], shown: str) -> list[str]:
    faults = []
    for name in timeouts:
        near = difflib.get_close_matches(name, names, n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else f"Stages: {', '.join(dict.fromkeys(names))}."
        faults += [] if name in names else [f"{shown}: $.timeouts.{name}: no such stage. {remedy}"]
    return faults


def find_env_faults(env: Mapping[str, str], shown: str) -> list[str]:
    return [
        f"{shown}: $.env.{name}: not a valid environment variable. Remove '=' from the name and NUL characters."
        for name, value in env.items()
        if not name or "=" in name or "\0" in name + value
    ]


# A night needs none of them, so none keeps it from measuring. Nothing is asked over the network.
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
    """Find faults that keep no night from measuring. value: the config's fields, of which `config` was made."""
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
    yield from _find_unusable_paths(value, config, shown)
    if config.github.may_ask:
        yield from _find_token_faults(home, config.github.token_file, shown)
    yield from _find_variable_faults(config.env, f"{shown}: $.env.")
    yield from _find_variable_faults(os.environ, "environment variable ")


def _find_unusable_paths(value: Mapping[str, Any], config: HomeConfig, shown: str) -> Iterator[str]:
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
    """Check the addresses in an environment; no fault shows one, as it may hold a password."""
    for name, schemes in _SCHEMES.items():
        for url in variables.get(name, "").split():
            is_short = name.lower() in _PROXIES and "://" not in url  # curl, pip and requests take HOST:PORT
            if fault := find_url_fault(f"http://{url}" if is_short else url, schemes):
                yield f"{where}{name}: the URL {fault}. Correct it."
