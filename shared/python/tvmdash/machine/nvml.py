"""NVIDIA's cards through NVML (package nvidia-ml-py): identity, readings, energy, throttling.

What a card or its driver cannot say is None: not supported, lost in the middle, the driver gone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

THROTTLES: Mapping[str, int] = MappingProxyType(
    {"its power limit": 0x004, "heat": 0x020 | 0x040, "its power supply": 0x080, "its hardware": 0x008}
)
"""NVML's bits for each cause of throttling. `its hardware` comes with heat or supply, or alone."""
READINGS: Mapping[str, Callable[[Any, Any], float]] = MappingProxyType(
    {
        "gpu_temperature_c": lambda nvml, card: nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU),
        "gpu_mhz": lambda nvml, card: nvml.nvmlDeviceGetClockInfo(card, nvml.NVML_CLOCK_SM),
        "gpu_memory_mhz": lambda nvml, card: nvml.nvmlDeviceGetClockInfo(card, nvml.NVML_CLOCK_MEM),
        "gpu_percent": lambda nvml, card: nvml.nvmlDeviceGetUtilizationRates(card).gpu,
        "gpu_memory_used_bytes": lambda nvml, card: nvml.nvmlDeviceGetMemoryInfo(card).used,
        "gpu_power_w": lambda nvml, card: nvml.nvmlDeviceGetPowerUsage(card) / 1e3,
    }
)
"""Momentary readings of a card, by column of the telemetry."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
"""Variable that limits a process to some of the cards and renumbers them."""
_log = logging.getLogger("machine")


@dataclass(frozen=True)
class Card:
    """One card; `handle` is NVML's."""

    nvml: Any
    handle: Any

    def ask(self, question: Callable[[Any, Any], Any]) -> Any:
        """Return the answer to a question that takes the package and the handle, None where the card has none."""
        try:
            return question(self.nvml, self.handle)
        except self.nvml.NVMLError:
            return None

    def read_energy_mj(self) -> int | None:
        """Return millijoules since the driver was loaded, of the whole card; None where it has no such counter."""
        energy: int | None = self.ask(lambda nvml, card: nvml.nvmlDeviceGetTotalEnergyConsumption(card))
        return energy

    def read_throttles(self) -> Mapping[str, bool] | None:
        """Return True for each of THROTTLES that slows its clocks down now; None where the card does not say."""
        bits: int | None = self.ask(lambda nvml, card: nvml.nvmlDeviceGetCurrentClocksEventReasons(card))
        return None if bits is None else {name: bool(bits & mask) for name, mask in THROTTLES.items()}

    def driver_version(self) -> str | None:
        """Return the version of NVIDIA's driver, as 580.126.09."""
        version: str | None = self.ask(lambda nvml, _: nvml.nvmlSystemGetDriverVersion())
        return version

    def is_divided(self) -> bool:
        """Return True where others may use parts of the card (MIG)."""
        mode = self.ask(lambda nvml, card: nvml.nvmlDeviceGetMigMode(card))
        return bool(mode and mode[0])

    def list_strangers(self) -> list[int]:
        """Return the processes that use the card and are not in this process's group."""
        using = self.ask(lambda nvml, card: nvml.nvmlDeviceGetComputeRunningProcesses(card)) or ()
        return [process.pid for process in using if not _is_ours(process.pid)]


def _is_ours(pid: int) -> bool:
    try:
        return os.getpgid(pid) == os.getpgid(0)
    except OSError:
        return False


class Cards:
    """The cards of this machine by NVML's numbers, opened. Call it for a reading of all; `close` it at the end."""

    def __init__(self, nvml: Any, cards: Mapping[int, Card]) -> None:
        self._nvml, self.cards = nvml, cards
        self._energy_before = {number: card.read_energy_mj() for number, card in cards.items()}

    def __call__(self) -> Mapping[str, float | None]:
        """Return READINGS by column, the joules since the cards were opened, and 1 where a clock is slowed down."""
        return {name: value for number in self.cards for name, value in self._read(number)}

    def _read(self, number: int) -> list[tuple[str, float | None]]:
        card, before = self.cards[number], self._energy_before[number]
        known = [(f"{name}.{number}", card.ask(question)) for name, question in READINGS.items()]
        energy, throttles = card.read_energy_mj(), card.read_throttles() or {}
        used = None if energy is None or before is None else (energy - before) / 1e3
        slowed = [(f"gpu_throttled.{number} {name}", throttles.get(name)) for name in THROTTLES]
        return [
            (name, None if value is None else float(value))
            for name, value in [*known, (f"gpu_energy_j.{number}", used), *slowed]
        ]

    def close(self) -> None:
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError as error:
            _log.warning("NVML: %s", error)


def open_cards() -> Cards | None:
    """Open the machine's NVIDIA cards; None where no driver answers, or there is no card."""
    nvml = _start()
    if nvml is None:
        return None
    found = {
        number: _find(nvml, nvml.nvmlDeviceGetHandleByIndex, number) for number in range(nvml.nvmlDeviceGetCount())
    }
    cards = Cards(nvml, {number: card for number, card in found.items() if card})
    if cards.cards:
        return cards
    cards.close()
    return None


def find_card(pci_bus_id: str) -> Card | None:
    """Find the card at that place, as CUDA names it; NVML stays open for the rest of the process's life."""
    nvml = _start()
    return None if nvml is None else _find(nvml, nvml.nvmlDeviceGetHandleByPciBusId, pci_bus_id)


def name_cuda_card(index: int, env: Mapping[str, str]) -> str | None:
    """Return a name, the same in every environment, of the card that CUDA calls `index` in this one.

    That is its UUID, or its number where NVML does not answer. None where it cannot be told: no such card, or one of
    several models, which CUDA numbers by their speed unless CUDA_DEVICE_ORDER says otherwise, or a part of one (MIG).
    """
    visible = env.get(VISIBLE)
    entries = [entry.strip() for entry in visible.split(",")] if visible is not None else []
    if visible is not None and index >= len(entries):
        return None
    entry = entries[index] if visible is not None else str(index)
    opened = open_cards()
    if opened is None:
        return f"cuda-{entry}" if entry.isdecimal() else None
    try:
        return _name_card(opened, entry, is_by_place=env.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID")
    finally:
        opened.close()


def _name_card(opened: Cards, entry: str, *, is_by_place: bool) -> str | None:
    """Return the UUID of the whole card that an entry of VISIBLE, a number or the begin of a UUID, means."""
    uuids: dict[int, str | None] = {
        number: card.ask(lambda nvml, it: nvml.nvmlDeviceGetUUID(it)) for number, card in opened.cards.items()
    }
    models = {card.ask(lambda nvml, it: nvml.nvmlDeviceGetName(it)) for card in opened.cards.values()}
    if entry.isdecimal():
        found = [int(entry)] if is_by_place or len(models) == 1 else []
    else:
        found = [number for number, uuid in uuids.items() if uuid and entry and uuid.startswith(entry)]
    if len(found) != 1 or found[0] not in uuids or any(card.is_divided() for card in opened.cards.values()):
        return None
    return uuids[found[0]]


def _find(nvml: Any, find: Callable[[Any], Any], which: int | str) -> Card | None:
    try:
        return Card(nvml, find(which))
    except nvml.NVMLError as error:
        _log.warning("NVML does not report card %s: %s.", which, error)
        return None


def _start() -> Any:
    """Initialize NVML and return the package; None where no driver answers."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return None
    except pynvml.NVMLError as error:
        _log.info("NVML is installed but finds no driver: %s. No GPU is recorded.", error)
        return None
    return pynvml
