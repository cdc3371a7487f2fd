#!/usr/bin/env bash
# Arguments: the folder of config.json, the folder of all nights' data_<stamp>.json, the folder for summary.json.
set -euo pipefail
newest=$(printf '%s\n' "$2"/data_*.json | tail -n 1)
python3 - "$newest" >"$3/summary.json" <<'PYTHON'
import json
import sys

with open(sys.argv[1]) as file:
    value = json.load(file)["sorting_ms"]
print(json.dumps({"title": "example", "value": f"Sorting takes {value:.2f} ms."}))
PYTHON
echo '{"success": true, "message": "summary written"}' >"$3/status.json"
