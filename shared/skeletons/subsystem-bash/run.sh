#!/usr/bin/env bash
# Arguments: the folder of config.json, the output folder (never cleaned), the home.
set -euo pipefail
nights=$(find "$3/results/nights" -name '*.json' | wc -l)
echo "{\"title\": \"example\", \"value\": \"Nights so far: $nights.\"}" >"$2/report.json"
echo '{"success": true, "message": "counted"}' >"$2/status.json"
