"""The worker of a host: one night in a home of its own, whose config comes with the order, then the parcels.

It speaks over its standard input and descriptor 3. When its input ends or is silent for long, whoever ordered the night
is gone: it ends the night as an interrupt does. What was measured by then is saved by the next night.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import queue
import shutil
import signal
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from dashboard.artifacts import artifact_store, proof
from dashboard.artifacts.artifact import LAST_USED, MANIFEST, Artifact, ArtifactError, python_tag, read_artifact
from dashboard.artifacts.locks import LockDeadline
from dashboard.hosts import parcels
from dashboard.hosts.messages import (
    BEAT_S,
    HAND_OVER_S,
    PROTOCOL,
    SILENCE_S,
    Acknowledge,
    Beat,
    Begin,
    Channel,
    ChannelError,
    Ended,
    Fetch,
    HandOver,
    Hello,
    Holds,
    Message,
    Offer,
    Ready,
    Refused,
    Tvm,
)
from dashboard.night import folders, night
from dashboard.night.lock import node
from dashboard.plan.home_config import code_folders
from dashboard.plan.job import REPOSITORY, CodeFolders, Plan
from dashboard.plan.plan import make_plan
from tvmdash import common
from tvmdash.common.files import lock, trees
from tvmdash.dashboard_info import COMPLETE, Home
from tvmdash.errors import DashboardError
from tvmdash.machine import hardware


def unpack(content: IO[bytes], folder: Path) -> None:
    """Unpack the tar archive into the folder; TarError or OSError where that cannot be."""
    with tarfile.open(fileobj=content) as archive:
        # Python before 3.11.4 has no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)  # noqa: S202 - the home packed it; filtered where Python can


_OUTPUT = 3
_FIRST_WORD_S = 120.0
_LONGEST_S = 24 * 3600.0
_KEPT_CODES = 2
_SPOOLED_BYTES = 1 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)


def work(folder: Path) -> None:
    """Do what whoever is at the other end says, until it is said that all parcels are at home."""
    channel = Channel(sys.stdin.fileno(), _OUTPUT, "the home")
    held = lock.take(folder / ".lock", "the worker", within_s=SILENCE_S)
    if held is None:
        channel.send(Refused(f"another worker is running in {folder}: {lock.read_holder(folder / '.lock')}."))
        return
    with held:
        _Worker(folder, channel).work()


class _Worker:
    def __init__(self, folder: Path, channel: Channel) -> None:
        self._folder, self._channel = folder, channel
        self._home = Home(folder / "home")
        self._inbox = _Inbox(channel, folder)
        self._acknowledged = folder / "acknowledged"

    def work(self) -> None:
        self._channel.send(self._make_hello())
        threading.Thread(target=self._send_beats, name="beats", daemon=True).start()
        begin, config = self._inbox.take(_FIRST_WORD_S)
        if not isinstance(begin, Begin):
            raise DashboardError(f"protocol error: expected the first message, got {type(begin).__name__}.")
        try:
            self._channel.send(self._measure(begin, config))
        except (DashboardError, OSError) as error:
            self._channel.send(Ended(self._describe(error)))
        try:
            self._hand_over()
        except OSError as error:
            self._channel.send(
                Refused(f"{self._describe(error)} Its measurements will be delivered with the next night.")
            )
            raise DashboardError(self._describe(error)) from error
        _remove_old_codes(self._folder / "code")

    def _make_hello(self) -> Hello:
        free = shutil.disk_usage(self._folder).free
        python = platform.python_version(), python_tag(), platform.machine()
        return Hello(PROTOCOL, node(), hardware.hw_model(), *python, time.time(), free)

    def _send_beats(self) -> None:
        while True:
            time.sleep(BEAT_S)
            try:
                self._channel.send(Beat())
            except ChannelError:
                return  # whoever listens to the home says so

    def _measure(self, begin: Begin, config: IO[bytes]) -> Ended:
        self._write_config(config)
        code = CodeFolders(of_home=code_folders(self._home))
        plan = make_plan(self._home, code, seed=begin.seed, host=begin.host)
        order = night.NightOrder(
            begin.stamp, begin.repository, begin.patience_s, lambda: list(self._get_copies(begin, plan))
        )
        with self._inbox.watched():
            done = night.run_night(plan, rebuild=begin.rebuild, order=order)
        return Ended() if done.state == COMPLETE else Ended("the night on the host was interrupted.", interrupted=True)

    def _describe(self, error: DashboardError | OSError) -> str:
        """Describe the error, with what to do about a full disk."""
        if isinstance(error, DashboardError):
            return str(error)
        if error.errno in _FULL:
            return (
                f"{error.filename or self._folder}: {error.strerror}. Free some space on the disk with {self._folder}."
            )
        return f"{error.filename or self._folder}: {error.strerror}."

    def _get_copies(self, begin: Begin, plan: Plan) -> Iterator[str]:
        """Have the home's TVMs copied to here as far as they are not here yet; what went wrong, for people."""
        folder = plan.config.artifacts
        for key, why in list_lacking(begin.tvms, folder):
            try:
                if why:
                    raise ArtifactError(why)
                log = plan.config.tmp_data / "logs" / begin.stamp / f"health-{key}.log"
                take_in(key, self._fetch(key), folder, log)
            except (ArtifactError, OSError, tarfile.TarError) as error:
                yield f"The home's TVM {key} could not be copied to this machine, so it is obtained again: {error}"
        self._channel.send(Ready())

    def _fetch(self, key: str) -> IO[bytes]:
        self._channel.send(Fetch(key))
        message, content = self._inbox.take(_LONGEST_S)
        if not isinstance(message, Tvm) or message.key != key:
            raise ChannelError(f"protocol error: expected the TVM {key}, got {type(message).__name__}.")
        if message.why or hash_content(content) != message.id:
            raise ArtifactError(message.why or "it was damaged in transit.")
        return content

    def _write_config(self, config: IO[bytes]) -> None:
        self._home.root.mkdir(exist_ok=True)
        with common.folder_beside(self._home.root / "config") as new:
            unpack(config, new)
        (self._home.root / "config" / "experiments").mkdir(exist_ok=True)

    def _hand_over(self) -> None:
        message, _ = self._inbox.take(_LONGEST_S)
        if not isinstance(message, HandOver):
            raise DashboardError(f"protocol error: expected the message after the night, got {type(message).__name__}.")
        self._acknowledged.mkdir(exist_ok=True)
        tmp_data = self._home.root / "tmp"
        unfinished = {folder.name for folder in folders.list_unfinished(tmp_data, self._home)}
        stamps = parcels.list_unacknowledged(self._home, self._acknowledged, unfinished)
        self._channel.send(Holds(len(stamps)))
        for stamp in stamps:
            file = self._folder / "outbox" / f"{stamp}.tar"
            name = parcels.pack(self._home, tmp_data, stamp, file)
            with file.open("rb") as content:
                self._channel.send(Offer(name, stamp), content, file.stat().st_size, HAND_OVER_S)
            answer, _ = self._inbox.take(SILENCE_S)
            if not isinstance(answer, Acknowledge) or answer.id != name:
                raise DashboardError(f"{stamp}: the home did not acknowledge its result archive.")
            common.write_text(self._acknowledged / stamp, name + "\n")
            file.unlink()


