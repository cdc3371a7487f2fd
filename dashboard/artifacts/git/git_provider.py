"""The `git` provider: TVM built from any remote, branch, tag, commit or pull request."""

from __future__ import annotations

import configparser
import datetime
import hashlib
import json
import os
import platform
import posixpath
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec, library_sizes, python_tag, runs_here
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import cmake
from dashboard.artifacts.git import names as git_names
from dashboard.artifacts.git.mirror import Mirror, ask_git, run_git
from dashboard.artifacts.git.names import check_remote, is_local
from dashboard.artifacts.proof import Health, prove
from dashboard.artifacts.spec import GIT
from dashboard.artifacts.wheel import package_index
from tvmdash import common
from tvmdash.common.files import trees

FFI_PROJECTS = ("3rdparty/tvm-ffi", "ffi")
"""The places of tvm-ffi's Python project in TVM's tree, newest first; before 0.21 there was none."""
NEEDS_BEFORE_FFI: Mapping[str, str] = {"decorator": "5.3.1"}
"""Packages that `import tvm` of a tree without tvm-ffi needs beside the dashboard's own requirements."""
VTA, VTA_CONFIG = "vta/python", "3rdparty/vta-hw/config"
"""VTA's Python package, which looks for its hardware's description at this place beside it."""
_KEPT = ("python", "include", VTA, VTA_CONFIG)
OPTIONAL_SUBMODULES: Mapping[str, tuple[str, ...]] = {
    "3rdparty/cutlass": ("USE_CUDA", "USE_CUTLASS"),
    "3rdparty/cutlass_fpA_intB_gemm": ("USE_CUDA", "USE_CUTLASS"),
    "3rdparty/libflash_attn": ("USE_CUDA", "USE_CUTLASS"),
    "3rdparty/cnpy": (),
    "3rdparty/flashinfer": ("USE_CUDA", "USE_FLASHINFER"),
    "3rdparty/OpenCL-Headers": ("USE_OPENCL",),
    "3rdparty/vta-hw": ("USE_VTA_FSIM", "USE_VTA_TSIM", "USE_VTA_FPGA"),
    "3rdparty/zlib": ("USE_MINRPC",),
}
"""Submodules that are fetched only where one of these options is on: some have hundreds of megabytes."""
_OFF = frozenset(("", "OFF", "0", "FALSE", "NO", "N"))


def satisfies(artifact: Artifact, spec: ArtifactSpec) -> bool:
    """Return True for a commit of the branch in `spec`, built with its options for this Python and machine."""
    facts = artifact.facts
    same = (facts.get("remote"), facts.get("options")) == (spec.remote, _format_options(spec))
    if artifact.provider != GIT or not artifact.commit or not runs_here(artifact) or not same:
        return False
    if git_names.is_commit(spec.branch):
        return artifact.commit == spec.branch
    mirror = Mirror.of(artifact.path.parent, spec.remote)
    tip = mirror.resolve(spec.branch)
    return tip is not None and mirror.contains(tip, artifact.commit)


def rank(artifact: Artifact) -> object:
    return artifact.facts["committed_utc"], artifact.key


def is_exact(spec: ArtifactSpec) -> bool:
    return git_names.is_commit(spec.branch)


def resolve(spec: ArtifactSpec, context: BuildContext) -> ArtifactSpec:
    """Replace the branch by tonight's commit; all 40 digits of a commit at hand need no network."""
    mirror = Mirror.of(context.folder, spec.remote)
    if git_names.is_commit(spec.branch):
        mirror.ensure(spec.branch, context)
        return spec
    pull = git_names.ref_of_pull(spec.branch)
    mirror.fetch(context, *([pull] if pull else []))
    commit = mirror.resolve(spec.branch)
    if commit is None:
        raise ArtifactError(
            f"tvm_branch: {spec.remote} has no branch, tag or commit {spec.branch!r}. List its branches and tags with "
            "git ls-remote."
        )
    return replace(spec, branch=commit)


def base_of(exact: ArtifactSpec) -> str:
    """Return the key: the same for the same commit, options, toolchain, Python and machine."""
    how = f"{exact.remote}\0{_format_options(exact)}\0{cmake.find_toolchain().words}"
    digest = hashlib.sha256(how.encode("utf-8", errors="surrogatepass")).hexdigest()[:8]
    return f"{GIT}-{exact.branch[:12]}-{digest}-{python_tag()}-{platform.machine()}"


