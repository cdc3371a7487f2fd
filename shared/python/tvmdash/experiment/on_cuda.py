"""Rivals on a CUDA card: selecting it, synchronizing with it, and describing it in records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.machine import nvml
from tvmdash.machine.cuda import CudaCard, find_cuda_card
from tvmdash.machine.devices import CPU, FACT, find_device
from tvmdash.measure.under_load import watch_card


@dataclass(frozen=True)
class RivalDevice:
    """The device that a rival runs on; card: None for this machine's processor."""

    name: str
    index: int
    card: CudaCard | None

    @property
    def kind(self) -> str:
        """Return the device's kind in rivals' terms."""
        return "cuda" if self.card else CPU

    @property
    def place(self) -> str:
        """Return the device in torch's terms."""
        return f"{self.kind}:{self.index}" if self.card else CPU

    def watch(self, call: Callable[[], object], wait: Callable[[], object]) -> dict[str, Any]:
        """Return a record's facts about the card, watched while it repeats the call; none for the processor."""
        if self.card is None:
            return {}
        watched = nvml.find_card(self.card.pci_bus_id)
        known = {"driver": watched.driver_version()} if watched else {}
        facts = {FACT: {"name": self.name, "model": self.card.model, **known}}
        return {**facts, **(watch_card(watched, call, wait) if watched else {})}


def find_rival_device(name: str) -> RivalDevice:
    """Find the device of that name; DashboardError where it is a card that CUDA's driver does not show."""
    if name == CPU:
        return RivalDevice(CPU, 0, None)
    device = find_device(name)
    card = find_cuda_card(device.index)
    if card is None:
        raise DashboardError(
            f"device {name}: the CUDA driver reports no card with number {device.index}. Run `python3 -m dashboard "
            "check HOME` to find out why."
        )
    return RivalDevice(name, device.index, card)


def use_torch(device: RivalDevice) -> Callable[[], object]:
    """Make torch compute in float32 there, as TVM does, not in TF32; return a call that waits for the device."""
    import torch

    if device.card is None:
        return lambda: None
    if not torch.cuda.is_available():
        raise DashboardError(f"device {device.name}: torch {torch.__version__} detects no CUDA card.")
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    return lambda: torch.cuda.synchronize(device.index)


def open_onnx_session(model: bytes, options: Any, device: RivalDevice) -> Any:
    """Open an InferenceSession there; on a card all of it, in float32, or DashboardError."""
    import onnxruntime

    if device.card is None:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    # an empty directory means the installed nvidia packages, which the loader does not search by itself
    onnxruntime.preload_dlls(directory="")
    # else operators that the card lacks run on the processor, and the time is that of both
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    wanted = "CUDAExecutionProvider"
    given = {"device_id": device.index, "use_tf32": 0}
    try:
        session = onnxruntime.InferenceSession(model, options, providers=[(wanted, given)], enable_fallback=0)
    except Exception as error:  # what CUDA's libraries say, in exceptions of ONNX Runtime's own
        raise DashboardError(str(error).strip()[:1000], place=f"device {device.name}") from error
    # where a library of CUDA is missing, the session is one on the processor, without an error
    if session.get_providers()[0] != wanted:
        raise DashboardError(
            f"device {device.name}: ONNX Runtime {onnxruntime.__version__} has no {wanted}, only "
            f"{', '.join(session.get_providers())}."
        )
    return session
