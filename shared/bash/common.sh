# shellcheck shell=bash
# Sourced by run_dashboard.sh and tests/run.sh: a Python, and a virtual environment of exact pins.
#
#   prepare_environment REPO REQUIREMENTS...   sets VENV (folder) and VENV_PYTHON, or ends with exit code 2
#
# Environments lie side by side in TVMDASH_VENV_DIR, or where choose_root says, each named by Python, machine and the
# hash of its requirements files. KEY/ is complete when KEY/.complete is there, KEY.log is the log of its set-up, and
# KEY.lock is locked: exclusively while somebody sets it up or removes it, shared by whoever runs in it, through an open
# file that `exec` passes on. The date of KEY.lock is the last use.
#
# Beside each FILE.txt of pins is FILE-hashes.txt, the same pins with the hashes of their packages, from which pip installs;
# with TVMDASH_REQUIRE_HASHES=0 from the pins.

OLDEST_PYTHON=311 NEWEST_PYTHON=314 # what requirements.txt has pins for: 100 * major + minor
UNUSED_DAYS=30
NIGHT_HOME="" # of a night that is to begin: see note_refusal

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

fail() {
  say "$*"
  note_refusal "$*"
  exit 2
}

# Where a night in NIGHT_HOME cannot begin: a note for `watch` and `status` (dashboard/schedule/refusal.py) of what
# nobody reads at a terminal.
note_refusal() { # REASON
  [ -n "$NIGHT_HOME" ] && [ ! -t 2 ] || return 0
  { mkdir -p -- "$NIGHT_HOME/results" &&
    printf '%s\n%s\n' "$(date -u +%Y%m%dT%H%M%SZ)" "$1" >"$NIGHT_HOME/results/refused_start.txt"; } 2>/dev/null || return 0
}

# The locale, encoding and Python settings that cron and a terminal shall have alike.
set_environment() { # REPO
  [[ $1 != *:* ]] || fail "$1: Python cannot import from a path that contains a colon. Move the checkout."
  umask 022
  unset PYTHONHOME PYTHONSTARTUP PYTHONOPTIMIZE PYTHONDONTWRITEBYTECODE
  export LANG=C.UTF-8 LC_ALL=C.UTF-8 PYTHONUTF8=1 PYTHONNOUSERSITE=1 PYTHONSAFEPATH=1
  export PYTHONPATH="$1:$1/shared/python"
}

