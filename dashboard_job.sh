#!/usr/bin/env bash
# What cron calls: brings a checkout of its own to the newest commit, then runs a night from it. See usage.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: dashboard_job.sh [--settings FILE | KEY=value]... [-- OPTIONS of run_dashboard.sh]

  REMOTE=URL           the repository of the dashboard (required)
  FOLDER=/path         a folder for this job alone, created on the first run: checkout, environments, logs (required)
  DASHBOARD_HOME=/path the home to run a night on (required)
  BRANCH=name          branch to follow (default: main)
  OPTIONS=words        options of run_dashboard.sh, split at spaces
  LOG_DIR=/path        folder for the dated logs (default: FOLDER/logs)
  KEEP_LOGS_DAYS=30    number of days to keep them

FILE contains such lines and # comments. Nothing in it is executed or expanded except a leading ~/. Later settings
on the command line win. The script prints only the summary of a night that did not go well, for cron's mail.
Exit code: that of run_dashboard.sh; also 2 for bad settings, a FOLDER not created by this script, a failed first fetch,
or a BRANCH that REMOTE does not have (after a night from the last good commit); also 75 if another job is using FOLDER.
SIGTERM, SIGINT and SIGHUP end the night; under nohup the job survives a hangup.
USAGE
}

say() { printf 'dashboard_job.sh: %s\n' "$*" >&2; }

fail() {
  say "$*"
  note_refusal "$*"
  exit 2
}

