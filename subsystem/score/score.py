"""The score subsystem: overall scores over experiments, as its config defines them, tonight and over all nights.

`score.py rebuild CONFIG OUTPUT HOME` computes every point of the history again from the data files.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import definitions
import history
import score_report
from definitions import Definition

from tvmdash.check_prerequisites import is_switched_off, needs_any, needs_experiment, unmet
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import Home, Night, experiment_of, pages
from tvmdash.dashboard_info.pages import PAGE_FILE, SCORES_FILE, LeftOut
from tvmdash.dashboard_info.stages import Blocked
from tvmdash.incidents.annotations import list_retired_experiments
from tvmdash.plot_util import files as plot_files
from tvmdash.subsys_templates import Report, Subsystem

REBUILD = "rebuild"


@dataclass(frozen=True, kw_only=True)
class ScoreConfig(JobConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    scores: tuple[Any, ...]
    bootstrap: int
    seed: int


class Score(Subsystem[ScoreConfig]):
    """Scores tonight, without those of experiments that are switched off; blocked where no other one has data."""

    def faults(self, config: ScoreConfig, shown: str, home: Home) -> Sequence[str]:
        good, faults = definitions.parse_all(config.scores, shown)
        known = sorted(path.parent.name for path in home.configs("experiment").glob("*/config.json"))
        for definition in good:
            for name in definition.experiments:
                if experiment_of(name) not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    remedy = (
                        (f"Did you mean {near[0]!r}?")
                        if near
                        else f"Experiments of this home: {', '.join(known) or 'none'}."
                    )
                    faults.append(
                        f"{shown}: score {definition.title!r}: this home has no experiment {name!r}. {remedy}"
                    )
        return faults

    def work(self, config: ScoreConfig, output: Path, home: Home, tonight: Night) -> Report:
        good, faults = definitions.parse_all(config.scores)
        retired = list_retired_experiments(home.root, tonight.stamp)
        off = {item.id: _list_off(item, home, retired) for item in good}
        used = [item for item in good if not off[item.id]]
        left_out = [LeftOut(item.id, item.title, off[item.id]) for item in good if off[item.id]]
        _refuse_without_data(used, home, tonight)
        scored = history.bring_up_to_date(used, home, output, tonight.stamp)
        plot_files.draw_changed(score_report.plots(scored), output / "graphs")
        pages.write(output / PAGE_FILE, score_report.page(tonight.stamp, scored, left_out, faults))
        return score_report.report(scored, left_out, faults)


def _list_off(definition: Definition, home: Home, retired: AbstractSet[str]) -> tuple[str, ...]:
    """List those of its experiments that this home has and does not run."""
    names = definition.experiments
    return tuple(name for name in names if name in retired or is_switched_off(home, "experiment", name))


def _refuse_without_data(used: Sequence[Definition], home: Home, tonight: Night) -> None:
    """Raise Blocked, with the reasons, where not one of the experiments has data tonight."""
    names = dict.fromkeys(name for definition in used for name in definition.experiments)
    missing = unmet([needs_any(*map(needs_experiment, names))], home, tonight) if names else ()
    if missing:
        raise Blocked(" ".join(missing))


def main(arguments: Sequence[str]) -> int:
    """Run the stage; with `rebuild` on an empty history."""
    if list(arguments[:1]) == [REBUILD] and len(arguments) == 4:
        (Path(arguments[2]) / SCORES_FILE).unlink(missing_ok=True)
        return Score().main(arguments[1:])
    return Score().main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
