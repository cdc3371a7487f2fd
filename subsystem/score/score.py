"""The score subsystem: overall scores over experiments, as its config defines them, tonight and over all nights.

`score.py rebuild CONFIG OUTPUT HOME` computes every point of the history again from the data files.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import definitions
import history
import telling
from intervals import Resampling

from tvmdash import common, plot_files
from tvmdash.check_prerequisites import Need, needs_any, needs_experiment
from tvmdash.dashboard_info import Home, Night, experiment_of
from tvmdash.subsys_templates import Report, Subsystem

REBUILD = "rebuild"


class Score(Subsystem):
    """Scores tonight; blocked where not one of the experiments that it reads has data."""

    def needs(self, config: Mapping[str, Any]) -> Sequence[Need]:
        good, _ = definitions.parse_all(config["scores"])
        names = dict.fromkeys(name for definition in good for name in definition.experiments)
        return (needs_any(*map(needs_experiment, names)),) if names else ()

    def faults(self, config: Mapping[str, Any], shown: str, home: Home) -> Sequence[str]:
        good, faults = definitions.parse_all(config["scores"], shown)
        known = sorted(path.parent.name for path in home.configs("experiment").glob("*/config.json"))
        for definition in good:
            for name in definition.experiments:
                if experiment_of(name) not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    remedy = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(known) or 'none'}."
                    faults.append(
                        f"{shown}: score {definition.title!r}: this home has no experiment {name!r}. {remedy}"
                    )
        return faults

    def work(self, config: Mapping[str, Any], output: Path, home: Home, tonight: Night) -> Report:
        good, faults = definitions.parse_all(config["scores"])
        resampling = Resampling(config["bootstrap"], config["seed"])
        scored = history.bring_up_to_date(good, home, output, tonight.stamp, resampling)
        plot_files.draw_changed(telling.plots(scored), output / "graphs")
        common.write_json(output / "page.json", telling.page(tonight.stamp, scored, faults))
        return telling.report(scored, faults)


def main(arguments: Sequence[str]) -> int:
    """The run stage, or with `rebuild` first the same on an empty history."""
    if list(arguments[:1]) == [REBUILD] and len(arguments) == 4:
        (Path(arguments[2]) / history.SCORES_FILE).unlink(missing_ok=True)
        return Score().main(arguments[1:])
    return Score().main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