class _Inbox:
    """The messages of the home, read as they come, so that its end is noticed at once."""

    def __init__(self, channel: Channel, folder: Path) -> None:
        self._channel, self._folder = channel, folder
        self._taken: queue.Queue[tuple[Message, IO[bytes]] | ChannelError] = queue.Queue()
        self._is_watched = False
        threading.Thread(target=self._read, name="inbox", daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                message, size = self._channel.receive(_FIRST_WORD_S)
                content = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES, dir=str(self._folder))  # noqa: SIM115 - its reader's
                self._channel.receive_bytes(size, content, SILENCE_S)
                content.seek(0)
                if not isinstance(message, Beat):
                    self._taken.put((message, content))
        except (ChannelError, OSError) as error:
            self._taken.put(error if isinstance(error, ChannelError) else ChannelError(f"{self._folder}: {error}"))
            if self._is_watched:
                # The night runs in the main thread, which only a signal interrupts.
                os.kill(os.getpid(), signal.SIGINT)

    def take(self, within_s: float) -> tuple[Message, IO[bytes]]:
        """Return the next message, with what follows it."""
        try:
            item = self._taken.get(timeout=within_s)
        except queue.Empty:
            raise ChannelError(f"the home did not answer within {within_s:.0f} s.") from None
        if isinstance(item, ChannelError):
            raise item
        return item

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While the block runs, an interrupt comes when the home is gone or silent for long."""
        self._is_watched = True
        try:
            yield
        finally:
            self._is_watched = False


def _remove_old_codes(folder: Path) -> None:
    """Keep this code and the one before."""
    codes = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: -path.stat().st_mtime)
    for path in codes[_KEPT_CODES:]:
        if path.resolve() not in REPOSITORY.parents and path.resolve() != REPOSITORY:
            trees.remove(path)


_CHUNK = 1 << 20
_WITHIN_S = 600.0
_ROOM = 2.2
"""Space that a copy needs while it is unpacked, as a multiple of its size."""


def list_lacking(offered: Mapping[str, int], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield those that the artifacts' `folder` lacks, each with why it cannot be copied, which is mostly empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, size_bytes in offered.items():
        with contextlib.suppress(ArtifactError):
            read_artifact(folder / key)
            continue
        free, wanted = shutil.disk_usage(folder).free, round(size_bytes * _ROOM)
        yield key, f"{folder} has {free >> 20} MB free, but the copy needs {wanted >> 20} MB." if free < wanted else ""


def hash_content(content: IO[bytes]) -> str:
    digest = hashlib.sha256()
    content.seek(0)
    while chunk := content.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def take_in(key: str, content: IO[bytes], folder: Path, log: Path) -> None:
    """Unpack the copy, prove it and put it into the artifacts' `folder`; ArtifactError where it is not healthy here."""
    deadline = LockDeadline(_WITHIN_S)
    content.seek(0)
    with artifact_store.claim(folder, key, deadline), artifact_store.workplace(folder, key) as place:
        unpack(content, place)
        if not (place / key / MANIFEST).is_file():
            raise ArtifactError(f"{key}: the archive from the home does not contain this TVM.")
        copy = read_artifact(place / key)
        _prove(copy, place / "scratch", log, deadline)
        (copy.path / LAST_USED).touch()
        artifact_store.put(copy.path, folder, key, deadline)


def _prove(copy: Artifact, scratch: Path, log: Path, deadline: LockDeadline) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    healthy = proof.prove(copy.pythonpath, copy.library_path, scratch=scratch, log=log, deadline=deadline)
    if healthy.commit and copy.commit and not copy.commit.startswith(healthy.commit):
        raise ArtifactError(f"{copy.key}: was built from commit {healthy.commit}, but its manifest says {copy.commit}.")
