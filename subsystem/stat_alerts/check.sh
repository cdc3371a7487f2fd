#!/usr/bin/env bash
set -euo pipefail
exec python3 stat_alerts.py check "$@"