def build(exact: ArtifactSpec, folder: Path, context: BuildContext) -> Artifact:
    """Check out, compile and prove `exact` in the empty `folder`; ArtifactError says at which step it ended."""
    begun = time.monotonic()
    options, mirror = dict(exact.options), Mirror.of(context.folder, exact.remote)
    cmake.check_tools(options)
    tools = cmake.find_toolchain()
    this = cmake.CmakeBuild(
        folder / "source", context, cmake.install_tools(context), tools, options, name=f"build-{exact.branch[:12]}"
    )
    check_out(mirror, exact.branch, this.tree, context, leave_out=_list_left_out(options))
    this.compile()
    version = format_python_version(mirror.describe(exact.branch))
    _install(this, folder, version, exact.branch)
    healthy = _prove(folder, context, exact)
    trees.remove(this.tree)
    trees.remove(folder / "scratch")
    commit = mirror.commit(exact.branch)
    facts = {
        "remote": exact.remote,
        "options": _format_options(exact),
        "toolchain": tools.words,
        "title": commit.title or "no title",
        "author": commit.author or "unknown",
        "committed": commit.committed,
        "committed_utc": common.stamp_of(datetime.datetime.fromisoformat(commit.committed)),
        **healthy.facts,
        "python": python_tag(),
        "machine": platform.machine(),
        "build_s": f"{time.monotonic() - begun:.0f}",
    }
    folders = _pythonpath(folder)
    return Artifact(
        key=base_of(exact),
        provider=GIT,
        version=version,
        commit=exact.branch,
        path=folder,
        pythonpath=folders,
        library_path=_library_path(folder),
        facts=facts,
        refused={},
        sizes_bytes=library_sizes(folder, (folder / "tree", *folders[1:])),
    )


def _list_left_out(options: Mapping[str, str]) -> list[str]:
    on = {name for name, value in options.items() if value.upper() not in _OFF}
    return [path for path, wanting in OPTIONAL_SUBMODULES.items() if not on.intersection(wanting)]


def _install(this: cmake.CmakeBuild, folder: Path, version: str, commit: str) -> None:
    """Move what runs from the sources to `folder`: the Python package, the libraries, tvm-ffi."""
    tree = folder / "tree"
    package = this.tree / "python" / "tvm"
    if not package.is_dir():
        raise ArtifactError(f"{this.tree}: python/tvm is missing. Is this a TVM repository?")
    version_module = f'version = __version__ = "{version}"\n__commit_id__ = commit_id = "{commit}"\n'
    for folder_in_tree in (package, this.folder, this.folder / "lib"):
        _check_inside(folder_in_tree, this.tree)
    (package / "_version.py").unlink(missing_ok=True)  # it may be a link
    (package / "_version.py").write_text(version_module, encoding="utf-8")
    for library in (*this.folder.glob("lib/*.so*"), *this.folder.glob("*.so*")):
        _move(library, tree / "build" / library.relative_to(this.folder))  # where this tree's Python looks for it
    for name in _KEPT:
        if (this.tree / name).is_dir():
            _check_inside(this.tree / name, this.tree)
            _move(this.tree / name, tree / name)
    for name in FFI_PROJECTS:
        if (this.tree / name / "pyproject.toml").is_file():
            this.install_python(this.tree / name, folder / "ffi")
            return
    log, context = this.context.log_folder / f"{this.name}-needs.log", this.context
    scratch = folder / "pip"  # not the build's, in which a module named pip could lie
    package_index.install_all(NEEDS_BEFORE_FFI, folder / "needs", scratch=scratch, log=log, deadline=context.deadline)
    trees.remove(scratch)


def _check_inside(path: Path, tree: Path) -> None:
    """Refuse a path that leads out of the tree: whatever is moved or written there would be somebody else's."""
    leads_to = trees.find_target(path.parent, path.name)
    if os.path.lexists(path) and (leads_to is None or not leads_to.is_relative_to(os.path.realpath(tree))):
        raise ArtifactError(
            f"{path}: symbolic link that points outside the source tree. No TVM repository contains one."
        )


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)


def _prove(folder: Path, context: BuildContext, exact: ArtifactSpec) -> Health:
    log = context.log_folder / f"health-{exact.branch[:12]}.log"
    return prove(
        _pythonpath(folder),
        _library_path(folder),
        scratch=folder / "scratch",
        log=log,
        deadline=context.deadline,
        guest=context.guest,
    )


def _pythonpath(artifact_folder: Path) -> tuple[Path, ...]:
    tree = artifact_folder / "tree"
    vta = (tree / VTA,) if (tree / VTA_CONFIG).is_dir() else ()  # without its submodule it cannot be imported
    folders = (tree / "python", *vta, artifact_folder / "ffi", artifact_folder / "needs")
    return tuple(folder for folder in folders if folder.is_dir())


def _library_path(artifact_folder: Path) -> tuple[Path, ...]:
    folders = (
        artifact_folder / "tree" / "build" / "lib",
        artifact_folder / "tree" / "build",
        artifact_folder / "ffi" / "tvm_ffi" / "lib",
    )
    return tuple(folder for folder in folders if any(folder.glob("*.so*")))


def read_options(artifact: Artifact) -> dict[str, str]:
    """CMake's options that an artifact of this provider was built with, as a config gives them."""
    options: dict[str, str] = json.loads(artifact.facts["options"])
    return options


