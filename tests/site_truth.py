"""What happens in a made home: which points there are, and each night's numbers, failures, versions and machine."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvmdash import common

LAST = datetime.datetime(2026, 11, 21, 3, 15, tzinfo=datetime.UTC)
NETWORKS = ("mlp", "dqn", "squeezenet", "resnet18", "mobilenet", "bert", "lstm", "gpt2", "vgg16", "unet")
PIPELINES = ("default", "zero", "zero_fast_math")
ENGINES = ("tvm", "onnxruntime", "torch")
HOSTILE = '<img src=x onerror=alert(1)> "q" \u202e\u7de8\u8b6f\u5668 ../../etc'
METRICS_OF_A_RECORD = 4
HW_MODEL = "AMD EPYC 9654 x 2"


@dataclass(frozen=True)
class Spot:
    """One point that an experiment measures every night."""

    experiment: str
    workload: str
    engine: str
    build: dict[str, Any]
    level_ms: float
    sigma: float


@dataclass
class Truth:
    """A home of about `series` series over `nights` nights, the last of which is LAST; the same for the same seed."""

    series: int = 60
    nights: int = 120
    seed: int = 1
    last: datetime.datetime = LAST
    sizes: bool = True
    """Whether records have sizes; without, half as many series, all of them times."""
    spots: list[Spot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.spots = list(itertools.islice(_spots(self.rng), max(1, self.series // METRICS_OF_A_RECORD)))
        shape = (len(self.spots), self.nights)
        sigma = np.array([spot.sigma for spot in self.spots])[:, None]
        self.run = np.exp(sigma * self.rng.standard_normal(shape))
        self.compile = np.exp(0.01 * self.rng.standard_normal(shape))
        self.size = np.ones(shape)
        self.code = np.tile(np.arange(self.nights) // 9, (len(self.spots), 1))
        self._steps()
        self.machine_night = self.nights - max(2, self.nights // 3)
        self.failed_nights = {self.nights - 12, self.nights - 45}

    def _steps(self) -> None:
        """Two regressions and an improvement of late, and some long ago."""
        count = len(self.spots)
        for first, factor, rows in (
            (self.nights - 7, 1.12, range(min(2, count))),
            (self.nights - 9, 0.90, range(min(3, count), min(4, count))),
            (self.nights - 25, 1.06, range(min(5, count), min(7, count))),
            (self.nights - 60, 0.85, range(0, count, 4)),
        ):
            if first > 20:
                for row in rows:
                    self.run[row, first:] *= factor
                    self.code[row, first:] += 1000 + first
        if self.nights > 40 and count > 2:
            self.size[2, self.nights - 20 :] *= 1.2

    def stamp(self, night: int) -> str:
        return common.stamp_of(self.last - datetime.timedelta(days=self.nights - 1 - night))

    def stamps(self) -> list[str]:
        return [self.stamp(night) for night in range(self.nights)]

    def version(self, night: int) -> str:
        """A commit; a weekend has none of its own."""
        day = (self.last - datetime.timedelta(days=self.nights - 1 - night)).toordinal()
        return f"{(day - max(0, day % 7 - 4)) * 2654435761 % 2**40:010x}"

    def experiments(self) -> list[str]:
        return list(dict.fromkeys(spot.experiment for spot in self.spots))

    def failed(self, experiment: str, night: int) -> bool:
        return experiment == "cnn_engines" and night in self.failed_nights

    def data(self, experiment: str, night: int) -> dict[str, Any]:
        """The night's data file as a night writes it."""
        version = self.version(night)
        records = [
            self._record(row, night)
            for row, spot in enumerate(self.spots)
            if spot.experiment == experiment and not (row % 11 == 10 and night % 29 == 28)
        ]
        return {
            "schema_version": 1,
            "tvm_hash": version,
            "environment": {"machine": self._machine(night), "env_name": "sample", "engine": {"version": "0.27.0"}},
            "records": records,
            "failures": self._failures(experiment, night),
            "timestamp": self.stamp(night),
            "night": {
                "stamp": self.stamp(night),
                "experiment": experiment,
                "fingerprint": "f" * 64,
                "config": {"active": True, "networks": list(NETWORKS[:3])},
                "seed": 1000 + night,
                "repository": {"commit": "7de98901c0ffee", "dirty": False},
                "artifact": {"key": f"git-{version}", "provider": "git", "version": "0.27.dev0", "commit": version,
                             "remote": "https://example.org/tvm", "branch": "main", "facts": {"llvm_version": "19"}},
            },
        }  # fmt: skip

    def _failures(self, experiment: str, night: int) -> list[dict[str, Any]]:
        if experiment != "cnn_engines" or night % 10 != (self.nights - 1) % 10:
            return []
        return [{"workload": "network.yolo", "values": {"opt_level": 3}, "error": "ValueError: op <not> supported"}]

    def _machine(self, night: int) -> dict[str, Any]:
        later = night >= self.machine_night
        return {
            "host": "bench-1",
            "hw_model": HW_MODEL,
            "cpu_model": "AMD EPYC 9654",
            "cpu_microcode": "0xa101248" if later else "0xa101244",
            "cores": 2,
            "governor": "performance",
            "memory_bytes": 16 << 30,
            "system": "Linux 6.8.0" if later else "Linux 6.1.0",
            "distribution": "Debian GNU/Linux 12",
            "libc": "glibc-2.36",
            "python": "3.11.7",
        }

    def _record(self, row: int, night: int) -> dict[str, Any]:
        spot = self.spots[row]
        run = spot.level_ms * float(self.run[row, night])
        return {
            "timestamp": f"{self.last - datetime.timedelta(days=self.nights - 1 - night):%Y-%m-%dT04:%M:%S+00:00}",
            "schema_version": 1,
            "additional_info": {
                "docker_tag": None,
                "docker_hash": None,
                "execution_elapsed_ms_median": run,
                "execution_elapsed_ms_min": run * 0.99,
                "execution_elapsed_ms_low": run * (1 - spot.sigma / 2),
                "execution_elapsed_ms_high": run * (1 + spot.sigma / 2),
                "samples": 10,
                "compile_time": 300 * spot.level_ms**0.3 * float(self.compile[row, night]),
                "code_size": round(35_000 * spot.level_ms**0.5 * float(self.size[row, night])) if self.sizes else None,
                "device_memory_usage": round(2_000_000 * spot.level_ms**0.5) if self.sizes else None,
                "module_hash": f"{row:04x}{self.code[row, night]:08x}",
                "doubts": ["may be unstable: standard deviation is 12 % of the mean"] if row % 13 == 12 else [],
            },
            "workload": spot.workload,
            "workload_args": {"batch": 1},
            "engine": spot.engine,
            "engine_version": "0.27.dev0" if spot.engine == "tvm" else "1.20",
            "engine_config": {},
            "target": '{"kind": "llvm", "mcpu": "znver4"}',
            "build_config": spot.build,
            "env_name": "sample",
            "hw_model": HW_MODEL,
            "runtime_config": {"threads": 1},
            "execution_config": {"number": 89, "repeat": 10, "min_repeat_ms": 20},
            "execution_elapsed_ms_mean": run * 1.001,
            "execution_elapsed_ms_std": run * spot.sigma / 2,
        }


