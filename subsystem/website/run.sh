#!/usr/bin/env bash
set -euo pipefail
export OPENBLAS_NUM_THREADS=1 # numpy's threads would forbid the forks that share the work
exec python3 website.py "$@"