# For `watch` and `status` (dashboard/schedule/refusal.py), of what nobody reads at a terminal.
note_refusal() { # REASON
  local home=${settings[DASHBOARD_HOME]:-}
  [ -n "$home" ] || [ ! -f "$SETTINGS" ] || home=$(sed -n 's/^DASHBOARD_HOME=//p' <"$SETTINGS" | tail -n 1)
  [[ $home != \~/* ]] || home=$HOME/${home:2}
  [ -d "$home/config" ] && [ ! -t 0 ] || return 0
  { mkdir -p -- "$home/results" && printf '%s\ndashboard_job.sh: %s\n' "$(date -u +%Y%m%dT%H%M%SZ)" \
    "$(sed -E 's#://[^/@ ]*@#://#g' <<<"$1")" >"$home/results/refused_start.txt"; } 2>/dev/null || return 0
}

declare -A settings=([BRANCH]=main [OPTIONS]="" [LOG_DIR]="" [KEEP_LOGS_DAYS]=30)

set_value() { # PLACE KEY=value
  local key=${2%%=*} value=${2#*=}
  [[ $2 == *=* ]] || fail "$1: ${2@Q} is not of the form KEY=value."
  [[ $value != [\"\']* ]] || fail "$1: $key: remove the quotes; values are taken literally."
  case $key in
    FOLDER | DASHBOARD_HOME | LOG_DIR)
      [[ $value != \~/* ]] || value=$HOME/${value:2}
      [[ $value == /* ]] || fail "$1: $key: ${value@Q} is not an absolute path. Start it with / or ~/."
      ;;
    KEEP_LOGS_DAYS) [[ $value =~ ^[0-9]{1,5}$ ]] || fail "$1: $key: ${value@Q} is not a number of days." ;;
    REMOTE | BRANCH) [[ $value =~ ^[^-] ]] || fail "$1: $key: ${value@Q} is empty or begins with a dash." ;;
    OPTIONS) ;;
    *) fail "$1: unknown setting ${key@Q}. Known settings: REMOTE, BRANCH, FOLDER, DASHBOARD_HOME, OPTIONS, LOG_DIR, KEEP_LOGS_DAYS." ;;
  esac
  settings[$key]=$value
}

read_settings() { # FILE
  local line number=0
  SETTINGS=$1
  [[ -f $1 && -r $1 ]] || fail "$1: no such file, or no permission to read it."
  while IFS= read -r line || [ -n "$line" ]; do
    number=$((number + 1))
    line=${line%"${line##*[![:space:]]}"}
    [[ $line =~ ^[[:space:]]*(#|$) ]] || set_value "$1:$number" "$line"
  done <"$1"
}

claim_folder() { # FOLDER
  if [ -e "$1" ] && [ ! -e "$1/.dashboard_job" ] && [ -n "$(ls -A -- "$1")" ]; then
    fail "FOLDER: $1 was not created by this script, so it is left untouched. Use an empty or new folder."
  fi
  { mkdir -p -- "$1" && : >>"$1/.dashboard_job"; } || fail "FOLDER: $1 cannot be created or written."
  exec {LOCK}<>"$1/.dashboard_job" # held until the night ends: exec passes it on
  flock -n "$LOCK" && return
  say "another job is using $1."
  exit 75
}

# Bring FOLDER/source to the newest commit; where that fails, back to the last good one, and TVMDASH_NOTE says so.
# A damaged checkout, as a power cut may leave it, is fetched anew at its place: timers may start programs in it.
update() { # SOURCE [anew]
  # The paths are given, so that a damaged checkout inside another repository cannot become that one.
  local git=(git -C "$1" "--git-dir=$1/.git" "--work-tree=$1" -c core.hooksPath=/dev/null -c init.defaultBranch=main
    -c gc.autoDetach=false -c maintenance.autoDetach=false -c core.fsync=all) error good
  mkdir -p -- "$1/.git"
  find "$1/.git" -name '*.lock' -delete # of a git that was killed: nobody else works here
  rm -f -- "$1/.git/refs/job/newest" # each fetch writes it, and stumbles over one that is empty
  "${git[@]}" init -q || { fetch_anew "$@" && return; } || fail "could not make a git checkout in $1."
  good=$("${git[@]}" rev-parse -q --verify "HEAD^{commit}") || good=""
  if ! error=$({ timeout -k 10 900 "${git[@]}" fetch -q --no-tags -- "${settings[REMOTE]}" \
    "+refs/heads/${settings[BRANCH]}:refs/job/newest" && "${git[@]}" reset -q --hard refs/job/newest; } 2>&1 </dev/null); then
    error=$(tail -n 3 <<<"$error" | tr '\n' ' ')
    [ -n "$good" ] || { fetch_anew "$@" && return; } ||
      fail "could not fetch branch ${settings[BRANCH]} of ${settings[REMOTE]}: $error"
    "${git[@]}" reset -q --hard "$good" || { fetch_anew "$@" && return; } ||
      fail "could not reset $1 to $good. Check the disk of $1."
    export TVMDASH_NOTE="The dashboard could not update itself and ran from its last good commit ${good:0:12}: $error"
    if [[ $error == *"couldn't find remote ref"* ]]; then
      NO_BRANCH=1
      TVMDASH_NOTE="The dashboard's repository has no branch ${settings[BRANCH]@Q}, so it is no longer updated and ran from its last good commit ${good:0:12}. Correct BRANCH in the settings of dashboard_job.sh (repository: ${settings[REMOTE]})."
    fi
    say "$TVMDASH_NOTE"
  fi
  "${git[@]}" clean -fdq
  sync -f -- "$1" || fail "could not write $1 to the disk."
}

# Once: only .git is removed, as what lies beside it (environments) is expensive. Fails where that was tried already.
fetch_anew() { # SOURCE [anew]
  [ "${2:-}" != anew ] || return 1
  say "$1: the git checkout is damaged or empty; fetching it anew."
  rm -rf -- "$1/.git"
  update "$1" anew
}

# Run the night as a child that gets the signals that come here; NIGHT_CODE is its exit code.
run_night() { # LOG PROGRAM ARGUMENTS...
  local log=$1 child="" again signalled="" early=""
  shift
  # Set before the child is there, else a signal in between would end this script and not the night.
  trap 'signalled=1; if [ -n "$child" ]; then kill -TERM "$child" 2>/dev/null || true; else early=1; fi' TERM INT HUP
  set -m # else the child would ignore SIGINT, and every stage with it
  "$@" >>"$log" 2>&1 </dev/null &
  child=$!
  set +m
  [ -z "$early" ] || kill -TERM "$child" 2>/dev/null || true
  NIGHT_CODE=0
  wait "$child" || NIGHT_CODE=$?
  while [ -n "$signalled" ]; do # a signal ends a wait early
    signalled="" again=0
    wait "$child" || again=$?
    [ "$again" = 127 ] || NIGHT_CODE=$again
  done
  trap - TERM INT HUP
}

# The night's own last words, from its log; where it came to none, the end of what it printed.
tell() { # LOG
  local words
  words=$(awk '/^Night [0-9]+T[0-9]+Z/ { text = ""; on = 1 } on { text = text $0 "\n" } END { printf "%s", text }' "$1")
  printf '%s\n' "${words:-$(tail -n 15 -- "$1")}" "Full log: $1" >&2
}

main() {
  local options=() words=() key folder log
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage && exit 0 ;;
      --settings) read_settings "${2:-}" && shift ;;
      --) shift && options=("$@") && break ;;
      *) set_value "the command line" "$1" ;;
    esac
    shift
  done
  for key in REMOTE FOLDER DASHBOARD_HOME; do
    [ -n "${settings[$key]:-}" ] || fail "$key is required. $0 --help lists the settings."
  done
  for key in git flock; do
    command -v "$key" >/dev/null || fail "$key is not installed. Install it (Debian, Ubuntu: apt install git util-linux)."
  done
  folder=${settings[FOLDER]} log=${settings[LOG_DIR]:-$folder/logs}
  # shellcheck disable=SC2046 # names of variables, one word each
  unset $(git rev-parse --local-env-vars)
  export GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND="${GIT_SSH_COMMAND:-ssh -o BatchMode=yes}"
  export LC_ALL=C.UTF-8 TVMDASH_VENV_DIR="${TVMDASH_VENV_DIR:-$folder/venv}"
  claim_folder "$folder"
  mkdir -p -- "$log" || fail "LOG_DIR: could not create $log."
  find "$log" -maxdepth 1 -name 'job_*.log' -mtime "+${settings[KEEP_LOGS_DAYS]}" -delete
  log=$log/job_$(date -u +%Y%m%dT%H%M%SZ).log
  [ ! -t 1 ] || say "writing to $log"
  update "$folder/source" 2> >(tee -a -- "$log" >&2)
  [ -x "$folder/source/run_dashboard.sh" ] || fail "REMOTE: ${settings[REMOTE]} has no run_dashboard.sh."
  read -ra words <<<"${settings[OPTIONS]}"
  run_night "$log" "$folder/source/run_dashboard.sh" "${settings[DASHBOARD_HOME]}" "${words[@]}" "${options[@]}"
  [ "$NIGHT_CODE" -le 128 ] || [ "$NIGHT_CODE" = 130 ] || say "signal $((NIGHT_CODE - 128)) ended the night. Its last lines:"
  [ "$NIGHT_CODE" = 0 ] || tell "$log"
  [ "$NIGHT_CODE" != 0 ] || [ -z "$NO_BRANCH" ] || NIGHT_CODE=2
  exit "$NIGHT_CODE"
}

NIGHT_CODE=0 NO_BRANCH="" SETTINGS=""
main "$@" # read whole before it runs: the update may replace this file
