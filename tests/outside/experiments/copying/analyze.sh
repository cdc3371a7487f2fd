#!/usr/bin/env bash
set -euo pipefail
exec python3 copying.py analyze "$@"
