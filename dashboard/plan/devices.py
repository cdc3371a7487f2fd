"""The devices that experiments ask for, among those of the home."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dashboard.plan.job import Job
from dashboard.plan.settings import HomeConfig
from tvmdash import config_util
from tvmdash.machine import nvml
from tvmdash.machine.devices import CPU, Device

FIELD = "device"
"""The field of an experiment's config that names them."""


def find_faults(folder: Path, values: Mapping[str, Any], devices: Mapping[str, Device], shown: str) -> Iterator[str]:
    """Yield a sentence for each device that the experiment's config `shown` names and the home lacks."""
    there = f"Devices of this home: {', '.join((CPU, *devices))}."
    for name in _list_asked(folder, values):
        if name != CPU and name not in devices:
            yield f"{shown}: $.{FIELD}: this home has no device {name!r:.80}. {there}"


def list_devices(jobs: Iterable[Job], config: HomeConfig) -> tuple[Device, ...]:
    """List the devices beside the processor that any of the jobs asks for, each once."""
    asked = dict.fromkeys(name for job in jobs for name in _list_asked(job.folder, job.config))
    return tuple(config.devices[name] for name in asked if name in config.devices)


def list_kinds(jobs: Iterable[Job], config: HomeConfig) -> tuple[str, ...]:
    """List the kinds of those of them that are in this machine."""
    return tuple(dict.fromkeys(device.kind for device in list_devices(jobs, config) if device.tracker is None))


def list_cards(jobs: Iterable[Job], config: HomeConfig) -> tuple[str, ...]:
    """List the cards that the jobs measure on, where they measure on nothing else; otherwise none.

    Of a device that is no CUDA device nobody can tell whether it is the processor, or a card under another name.
    """
    passed = {nvml.VISIBLE: os.environ[nvml.VISIBLE]} if nvml.VISIBLE in os.environ else {}
    cards = set()
    for job in jobs:
        env = {**passed, **config.env, **job.config.get("env", {})}
        for name in _list_asked(job.folder, job.config) or [CPU]:
            device = config.devices.get(name)
            is_cuda = device is not None and device.kind == "cuda" and device.tracker is None
            card = nvml.name_cuda_card(device.index, env) if device is not None and is_cuda else None
            if card is None:
                return ()
            cards.add(card)
    return tuple(sorted(cards))


def takes_devices(folder: Path) -> bool:
    """Return True where the experiment in `folder` declares devices as the template does."""
    declared = config_util.read_fields(folder / config_util.FIELDS_FILE).get(FIELD)
    return declared is config_util.FIELD_SETS[FIELD][FIELD]


def _list_asked(folder: Path, values: Mapping[str, Any]) -> list[str]:
    return list(values[FIELD]) if takes_devices(folder) else []
