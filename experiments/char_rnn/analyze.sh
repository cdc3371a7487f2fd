#!/usr/bin/env bash
set -euo pipefail
exec python3 char_rnn.py analyze "$@"
