#!/usr/bin/env bash
set -euo pipefail
exec python3 compile_time.py setup "$@"