def _spots(rng: np.random.Generator) -> Iterator[Spot]:
    """Points without end: three experiments, one of them on several engines, one with a name that does harm."""
    yield Spot("relax_opt", "network.tiny", "tvm", {"variant": "zero", "opt_level": 3}, 0.21, 0.004)
    yield Spot("relax_opt", "network.tiny", "tvm", {"variant": "zero", "opt_level": 0}, 0.55, 0.006)
    yield Spot("relax_opt", f"network.{HOSTILE.replace(' ', '_')}", "tvm", {"variant": HOSTILE, "opt_level": 3}, 3.3,
               0.006)  # fmt: skip
    for number in itertools.count():
        network = NETWORKS[number % len(NETWORKS)] + (f"_{number // 10}" if number >= 10 else "")
        level = float(np.exp(rng.uniform(-1, 4)))
        for pipeline in PIPELINES:
            sigma = float(rng.choice([0.003, 0.008, 0.02, 0.04]))
            yield Spot("relax_opt", f"network.{network}", "tvm", {"variant": pipeline, "opt_level": 3}, level, sigma)
        for engine in ENGINES:
            build = {"opt_level": 3} if engine == "tvm" else {}
            yield Spot("cnn_engines", f"network.{network}", engine, build, level * rng.uniform(0.7, 1.6), 0.006)
        for passes in ("unchanged", "-FoldConstant"):
            yield Spot("pass_comparison", f"network.{network}", "tvm", {"passes": passes}, level, 0.005)
