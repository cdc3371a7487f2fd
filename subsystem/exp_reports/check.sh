#!/usr/bin/env bash
set -euo pipefail
exec python3 exp_reports.py check "$@"
