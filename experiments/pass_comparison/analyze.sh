#!/usr/bin/env bash
set -euo pipefail
exec python3 pass_comparison.py analyze "$@"
