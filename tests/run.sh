#!/usr/bin/env bash
# All tests: lint, types, shell, then pytest on a real TVM. See usage.
set -uo pipefail

usage() {
  cat <<'USAGE'
usage: tests/run.sh [--slow | --quick | --measure | --changed [REVISION]] [pytest arguments]

Makes its own virtual environment, fetches the TVM that the tests use, and runs ruff (rules and layout), mypy,
shellcheck and pytest. Every step runs whatever the earlier ones said, mypy beside pytest; the exit code is not 0 if
one failed. One pytest worker more than there are cores, as tests wait as well; `-n 0` for one process, as --pdb needs.

  --slow               also tests/slow and what is marked slow, and costly properties with more examples
  --quick              a minute: without the tests that cost much, which tests/costs.txt lists
  --changed            only what changes since REVISION (by default HEAD) can reach by imports, uncommitted ones included
  --measure            write tests/costs.txt anew
  TVMDASH_PYTHON       the Python to use
  PYTEST_DEBUG_TEMPROOT  where tests write; else in memory where there is enough, and nothing of it is kept
  TVMDASH_VENV_DIR     where virtual environments are kept; else .venv
  TVMDASH_TEST_CACHE   where the TVM for tests and what mypy knows are kept; else .test-cache
USAGE
}

REPO=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")
# shellcheck source=shared/bash/common.sh
. "$REPO/shared/bash/common.sh"
failed=() WRITTEN="" TYPES=""
MEMORY_KB=$((6 << 20))

step() { # NAME COMMAND...
  local name=$1 started=$SECONDS status=0
  shift
  "$@" || status=$?
  if [ "$status" = 0 ]; then
    say "$name: good, $((SECONDS - started)) s"
  else
    say "$name: FAILED with exit code $status, $((SECONDS - started)) s"
    failed+=("$name")
  fi
}

lint() { "$VENV_PYTHON" -m ruff check --quiet --output-format concise .; }

layout() { "$VENV_PYTHON" -m ruff format --check .; }

# Each job's folder is on the path of its scripts, so their modules have names of their own over all jobs. The cache goes
# by contents and paths within the repository, so it serves another clone: without it mypy takes 14 CPU seconds, not one.
types() {
  local folders modules
  folders=$(printf '%s:' experiments/*/ subsystem/*/)
  mapfile -d "" modules < <(find experiments subsystem -name '*.py' -not -path '*/setup/*' -print0)
  MYPYPATH="shared/python:$folders" "$VENV_PYTHON" -m mypy --cache-dir "$CACHE/mypy" --no-error-summary \
    dashboard shared/python/tvmdash shared/python/tvmtraces "${modules[@]}"
}

# Nights write and sync thousands of small files: in memory that takes a third of the time that a disk takes.
write_in_memory() {
  local free_kb
  [ -z "${PYTEST_DEBUG_TEMPROOT:-}" ] && [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] || return 0
  free_kb=$( (df --output=avail -k /dev/shm && awk '/^MemAvailable/ { print $2 }' /proc/meminfo) | sort -n | sed -n 2p)
  [ "$free_kb" -ge "$MEMORY_KB" ] && WRITTEN=$(mktemp -d /dev/shm/tvmdash-tests.XXXXXX) || return 0
  chmod 755 "$WRITTEN" # some tests go on as another user
  if cp /bin/true "$WRITTEN" && "$WRITTEN/true" 2>/dev/null; then # it may be mounted noexec
    export PYTEST_DEBUG_TEMPROOT=$WRITTEN
  fi
}

clean_up() {
  kill "$TYPES" 2>/dev/null
  rm -f -- "$TYPES_LOG"
  [ -z "$WRITTEN" ] || rm -rf -- "$WRITTEN"
}

begin_types() {
  types >"$TYPES_LOG" 2>&1 &
  TYPES=$!
}

end_types() {
  local status=0
  wait "$TYPES" || status=$?
  cat -- "$TYPES_LOG" >&2
  return "$status"
}

shell() {
  local scripts
  if ! command -v shellcheck >/dev/null; then
    say "shellcheck is not installed, so no shell script was checked (Debian, Ubuntu: apt install shellcheck)."
    return 0
  fi
  mapfile -d "" scripts < <(git ls-files -z --cached --others --exclude-standard -- '*.sh' .ci/run)
  shellcheck -x "${scripts[@]}"
}

rewrite() { "$VENV_PYTHON" -P tests/rewritten.py; }

artifact() { "$VENV_PYTHON" tests/artifact_for_tests.py "$TVMDASH_TEST_ARTIFACTS"; }

main() {
  local selection=(-m "not slow" --ignore tests/slow) revision="" reached
  case ${1:-} in
    -h | --help) usage && exit 0 ;;
    --slow) selection=() && export TVMDASH_THOROUGH=1 && shift ;;
    --quick | --measure) selection+=("$1") && shift ;;
    --changed)
      revision=HEAD && shift
      case ${1:--} in -*) ;; *) revision=$1 && shift ;; esac
      ;;
  esac
  cd -- "$REPO" || fail "$REPO cannot be entered."
  set_environment "$REPO"
  prepare_environment "$REPO" "$REPO/requirements.txt" "$REPO/tests/requirements.txt"
  export PATH="$VENV/bin:$PATH"
  CACHE=${TVMDASH_TEST_CACHE:-$REPO/.test-cache}
  export TVMDASH_TEST_ARTIFACTS="$CACHE/artifacts"
  unset TVMDASH_VENV_DIR TVMDASH_PYTHON TVMDASH_NOTE TVMDASH_NIGHT TVMDASH_JOB TVMDASH_SEED

  step ruff lint
  step "ruff format" layout
  step shellcheck shell
  step "TVM for tests" artifact
  step "tests compiled" rewrite
  if [ -n "$revision" ]; then
    reached=$("$VENV_PYTHON" tests/changed.py "$revision") || fail "$revision: git knows no such revision."
    mapfile -t reached <<<"$reached" && set -- "${reached[@]}" "$@"
  fi
  TYPES_LOG=$(mktemp)
  trap clean_up EXIT
  [ -n "${TVMDASH_THOROUGH:-}" ] || write_in_memory # tests/slow links TVM into its homes, and looks at file systems
  begin_types
  "$VENV_PYTHON" -m pytest -n "$(($(nproc) + 1))" --dist loadscope --no-loadscope-reorder "${selection[@]}" "$@" || failed+=(pytest)
  step mypy end_types
  [ ${#failed[@]} = 0 ] || { say "FAILED: ${failed[*]}" && exit 1; }
}

main "$@"
