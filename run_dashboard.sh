#!/usr/bin/env bash
# One night of benchmarks on the home HOME. See usage below and docs/how-to/nightly.md.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # started as `sh run_dashboard.sh`
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: run_dashboard.sh HOME [options]
       run_dashboard.sh --quick HOME
       run_dashboard.sh --demo DIR
       run_dashboard.sh --command VERB [arguments]
       run_dashboard.sh --version

Runs one night on the dashboard home HOME (a folder with config/config.json), e.g. sample-dashboard-home.
The first start creates a virtual environment in .venv next to this script. --quick first creates HOME as a small new
home; its first page is ready within minutes. `run_dashboard.sh HOME --help` lists the options, which are those of
`python -m dashboard run`. --command runs `python -m dashboard VERB` in that environment instead, e.g.
`run_dashboard.sh --command tries HOME work`. --demo makes a home of made-up nights in DIR, with its website.

Environment:
  TVMDASH_PYTHON     Python to use (default: the first of python3, python3.14, ..., python3.11 that is 3.11 to 3.14)
  TVMDASH_VENV_DIR   folder for virtual environments (default: .venv next to this script; in the checkout of
                     dashboard_job.sh the venv of its FOLDER)
  TVMDASH_REQUIRE_HASHES=0 to install packages whose hashes are not in requirements-hashes.txt
  PIP_*              pip settings for the first start

Exit codes: 0 success, 1 a job or backup failed, 2 usage or config error or a missing prerequisite, 3 a bug in the
dashboard, 75 another night is using the home, 130 interrupted. With --fail-on: 5 TVM got worse, 4 it was not judged.
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

[ "${COMMAND[0]:-}" != run ] || for word in "$@"; do
  [ ! -d "$word/config" ] || NIGHT_HOME=$word
done
set_environment "$REPO"
prepare_environment "$REPO" "$REPO/requirements.txt"
export PATH="$VENV/bin:$PATH"
[ "${1:-}" != --demo ] || exec "$VENV_PYTHON" "$REPO/docs/demo/make.py" "${@:2}"
exec "$VENV_PYTHON" -m dashboard "${COMMAND[@]}"
