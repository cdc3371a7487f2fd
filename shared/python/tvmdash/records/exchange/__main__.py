"""`python3 -m tvmdash.records.exchange export|import`."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from tvmdash.errors import DashboardError
from tvmdash.records.exchange.formats import FORMATS, find_format, read_records, write_records
from tvmdash.records.exchange.rows import IMPORTED, keep, records_in
from tvmdash.text import plain_output


def _export(options: argparse.Namespace) -> str:
    rows = itertools.chain.from_iterable(records_in(source) for source in options.sources)
    chosen = (row for row in rows if options.experiment in {None, row.experiment})
    first = next(chosen, None)
    if first is None:
        whose = f" of experiment {options.experiment}" if options.experiment else ""
        sources = ", ".join(map(str, options.sources))
        raise DashboardError(f"{sources}: no records{whose}. Give a home, a data folder or a data file with records.")
    count = write_records(options.to, itertools.chain([first], chosen), options.format or find_format(options.to))
    return f"{options.to}: {count} {'record' if count == 1 else 'records'}."


def _import(options: argparse.Namespace) -> str:
    rows = read_records(options.source, options.format or find_format(options.source), options.experiment or IMPORTED)
    kept = keep(rows, options.to)
    if not kept.written and not kept.there:
        raise DashboardError(
            f"{options.source}: contains no records. Give a file written by `export`, or a log in TVM's format."
        )
    return f"{options.to}: {len(kept.written)} data files written, {len(kept.there)} already existed."


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m tvmdash.records.exchange", description="Export and import workload records."
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    about = "; ".join(f"{name}: {style.about}" for name, style in FORMATS.items())
    help_text = f"file format (default: from the file extension, otherwise jsonl). {about}"
    out = verbs.add_parser("export", help="export the records of homes, data folders or data files to one file")
    out.add_argument("sources", nargs="+", type=Path, metavar="SOURCE")
    out.set_defaults(work=_export)
    into = verbs.add_parser("import", help="import a file of records into FOLDER/EXPERIMENT/data_<night>.json")
    into.add_argument("source", type=Path, metavar="SOURCE")
    into.set_defaults(work=_import)
    for verb, to, whose in (
        (out, "file to write; must not exist yet", "export only the records of this experiment"),
        (into, "folder to write to", "experiment of records that do not name one"),
    ):
        verb.add_argument("--to", required=True, type=Path, metavar="PLACE", help=to)
        verb.add_argument("--format", choices=list(FORMATS), help=help_text)
        verb.add_argument("--experiment", metavar="NAME", help=whose)
    return parser


@plain_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0, or 2 with a sentence on stderr."""
    options = _make_parser().parse_args(arguments)
    try:
        sys.stdout.write(options.work(options) + "\n")
    except DashboardError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
