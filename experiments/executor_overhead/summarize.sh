#!/usr/bin/env bash
set -euo pipefail
exec python3 executor_overhead.py summarize "$@"
