#!/usr/bin/env bash
# Arguments: the folder of config.json, the folder for what was measured. One line of nanoseconds for each sample.
set -euo pipefail
for _ in {1..11}; do
  begun=$(date +%s%N)
  seq 20000 | sort -n | tail -n 1 >/dev/null # what is measured
  ended=$(date +%s%N)
  echo $((ended - begun)) >>"$2/samples.txt"
done
echo '{"success": true, "message": "11 samples"}' >"$2/status.json"
