#!/usr/bin/env bash
set -euo pipefail
exec python3 real_models.py visualize "$@"
