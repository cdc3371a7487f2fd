#!/usr/bin/env bash
# One night of benchmarks on the home HOME. See usage below and docs/how-to/nightly.md.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # started as `sh run_dashboard.sh`
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: run_dashboard.sh HOME [options]
       run_dashboard.sh --quick HOME
       run_dashboard.sh --command VERB [arguments]
       run_dashboard.sh --version

Runs one night on the dashboard home HOME (a folder with config/config.json), such as sample-dashboard-home.
The first start makes a virtual environment in .venv beside this script. With --quick it first makes HOME, a new small
home, and the first page is there within minutes. `run_dashboard.sh HOME --help` lists the options, all of
`python -m dashboard run`. With --command it runs `python -m dashboard VERB` in that environment, such as
`run_dashboard.sh --command tries HOME work`.

Environment:
  TVMDASH_PYTHON     the Python to use; else the first python3, python3.14, ..., python3.11 from 3.11 to 3.14
  TVMDASH_VENV_DIR   where virtual environments are kept; else .venv beside this script
  PIP_*              pip's own settings, for the first start

Exit code: 0 all well, 1 some job or backup failed, 2 usage, configuration or a missing prerequisite, 3 a bug of the
dashboard, 75 another night holds the home, 130 interrupted. With --fail-on: 5 TVM got worse, 4 it was not judged.
USAGE
}

COMMAND=(run "$@")
REPO=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")

case ${1:-} in
  -h | --help)
    usage
    exit 0
    ;;
  --version)
    sed -n 's/^__version__ = "\(.*\)"$/tvm-dashboard \1/p' "$REPO/shared/python/tvmdash/__init__.py"
    exit 0
    ;;
  --command) COMMAND=("${@:2}") ;;
  "")
    usage >&2
    exit 2
    ;;
esac

# shellcheck source=shared/bash/common.sh
. "$REPO/shared/bash/common.sh"

set_environment "$REPO"
prepare_environment "$REPO" "$REPO/requirements.txt"
export PATH="$VENV/bin:$PATH"
exec "$VENV_PYTHON" -m dashboard "${COMMAND[@]}"
