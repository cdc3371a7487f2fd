"""`results`, `traces`, `records`: print measurements, query them in SQL, export and import them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from dashboard.cli.arguments import OK_CODE, Verbs, add_home_verb, add_passed_on_verb, make_absolute
from dashboard.plan.home_config import code_folders
from dashboard.plan.job import CodeFolders
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_FORMATS = ("console", "csv", "json", "markdown", "html")
"""The names in `traces.output`, which loads more than other verbs should wait for."""


def add_verbs(verbs: Verbs[argparse.ArgumentParser]) -> None:
    results = add_home_verb(
        verbs, "results", _results, "print all results of a night, or ask all nights in SQL", code=False
    )
    results.add_argument("night", nargs="?", metavar="NIGHT", help="stamp of the night (default: the newest)")
    results.add_argument(
        "--experiments-dir", type=make_absolute, metavar="DIR", help="folder that contains the experiments"
    )
    results.add_argument("--sql", metavar="SQL", help="print the rows of a query over all nights; see `--tables`")
    results.add_argument("--tables", action="store_true", help="list the tables that --sql can ask, and their columns")
    results.add_argument(
        "--format", choices=_FORMATS, default="console", help="format of the rows (default: %(default)s)"
    )
    results.add_argument(
        "--output", type=make_absolute, metavar="FILE", help="write the page to this file instead of stdout"
    )
    add_passed_on_verb(
        verbs, "traces", _traces, "query the measurements in SQL: query, summary, diff, seal, convert, ..."
    )
    add_passed_on_verb(verbs, "records", _records, "export and import records in the workload record format")


def _results(arguments: argparse.Namespace) -> int:
    text = _query(arguments) if arguments.sql is not None or arguments.tables else _night(arguments)
    if arguments.output:
        try:
            common.write_text(arguments.output, text)
        except OSError as error:
            raise DashboardError(
                f"--output {arguments.output}: {error.strerror}. Give a file in an existing folder."
            ) from error
        print(f"Written: {arguments.output}")
    else:
        print(text, end="")
    return OK_CODE


def _query(arguments: argparse.Namespace) -> str:
    from tvmdash import store
    from tvmtraces.output import FORMATS

    format_rows = FORMATS[arguments.format]
    with store.connect(arguments.home) as opened:
        if arguments.tables:
            columns = {name: ", ".join(opened.columns_of(name)) for name in store.TABLES}
            rows = [(name, about, columns[name]) for name, about in store.TABLES.items()]
            return format_rows(("table", "a row is", "columns"), rows)
        found = opened.execute(arguments.sql)
        return format_rows(found.names, found.fetchall())


def _night(arguments: argparse.Namespace) -> str:
    from dashboard.report import night_page, results

    home = Home(arguments.home)
    code = CodeFolders(experiment=arguments.experiments_dir, of_home=code_folders(home))
    return night_page.format_page(results.read(home, arguments.night, code))


def _traces(rest: Sequence[str]) -> int:
    from tvmdash.traces import __main__ as traces  # DuckDB and NumPy

    return traces.main(rest)


def _records(rest: Sequence[str]) -> int:
    from tvmdash.records.exchange import __main__ as records_exchange

    return records_exchange.main(rest)
