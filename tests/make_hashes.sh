#!/usr/bin/env bash
# Writes the hashes of all pins beside them, as the public package index has them: requirements.txt ->
# requirements-hashes.txt, and so on. Needs the network, and uv, or pipx to fetch it. A test compares pins and hashes.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
uv=(uv)
command -v uv >/dev/null || uv=(pipx run uv==0.13.9)
for file in requirements.txt requirements-s3.txt tests/requirements.txt; do
  env -u UV_DEFAULT_INDEX -u UV_INDEX -u UV_INDEX_URL UV_CUSTOM_COMPILE_COMMAND=tests/make_hashes.sh \
    "${uv[@]}" pip compile --quiet --no-config --universal --python-version 3.11 --no-deps --no-annotate \
    --generate-hashes --upgrade --output-file "${file%.txt}-hashes.txt" "$file"
done
