"""Git, run without a terminal and hooks; and bare mirrors, which are never deleted: a remote may be out of reach."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts import locks
from dashboard.artifacts.artifact import ArtifactError
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git.names import find_public_addresses, is_commit, may_be_commit, ref_of_pull
from dashboard.artifacts.locks import LockDeadline
from dashboard.process import process
from tvmdash.errors import DashboardError

_ALWAYS = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "safe.directory=*",
)
"""safe.directory: mirrors may belong to another account than the one that runs tonight; no code of theirs is run."""
# Inside a hook of git these are set, and name another repository.
_NOT_FOR_GIT = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
)
_ANONYMOUS = ("-c", "credential.helper=", "-c", "http.extraHeader=", "-c", "http.cookieFile=")
_NOBODY = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent", "GIT_SSH_COMMAND": "false"}
"""Without ~/.netrc, ~/.gitconfig and ssh."""
_QUERY_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Caution:
    """Settings for asking an untrusted remote: it receives no password or key of this user.

    Where a stranger named whom to ask, that is asked by `protocol` alone, at these `addresses` (`HOST:PORT:ADDRESS`;
    git before 2.37 looks the host up again), and may send git nowhere else.
    """

    addresses: tuple[str, ...] = ()
    protocol: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        pinned = [word for address in self.addresses for word in ("-c", f"http.curloptResolve={address}")]
        return (*_ANONYMOUS, *pinned, *(("-c", "http.followRedirects=false") if self.protocol else ()))

    @property
    def environment(self) -> dict[str, str]:
        return {**_NOBODY, **({"GIT_ALLOW_PROTOCOL": self.protocol} if self.protocol else {})}


def run_git(
    arguments: list[str], *, cwd: Path, log: Path | None, deadline: LockDeadline, caution: Caution | None = None
) -> None:
    """Run a git command that takes long or reaches out; ArtifactError says what it said last.

    log: None where nobody will look at one.
    """
    words = ["git", *_ALWAYS, *(caution.options if caution else ()), *arguments]
    environment = {**_environment(), **(caution.environment if caution else {})}
    with tempfile.TemporaryDirectory() as scratch:
        written = log or Path(scratch) / "git.log"
        try:
            outcome = process.run(words, cwd=cwd, env=environment, timeout_s=deadline.left_s(), log=written)
        except DashboardError as error:
            raise ArtifactError(f"{error} Install git.") from error
    what, kept = f"git {arguments[0]}", f"log: {log}" if log else ""
    if outcome.timed_out:
        kept = f" ({kept})" if kept else ""
        raise ArtifactError(f"{what}: timed out after {outcome.elapsed_s:.0f} s{kept}. Allow more time.")
    if outcome.exit_code != 0:
        errors = [line for line in outcome.tail.split("\n") if line.startswith(("fatal:", "error:", "ssh:"))]
        last = (errors or outcome.tail.split("\n"))[-1].strip()[:300] or "no output"
        how = f"exit status {outcome.exit_code}" if outcome.signal is None else f"signal {outcome.signal}"
        raise ArtifactError(f"{what}: {last} ({'; '.join(filter(None, (how, kept)))}).")


def ask_git(arguments: list[str], *, cwd: Path, borrowed: Path | None = None) -> str | None:
    """Run a git command on a repository of this disk and return its output; None where it fails.

    borrowed: a bare repository whose commits it sees as well.
    """
    objects = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(borrowed / "objects")} if borrowed else {}
    try:
        done = subprocess.run(
            ["git", *_ALWAYS, *arguments],
            cwd=cwd,
            env={**_environment(), **objects},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_QUERY_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ArtifactError("git: could not be started. Install git.") from error
    except subprocess.TimeoutExpired as error:
        raise ArtifactError(f"{cwd}: git {arguments[0]} did not finish within {_QUERY_TIMEOUT_S:.0f} s.") from error
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_GIT}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true", "LC_ALL": "C.UTF-8"}


MIRRORS = ".mirrors"
_EVERYTHING = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
_FIELDS = "%H%x1f%an%x1f%cI%x1f%s"


@dataclass(frozen=True)
class Commit:
    """One commit: its 40 digits, who wrote it, when it was committed (ISO 8601 with offset), its first line."""

    sha: str
    author: str
    committed: str
    title: str


@dataclass(frozen=True)
class Mirror:
    """The mirror of `remote` in `path`, whether it is there yet or not.

    named_by: the remote of the commit whose submodule it is; empty where an operator named it.
    """

    remote: str
    path: Path
    named_by: str = ""

    @classmethod
    def of(cls, folder: Path, remote: str, *, named_by: str = "") -> Mirror:
        """Return the mirror of `remote` beside the artifacts in `folder`."""
        plain = re.sub(r"[^A-Za-z0-9]+", "-", remote.removesuffix(".git")).strip("-")[-40:]
        digest = hashlib.sha256(remote.encode("utf-8", errors="surrogatepass")).hexdigest()[:12]
        return cls(remote, folder / MIRRORS / f"{plain}-{digest}.git", named_by)

    def fetch(self, context: BuildContext, *wanted: str) -> None:
        """Bring the mirror up to date: every branch and tag, or the refs or commits `wanted`. One night at a time.

        Killed at any instant, what was there before stays usable; what git left half done is removed first.
        """
        log = context.log_folder / f"fetch-{self.path.stem}.log"
        lock = self.path.parent / ".locks" / f"{self.path.name}.lock"
        with locks.exclusive(lock, f"fetching {self.remote}", context.deadline):
            self._make(context, log)
            refs = [f"+{ref}:{ref}" if ref.startswith("refs/") else ref for ref in wanted]
            arguments = ["fetch", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet"]
            try:
                run_git(
                    [*arguments, *([] if refs else ["--prune"]), "--", self.remote, *(refs or _EVERYTHING)],
                    cwd=self.path,
                    log=log,
                    deadline=context.deadline,
                    caution=self._choose_caution(context),
                )
            except ArtifactError as error:
                raise ArtifactError(f"{self.remote}: {error}") from error

    def _choose_caution(self, context: BuildContext) -> Caution | None:
        """Choose the restrictions on a fetch for a guest; ArtifactError where its commit leads to this network."""
        if context.guest is None:
            return None
        if not self.named_by:
            return Caution()
        addresses = find_public_addresses(self.remote, self.named_by)
        return Caution(addresses, self.remote.partition("://")[0] if "://" in self.remote else "file")

    def check_offered(self, revision: str, deadline: locks.LockDeadline) -> None:
        """Raise ArtifactError where the remote has no branch or tag of this name; nothing is fetched.

        A commit is taken on trust where the mirror lacks it: remotes tell no more than the names that they have.
        """
        if may_be_commit(revision) or self.resolve(revision):
            return
        arguments = ["ls-remote", "--exit-code", "--quiet", "--", self.remote, ref_of_pull(revision) or revision]
        try:
            run_git(arguments, cwd=Path("/"), log=None, deadline=deadline)
        except ArtifactError as error:
            raise ArtifactError(f"{self.remote}: could not fetch {revision}: {error}") from error

    def _make(self, context: BuildContext, log: Path) -> None:
        """Make the repository, if it is missing, and remove traces of a killed fetch. The caller holds the lock."""
        self.path.mkdir(parents=True, exist_ok=True)
        run_git(["init", "--bare", "--quiet", "."], cwd=self.path, log=log, deadline=context.deadline)
        # git leaves its lock files behind when it is killed, and refuses to go on beside them.
        for stale in (*self.path.glob("*.lock"), *self.path.glob("refs/**/*.lock")):
            stale.unlink(missing_ok=True)
        for stale in self.path.glob("objects/pack/tmp_*"):
            stale.unlink(missing_ok=True)

    def ensure(self, commit: str, context: BuildContext) -> None:
        """Have the commit, by a fetch where it is not there; ArtifactError where the remote does not give it."""
        if self.commit_of(commit) is None:
            try:
                self.fetch(context, commit)  # by its digits alone, which most servers allow
            except ArtifactError:
                self.fetch(context)
        if self.commit_of(commit) is None:
            raise ArtifactError(
                f"{self.remote}: commit {commit} not found. It may have been removed from the repository."
            )

    def resolve(self, revision: str) -> str | None:
        """Return the commit that `revision` means as far as the mirror knows; None where it knows none.

        ArtifactError where a branch and a tag of this name differ, or the first digits fit several commits.
        """
        pull = ref_of_pull(revision)
        if pull or revision.startswith("refs/"):
            return self.commit_of(pull or revision)
        branch, tag = (self.commit_of(f"refs/{kind}/{revision}") for kind in ("heads", "tags"))
        if branch and tag and branch != tag:
            raise ArtifactError(
                f"tvm_branch: {revision!r} is both a branch and a tag of {self.remote}. Write refs/heads/{revision} "
                f"or refs/tags/{revision}."
            )
        if branch or tag or not may_be_commit(revision):
            return branch or tag
        return self.commit_of(revision)

    def commit_of(self, name: str) -> str | None:
        """Return the 40 digits of the commit that git knows by this exact name."""
        if not self.path.is_dir():
            return None
        answer = ask_git(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"], cwd=self.path)
        commit = (answer or "").strip()
        return commit if is_commit(commit) else None

    def contains(self, tip: str, commit: str) -> bool:
        """Return True where `commit` is `tip` or one of its ancestors."""
        return ask_git(["merge-base", "--is-ancestor", commit, tip], cwd=self.path) is not None

    def find_merge_base(self, tip: str, other: str, other_mirror: Mirror) -> str | None:
        """Find the last commit that `tip` shares with `other`, a commit of the other mirror; None without one."""
        answer = ask_git(["merge-base", tip, other], cwd=self.path, borrowed=other_mirror.path)
        return (answer or "").strip() or None

    def describe(self, commit: str) -> str:
        """Describe the commit by the nearest tag, the commits since, and its digits; without a tag by these."""
        answer = ask_git(["describe", "--tags", "--long", "--always", "--abbrev=9", commit], cwd=self.path)
        return (answer or commit[:9]).strip()

    def commits(self, old: str, new: str, *, most: int = 1000) -> tuple[Commit, ...]:
        """Return the commits in `new` that `old` lacks, newest first, at most `most`."""
        return self._log([f"--max-count={most}", "--first-parent", f"{old}..{new}"])

    def folders(self, old: str, new: str, *, most: int) -> dict[str, tuple[str, ...]]:
        """Map each commit that `commits` lists to the folders of the files that it changed, at most two deep."""
        arguments = ["log", f"--max-count={most}", "--first-parent", "-m", "--name-only", "--format=%x1e%H"]
        text = ask_git([*arguments, f"{old}..{new}", "--"], cwd=self.path) or ""
        changed: dict[str, tuple[str, ...]] = {}
        for entry in text.split("\x1e")[1:]:
            sha, *files = filter(None, entry.split("\n"))
            changed[sha] = tuple(dict.fromkeys("/".join(file.split("/")[:-1][:2]) or file for file in files))
        return changed

    def commit(self, sha: str) -> Commit:
        """Look up one commit; ArtifactError where the mirror has not got it."""
        commits = self._log(["--max-count=1", sha])
        if not commits:
            raise ArtifactError(f"{self.path}: has no commit {sha}.")
        return commits[0]

    def _log(self, arguments: list[str]) -> tuple[Commit, ...]:
        text = ask_git(["log", "-z", f"--format={_FIELDS}", *arguments, "--"], cwd=self.path) or ""
        # At most three: the title, which comes last, may hold anything.
        entries = (entry.split("\x1f", 3) for entry in text.split("\0") if entry.count("\x1f") == 3)
        # Newer gits write UTC as Z, older ones as +00:00.
        return tuple(Commit(sha, who, when.replace("Z", "+00:00"), title) for sha, who, when, title in entries)
