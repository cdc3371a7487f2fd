#!/usr/bin/env bash
set -euo pipefail
exec python3 rnn_comp.py analyze "$@"
