#!/usr/bin/env bash
# Started on a host by dashboard/hosts/bootstrap.sh: makes the environment from the pins, then becomes the worker.
#
#   worker.sh FOLDER NODE   the dashboard's folder here; the name that the machine is locked as, which may be empty
set -euo pipefail

exec 3>&1 1>&2 # what is printed from here on is for the log; the worker speaks over 3
REPO=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")")
# shellcheck source=shared/bash/common.sh
. "$REPO/shared/bash/common.sh"

set_environment "$REPO"
export TVMDASH_VENV_DIR=${TVMDASH_VENV_DIR:-$1/environments}
prepare_environment "$REPO" "$REPO/requirements.txt"
export PATH="$VENV/bin:$PATH"
[ -z "$2" ] || export TVMDASH_NODE=$2
exec "$VENV_PYTHON" -m dashboard work "$1"
