#!/usr/bin/env bash
set -euo pipefail
exec python3 remote_device.py summarize "$@"
