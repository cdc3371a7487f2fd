#!/usr/bin/env bash
# shellcheck source=/dev/null
. "$BENCHMARK_DEPS/bash/stage.sh"