def format_python_version(described: str) -> str:
    """Convert the output of `git describe --long` to a Python version, with the commit's digits in its local part.

    `v0.27.0-12-g1b565e7c3` becomes `0.27.0.post12+g1b565e7c3`; where there is no tag, `0+g1b565e7c3`.
    """
    match = re.fullmatch(r"v?(\d+(?:\.\d+)*)[.-]?((?:rc|dev)\d+)?-(\d+)-(g[0-9a-f]+)", described, re.ASCII)
    if not match:
        return f"0+g{described.rsplit('-g', 1)[-1]}"
    release, kind, since, digits = match.groups()
    before = f".{kind}" if kind and kind.startswith("dev") else kind or ""
    return f"{release}{before}{f'.post{since}' if since != '0' else ''}+{digits}"


def _format_options(spec: ArtifactSpec) -> str:
    return json.dumps(dict(spec.options), sort_keys=True)


_MOST_DEEP = 4
_GITLINK = re.compile(r"^160000 commit ([0-9a-f]{40})\t(.+)$", re.ASCII)


@dataclass(frozen=True)
class Submodule:
    """A submodule's path, its remote, and the commit that is wanted of it."""

    path: str
    url: str
    commit: str


def check_out(
    mirror: Mirror, commit: str, folder: Path, context: BuildContext, *, leave_out: Iterable[str] = ()
) -> None:
    """Write the files of `commit` into the empty `folder`, with its submodules and theirs.

    Submodules at the paths `leave_out` stay empty. ArtifactError where one cannot be had.
    """
    _check_out(mirror, commit, folder, context, frozenset(leave_out), 0)


def _check_out(
    mirror: Mirror, commit: str, folder: Path, context: BuildContext, leave_out: frozenset[str], depth: int
) -> None:
    if depth > _MOST_DEEP:
        raise ArtifactError(f"{mirror.remote}: its submodules are nested more than {_MOST_DEEP} levels deep.")
    mirror.ensure(commit, context)
    log = context.log_folder / f"checkout-{mirror.path.stem}.log"
    folder.mkdir(parents=True, exist_ok=True)
    for arguments in (
        # Shared: a mirror is never deleted, so its objects need no copy.
        ["clone", "--quiet", "--shared", "--no-checkout", "--", str(mirror.path), "."],
        ["checkout", "--quiet", "--detach", commit],
    ):
        run_git(arguments, cwd=folder, log=log, deadline=context.deadline)
    for submodule in read_submodules(folder, mirror.remote):
        if submodule.path not in leave_out:
            its_mirror = Mirror.of(context.folder, submodule.url, named_by=mirror.named_by or mirror.remote)
            _check_out(its_mirror, submodule.commit, folder / submodule.path, context, frozenset(), depth + 1)


def read_submodules(folder: Path, remote: str) -> Iterator[Submodule]:
    """Yield the submodules of the commit checked out in `folder`, which came from `remote`."""
    links = {}
    for line in (ask_git(["ls-tree", "-r", "-z", "HEAD"], cwd=folder) or "").split("\0"):
        match = _GITLINK.match(line)
        if match:
            links[match[2]] = match[1]
    if not links:
        return
    urls = _read_urls(folder / ".gitmodules")
    for path, commit in links.items():
        if path not in urls:
            raise ArtifactError(f"{remote}: .gitmodules gives no URL for the submodule {path}.")
        yield Submodule(_inside(path), make_absolute_url(urls[path], remote), commit)


def _read_urls(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        text = path.read_text(encoding="utf-8")
        # git indents the keys, which configparser would take for continued lines.
        parser.read_string(re.sub(r"^[ \t]+", "", text, flags=re.MULTILINE))
    except (OSError, ValueError, configparser.Error) as error:
        raise ArtifactError(f"{path.name}: cannot be read: {error}.") from error
    return {
        parser[name]["path"]: parser[name]["url"] for name in parser.sections() if {"path", "url"} <= {*parser[name]}
    }


def make_absolute_url(url: str, remote: str) -> str:
    """Resolve the submodule's URL as git does: it may be relative to `remote`.

    ArtifactError where git must not have it, as a path on this disk that something from elsewhere names.
    """
    if url.startswith(("./", "../")):
        scheme, separator, rest = remote.rpartition("://")
        host, colon, path = ("", "", rest) if separator or rest.startswith("/") else rest.rpartition(":")
        url = f"{scheme}{separator}{host}{colon}{posixpath.normpath(posixpath.join(path, url))}"
    try:
        check_remote(url)
        if is_local(url) and not is_local(remote):
            raise ArtifactError(f"{url!r} is a local path, but the repository is remote.")
    except ArtifactError as error:
        raise error.at(f"{remote}: a submodule's remote") from error
    return url


def _inside(path: str) -> str:
    parts = PurePosixPath(path).parts
    if PurePosixPath(path).is_absolute() or ".." in parts or ".git" in parts:
        raise ArtifactError(f"submodule {path!r}: points outside the source tree.")
    return path
