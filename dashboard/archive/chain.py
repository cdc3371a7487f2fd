"""The archives of one home as a chain of manifests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dashboard.archive.manifests import BASE, NAME, Entry, Manifest, read_manifest
from tvmdash.errors import DashboardError

State = dict[str, Entry]


@dataclass(frozen=True)
class Chain:
    """`links`: the base and its deltas, each the next one's parent, as far as they hold together.

    `broken`: the archives beyond that, by name, with the reason. `leftover`: files of archives that went into
    the base and that a killed `prune` did not come to remove.
    """

    folder: Path
    links: tuple[Manifest, ...]
    broken: dict[str, str]
    leftover: tuple[Path, ...]

    def states(self) -> Iterator[tuple[Manifest, State]]:
        """Each archive with what it holds, oldest first. The state is changed in place from one to the next."""
        state: State = {}
        for link in self.links:
            link.apply(state)
            yield link, state

    def state(self, name: str | None = None) -> State:
        """Return the entries of the archive `name` by path; raise DashboardError where there is no such archive.

        None: of the newest, provided that no archive is broken; empty where there is none yet.
        """
        if name is None:
            self.require_sound()
        last = self._link(name) if name is not None else None
        state: State = {}
        for link, so_far in self.states():
            state = so_far
            if link is last:
                break
        return state

    def _link(self, name: str) -> Manifest:
        manifest = next((link for link in self.links if link.name == name), None)
        if manifest is None:
            known = ", ".join(link.name for link in self.links[-3:]) or "none"
            why = self.broken.get(name, f"no such archive. The newest are: {known}.")
            raise DashboardError(f"{self.folder}: {name}: {why}")
        return manifest

    def require_sound(self) -> None:
        """DashboardError where an archive is broken, with what still stands and what to do."""
        if not self.broken:
            return
        name, why = next(iter(self.broken.items()))
        others = f" (and {len(self.broken) - 1} more)" if len(self.broken) > 1 else ""
        last = f"Archives up to {self.links[-1].name} can still be restored. " if self.links else ""
        raise DashboardError(
            f"{self.folder}: {name}{others} cannot be restored: {why} {last}"
            f"Rename {self.folder.parent}; the next archive then starts a new chain."
        )

    def refuse_name(self, name: str) -> None:
        """DashboardError where a new archive cannot be called `name`."""
        if not NAME.fullmatch(name):
            raise DashboardError(f"{name!r} is not a valid archive name (expected e.g. 20261121T031500Z-before).")
        taken = {link.name for link in self.links} | self.broken.keys()
        if name in taken or any(name in link.squashed for link in self.links[:1]):
            raise DashboardError(f"{self.folder}: {name}: this archive name has already been used. Choose another.")


def load_chain(folder: Path) -> Chain:
    """The chain in `folder` (empty where there is none yet). What is broken is in it, not raised."""
    deltas = {path.stem: path for path in sorted(folder.glob("[A-Za-z0-9]*.json")) if path.stem != BASE}
    base_path = folder / f"{BASE}.json"
    if not base_path.exists():
        why = f"{base_path} is missing."
        return Chain(folder, (), dict.fromkeys(deltas, why), ())
    try:
        base = read_manifest(base_path)
        if base.parent is not None:
            raise DashboardError(f"{base_path}: is not a base: it has a parent, {base.parent!r}.")
    except DashboardError as error:
        return Chain(folder, (), dict.fromkeys((BASE, *deltas), str(error)), ())
    leftover = tuple(deltas.pop(name) for name in base.squashed if name in deltas)
    children, broken = _read_deltas(deltas)
    links = _follow(base, children)
    for parent, child in children.items():
        broken.setdefault(child.name, f"its parent, {parent}, is missing, damaged or was replaced.")
    return Chain(folder, tuple(links), broken, leftover)


def _read_deltas(deltas: dict[str, Path]) -> tuple[dict[str, Manifest], dict[str, str]]:
    """The readable deltas by their parents' names, and why others are broken."""
    children: dict[str, Manifest] = {}
    broken: dict[str, str] = {}
    for name, path in deltas.items():
        try:
            delta = read_manifest(path)
        except DashboardError as error:
            broken[name] = str(error)
            continue
        if delta.name != name or delta.parent is None:
            broken[name] = f"{path}: was originally written as another file ({delta.name})."
        elif delta.parent in children:
            broken[name] = f"{path}: has the parent {delta.parent}, which {children[delta.parent].name} also has."
        else:
            children[delta.parent] = delta
    return children, broken


def _follow(base: Manifest, children: dict[str, Manifest]) -> list[Manifest]:
    """The chain from `base` on; its deltas are taken out of `children`."""
    links = [base]
    while True:
        child = children.get(links[-1].name)
        # A squashed base keeps its name: only the identity tells whether this delta was made on that content.
        if child is None or child.parent_identity != links[-1].identity:
            return links
        links.append(children.pop(links[-1].name))
