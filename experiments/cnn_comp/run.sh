#!/usr/bin/env bash
set -euo pipefail
exec python3 cnn_comp.py run "$@"
