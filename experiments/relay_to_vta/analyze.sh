#!/usr/bin/env bash
set -euo pipefail
exec python3 relay_to_vta.py analyze "$@"
