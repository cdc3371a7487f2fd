# shellcheck shell=sh
# Executed on a host by sh: gets the code there where it is not, then becomes its worker. Its arguments: the dashboard's
# folder there, the hash of the code, the name that the machine is locked as. Speaks over its standard input and output.
set -eu
umask 022
mkdir -p -- "$1/code"
cd -- "$1"
if [ -e "code/$2/.complete" ]; then
  echo "tvm-dashboard-worker have"
else
  echo "tvm-dashboard-worker want"
  read -r size
  new=code/.new-$2-$$
  trap 'rm -rf -- "$new"' EXIT
  if ! said=$(mkdir -- "$new" && head -c "$size" | tar -xf - -C "$new" 2>&1); then
    printf '%s\n' "$said" | head -n 1 >&2
    echo "$1: could not unpack the dashboard's code; $(df -Pm . | awk 'NR == 2 { print $4 }') MB are free. Free some space." >&2
    exit 1
  fi
  [ "$(cat "$new/hash")" = "$2" ]
  : >"$new/.complete"
  rm -rf -- "code/$2"
  mv -- "$new" "code/$2"
fi
exec bash "code/$2/dashboard/worker/worker.sh" "$1" "$3"
