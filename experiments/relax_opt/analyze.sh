#!/usr/bin/env bash
set -euo pipefail
exec python3 relax_opt.py analyze "$@"
