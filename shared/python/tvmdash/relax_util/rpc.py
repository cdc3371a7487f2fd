"""Sessions on devices of TVM's RPC tracker, within a stated time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from tvmdash.errors import DashboardError

POLL_S = 0.25
Address = tuple[str, int]
"""Host and port."""
T = TypeVar("T")
_tried: dict[str, Any] = {}


def session(device: str, key: str, address: Address, wait_s: float, limit: str = "$.wait_seconds") -> Any:
    """Return the process's one session on `device`, an RPCSession; a failure is raised again, at once.

    `key` is what servers of this kind of device call themselves at the tracker at `address`. limit: what `wait_s` is
    called where it can be changed.
    """
    if device not in _tried:
        try:
            _tried[device] = _connect(device, key, address, wait_s, limit)
        except DashboardError as error:
            _tried[device] = error
    tried = _tried[device]
    if isinstance(tried, DashboardError):
        raise tried
    return tried


def _connect(device: str, key: str, address: Address, wait_s: float, limit: str) -> Any:
    from tvm import rpc  # some seconds on a busy machine, which are not the device's

    deadline = time.monotonic() + wait_s
    where, waited = f"device {device}: the tracker {address[0]}:{address[1]}", f"{wait_s:g} s, {limit}"
    try:
        socket.create_connection(address, timeout=wait_s).close()
    except OSError as error:
        raise DashboardError(f"{where} does not answer: {error} (at most {waited}).") from error
    progress = ["does not speak the tracker protocol"]

    def ask() -> Any:
        tracker = rpc.connect_tracker(*address)
        _registered(tracker, key, progress, deadline)
        progress[:] = [f"has {key!r}, but the device is busy or does not answer"]
        return tracker.request(key, max_retry=1)

    try:
        return within(max(POLL_S, deadline - time.monotonic()), ask)
    except TimeoutError:
        raise DashboardError(f"{where} {progress[0]} ({waited}).") from None
    except Exception as error:  # TVM raises anything
        raise DashboardError(f"{where} could not open a session: {error}"[:1000]) from error


def _registered(tracker: Any, key: str, progress: list[str], deadline: float) -> None:
    """Wait until a server of this key is at the tracker; after the deadline nobody listens any more."""
    while time.monotonic() < deadline:
        keys = [str(server["key"]).removeprefix("server:") for server in tracker.summary()["server_info"]]
        if key in keys:
            return
        progress[:] = [f"has no device {key!r}; it has: {', '.join(sorted(set(keys))) or 'none'}"]
        time.sleep(POLL_S)
    raise TimeoutError


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return what `work` returns or raise what it raises; TimeoutError after `seconds`.

    It then goes on in a thread that ends with the process: TVM's own waiting, in C++, knows no time limit.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def do() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]
