#!/usr/bin/env bash
# The Python of the tests' environment, which is made where it is not there: tests/python.sh -m pytest tests/test_docs.py
set -euo pipefail

REPO=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")
# shellcheck source=shared/bash/common.sh
. "$REPO/shared/bash/common.sh"

set_environment "$REPO"
prepare_environment "$REPO" "$REPO/requirements.txt" "$REPO/tests/requirements.txt"
export PATH="$VENV/bin:$PATH"
export TVMDASH_TEST_ARTIFACTS="${TVMDASH_TEST_CACHE:-$REPO/.test-cache}/artifacts"
exec "$VENV_PYTHON" "$@"
