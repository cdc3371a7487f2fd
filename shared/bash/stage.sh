#!/usr/bin/env bash
# One stage of an experiment in Python: `NAME.py STAGE ARGUMENTS...`, where STAGE is what this script is called by.
# An experiment's run.sh, analyze.sh, visualize.sh, summarize.sh (and setup.sh) are links to this file, or, outside the
# repository, say:  . "$BENCHMARK_DEPS/bash/stage.sh"
set -euo pipefail
stage=${0##*/}
name=${TVMDASH_JOB:-${PWD##*/}}
script=${name%%[@~]*}.py # cnn~desk@release is the experiment cnn, on the host desk, on another TVM
if [ ! -f "$script" ]; then
  echo "$0: $script not found in $PWD. Give the experiment's Python file the name of its folder." >&2
  exit 2
fi
exec python3 "$script" "${stage%.sh}" "$@"