prepare_environment() { # REPO REQUIREMENTS...
  local root key
  root=${TVMDASH_VENV_DIR:-$(choose_root "$1")}
  shift
  [[ $root == /* ]] || root=$PWD/$root
  find_python
  key="$PYTHON_TAG-$(cat -- "$@" | sha256sum | cut -c1-12)" || fail "cannot read the requirements: $*."
  VENV=$root/$key VENV_PYTHON=$root/$key/bin/python
  is_complete || check_writable "$root"
  lock_environment -s
  if ! is_complete; then
    lock_environment -x
    is_complete || set_up_environment "$@"
    flock -s "$LOCK"
  fi
  if [ -w "$VENV.lock" ] && [ -w "$root" ]; then
    touch -c -- "$VENV.lock"
    remove_unused "$root" || say "could not remove unused environments from $root."
  fi
}

# Where environments lie unless somebody says: the checkout that dashboard_job.sh made shares those of its nights.
choose_root() { # REPO
  if [ "${1##*/}" = source ] && [ -e "${1%/*}/.dashboard_job" ]; then
    printf '%s\n' "${1%/*}/venv"
  else
    printf '%s\n' "$1/.venv"
  fi
}

check_writable() { # ROOT
  local error
  error=$({ mkdir -p -- "$1" && : >>"$VENV.lock"; } 2>&1) ||
    fail "could not create the virtual environment in $1: ${error##*: }." \
      "Set TVMDASH_VENV_DIR to a writable folder with 1 GB free."
}

is_complete() { [ -e "$VENV/.complete" ] && [ -x "$VENV_PYTHON" ]; }

# Take the lock of VENV, waiting for it; it is given back when this process, or what it becomes by exec, ends.
lock_environment() { # -s|-x
  command -v flock >/dev/null || fail "flock is missing. Install it (Debian, Ubuntu: apt install util-linux)."
  while :; do
    [ -z "${LOCK:-}" ] || exec {LOCK}<&-
    if [ -w "$VENV.lock" ]; then exec {LOCK}<>"$VENV.lock"; else exec {LOCK}<"$VENV.lock"; fi
    if ! flock -n "$1" "$LOCK"; then
      say "waiting for another process that is setting up $VENV."
      flock "$1" "$LOCK"
    fi
    [ "$VENV.lock" -ef "/proc/self/fd/$LOCK" ] && return # else it was removed meanwhile: lock its successor
  done
}

# --- Python --------------------------------------------------------------------------------------------------------

PROBE='
import os, sys
del sys.path[0]
try:
    import ensurepip, venv
    complete = "complete"
except ImportError:
    complete = "incomplete"
version = "%d.%d.%d" % sys.version_info[:3]
tag = "-".join([version + getattr(sys, "abiflags", ""), os.uname()[4]])
print(" ".join(["%d%02d" % sys.version_info[:2], version, tag, complete, sys.executable]))
'

# Sets PYTHON, PYTHON_VERSION, PYTHON_TAG, PYTHON_STATE: the first that fits, one that can make environments before all.
find_python() {
  local candidate number version tag state path seen="" newest=$NEWEST_PYTHON
  [ -z "${TVMDASH_PYTHON:-}" ] || newest=999 # who names one knows why
  PYTHON=""
  while IFS= read -r candidate; do
    read -r number version tag state path < <("$candidate" -E -s -c "$PROBE" 2>/dev/null) || continue
    [[ $seen == *" $path ("* ]] || seen+=", $path ($version)"
    ((number >= OLDEST_PYTHON && number <= newest)) || continue
    [ -z "$PYTHON" ] || [ "$state" = complete ] || continue
    PYTHON=$path PYTHON_VERSION=$version PYTHON_TAG=$tag PYTHON_STATE=$state
    [ "$state" != complete ] || return 0
  done < <(python_candidates)
  [ -z "$PYTHON" ] || return 0
  [ -z "$seen" ] || fail "Python ${OLDEST_PYTHON/3/3.} to ${NEWEST_PYTHON/3/3.} is required, but only ${seen:2} was found." \
    "Install a supported version, and set TVMDASH_PYTHON to it if it is not on the PATH."
  fail "${TVMDASH_PYTHON:-python3} was not found or does not run. Install Python ${OLDEST_PYTHON/3/3.} or newer" \
    "(Debian, Ubuntu: apt install python3 python3-venv), and set TVMDASH_PYTHON to it if it is not on the PATH."
}

python_candidates() {
  local name path=$PATH:/usr/local/bin:/usr/bin
  if [ -n "${TVMDASH_PYTHON:-}" ]; then
    echo "$TVMDASH_PYTHON"
    return
  fi
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    PATH=$path type -aP "$name" || true # none of this name
  done
}

# --- set-up --------------------------------------------------------------------------------------------------------

set_up_environment() { # REQUIREMENTS...
  local log=$VENV.log file arguments=() status=0 started=$SECONDS
  case ${TVMDASH_REQUIRE_HASHES:-1} in
    0) for file in "$@"; do arguments+=(-r "$file"); done ;;
    1) for file in "$@"; do check_hashes "$file" && arguments+=(--require-hashes -r "${file%.txt}-hashes.txt"); done ;;
    *) fail "TVMDASH_REQUIRE_HASHES: ${TVMDASH_REQUIRE_HASHES@Q} is neither 0 nor 1." ;;
  esac
  [ "$PYTHON_STATE" = complete ] ||
    fail "$PYTHON ($PYTHON_VERSION) lacks the modules ensurepip and venv, which are needed to create virtual environments." \
      "Install them (Debian, Ubuntu: apt install python${PYTHON_VERSION%.*}-venv), or set TVMDASH_PYTHON to another Python."
  [ ! -d "$VENV" ] || say "an earlier set-up of $VENV did not finish; starting over."
  say "setting up the Python packages in $VENV (once; a minute or so)."
  trap 'stop_progress; exit 130' INT # pip answers an interrupt with an exit status of its own
  start_progress "$log"
  install_packages "$log" "${arguments[@]}" || status=$?
  stop_progress
  trap - INT
  [ "$status" = 0 ] || explain_failure "$log" "$status"
  say "the Python packages are ready after $((SECONDS - started)) s."
}

# That the hashes are those of the pins: who edits one and not the other would get the other.
check_hashes() { # REQUIREMENTS
  local hashes=${1%.txt}-hashes.txt differ remedy="Run tests/make_hashes.sh, or go without with TVMDASH_REQUIRE_HASHES=0."
  [ -f "$hashes" ] || fail "$hashes is missing. $remedy"
  differ=$(comm -3 <(list_pins "$1") <(list_pins "$hashes") | tr -s '\t\n' ' ')
  [ -z "$differ" ] || fail "$1 and $hashes differ:$differ. $remedy"
}

list_pins() { # FILE
  sed -nE 's/^([A-Za-z0-9._-]+==[^ ;\\]+).*/ \1/p' -- "$1" | tr 'A-Z_' 'a-z-' | LC_ALL=C sort
}

install_packages() { # LOG PIP_ARGUMENTS...
  local log=$1
  shift
  rm -f -- "$VENV/.complete" && rm -rf -- "$VENV" && : >"$log" || return
  {
    "$PYTHON" -I -m venv "$VENV" &&
      env -u PIP_TARGET -u PIP_PREFIX PIP_USER=0 "$VENV_PYTHON" -I -m pip install --no-input \
        --disable-pip-version-check --no-deps --only-binary :all: "$@" &&
      "$VENV_PYTHON" -I -m pip check --disable-pip-version-check &&
      sync -f "$VENV" && : >"$VENV/.complete"
  } >>"$log" 2>&1 </dev/null
}

# One line on the terminal, if there is one, that follows the log.
start_progress() { # LOG
  PROGRESS=""
  [ -t 2 ] || return 0
  (
    exec {LOCK}<&-
    while sleep 0.5 && kill -0 $$ 2>/dev/null; do
      printf '\r\e[K  %.70s' "$(tail -n 1 -- "$1" | tr -cd '[:print:]')" >&2
    done
  ) &
  PROGRESS=$!
}

stop_progress() {
  [ -n "$PROGRESS" ] || return 0
  kill "$PROGRESS"
  wait "$PROGRESS" || true # it ends by this signal
  printf '\r\e[K' >&2
}

explain_failure() { # LOG STATUS
  local tail free_kb changed
  tail=$(tail -n 12 -- "$1")
  free_kb=$(df -Pk -- "${1%/*}" | awk 'NR == 2 { print $4 }') # ensurepip does not say why it fails
  printf '%s\n' "$tail" | sed 's/^/    /' >&2
  if [[ $tail == *"No space left on device"* || $tail == *"Disk quota exceeded"* || $free_kb -lt 4096 ]]; then
    fail "the disk with $VENV is full (log: $1). Free 1 GB on it, or set TVMDASH_VENV_DIR to a folder on another disk."
  fi
  changed=$(awk '/DO NOT MATCH THE HASHES/ { getline; print $1; exit }' "$1")
  [ -z "$changed" ] ||
    fail "$changed: the package index served a file whose hash is not in the list, so nothing was installed (log: $1)." \
      "If the download was cut short or pip's cache is damaged, try again with PIP_NO_CACHE_DIR=1. If your index builds" \
      "its own wheels, TVMDASH_REQUIRE_HASHES=0 installs without hashes. Otherwise the file may have been tampered with."
  fail "could not install the Python packages: the last step exited with status $2 (log: $1)." \
    "Check the network, the proxy and the package index (PIP_INDEX_URL, pip.conf), then try again."
}

# Remove environments that nobody used for UNUSED_DAYS and nobody holds.
remove_unused() { # ROOT
  local lock place holder
  find "$1" -ignore_readdir_race -maxdepth 1 -name '3.*-*-????????????.lock' -mtime "+$UNUSED_DAYS" | while IFS= read -r lock; do
    place=${lock%.lock}
    exec {holder}<>"$lock"
    if [ "$place" != "$VENV" ] && flock -n -x "$holder"; then
      rm -f -- "$place/.complete"
      rm -rf -- "$place" "$place.log"
      rm -f -- "$lock"
      say "removed $place, which was unused for $UNUSED_DAYS days."
    fi
    exec {holder}<&-
  done
}
