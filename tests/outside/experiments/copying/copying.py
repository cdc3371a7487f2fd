"""Copying memory, written without the template: every stage reads its arguments itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tvmdash import analysis_util, common, config_util, dashboard_info, plot_util, summary_util, trial_util
from tvmdash.common import DashboardError

HERE = Path(__file__).parent
FIELDS = {**config_util.EXPERIMENT_FIELDS, **config_util.read_fields(HERE / config_util.FIELDS_FILE)}


def read_config(folder: Path) -> dict[str, Any]:
    return config_util.read_config(folder / config_util.CONFIG_FILE, FIELDS)


def run(config_dir: Path, raw: Path) -> str:
    config = read_config(config_dir)
    timing = trial_util.Timing(repeat=5, min_repeat_ms=0.5, warmup=1, max_seconds=config["seconds"])
    taken = {}
    for size in config["kilobytes"]:
        source = bytearray(size << 10)
        timer = trial_util.python_timer(lambda source=source: bytes(source))
        samples = trial_util.time_workload(timer, timing)
        number = trial_util.calibrate(timer, timing.min_repeat_ms)
        samples.append(trial_util.take_sample(timer, number))
        waiting = trial_util.waiting_timer(lambda: None, lambda: None)
        assert len(waiting(1, 2)) == 2
        assert all(isinstance(sample, trial_util.Sample) for sample in samples)
        assert len(samples) > trial_util.MIN_SAMPLES
        taken[f"{size} KiB"] = [sample.ms for sample in samples]
    common.write_json(raw / "samples.json", {"measured": common.stamp_of(common.utc_now()), "samples": taken})
    return f"{len(taken)} sizes"


def analyze(config_dir: Path, raw: Path, analysis: Path) -> str:
    value = common.read_json(raw / "samples.json")
    assert common.is_stamp(value["measured"])
    reduced = {name: analysis_util.reduce_processes([samples]) for name, samples in value["samples"].items()}
    said = {name: analysis_util.describe_statistics(one) for name, one in reduced.items()}
    assert all(one["execution_elapsed_ms_median"] > 0 for one in said.values())
    sizes = {name: {"median": one.median, "samples": one.count} for name, one in reduced.items()}
    common.write_json(analysis / "data.json", sizes)
    return f"{len(sizes)} sizes"


def visualize(config_dir: Path, data: Path, destination: Path) -> str:
    home = dashboard_info.Home.of_data_dir(data)
    if home is None:
        raise DashboardError(f"{data} lies in no home.")
    lines = []
    for stamp in home.data_stamps("copying"):
        value = common.read_json(home.data_file("copying", stamp))
        lines.append((stamp, value["4 KiB"]["median"]))
    line = plot_util.Line("4 KiB", tuple(stamp for stamp, _ in lines), tuple(number for _, number in lines))
    plot_util.draw(plot_util.Longitudinal("Copying", "ms", (line,)), destination / "copying.svg")
    panel = plot_util.Panel("MHz", (plot_util.Track("a", (1.0, 2.0)),))
    course = plot_util.Course("A run", (0.0, 1.0), (panel,), (plot_util.Span(0.0, 0.5, "warm-up"),))
    common.write_bytes(destination / "course.png", plot_util.render(course, "png"))
    return "2 graphs"


def summarize(config_dir: Path, data: Path, destination: Path) -> str:
    value = common.read_json(max(data.glob("data_*.json")))
    points = [summary_util.Measured(name, value[name]["median"], None, "ms") for name in value if name.endswith("KiB")]
    failures = [summary_util.Failure("1 GiB", "was not tried")]
    summary = summary_util.default_summary("Copying", points, failures, threshold_percent=5)
    common.write_json(destination / "summary.json", summary.to_json())
    return "summary written"


def main() -> int:
    stage, *rest = sys.argv[1:]
    folders = [Path(argument) for argument in rest]
    status = {"success": True, "message": ""}
    try:
        status["message"] = {"run": run, "analyze": analyze, "visualize": visualize, "summarize": summarize}[stage](
            *folders
        )
    except DashboardError as error:
        status = {"success": False, "message": str(error)}
    common.write_json(folders[-1] / "status.json", status)
    return 0 if status["success"] else 1


if __name__ == "__main__":
    sys.exit(main())
