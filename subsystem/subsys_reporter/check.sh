#!/usr/bin/env bash
set -euo pipefail
exec python3 subsys_reporter.py check "$@"
