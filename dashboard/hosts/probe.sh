# shellcheck shell=sh
# Executed on a host by sh, for `check`: prints what the worker would meet there. Its argument: the dashboard's folder.
mkdir -p -- "$1" && : >"$1/.probe" && rm -f -- "$1/.probe" && echo "tvm-dashboard folder yes"
echo "tvm-dashboard clock $(date +%s)"
echo "tvm-dashboard free_kb $(df -Pk -- "$1" | awk 'NR == 2 { print $4 }')"
for name in bash flock tar head; do
  command -v "$name" >/dev/null && echo "tvm-dashboard has $name"
done
for name in python3 python3.14 python3.13 python3.12 python3.11; do
  "$name" -E -s -c 'import ensurepip, sys, venv; print("tvm-dashboard python %d.%d" % sys.version_info[:2])' 2>/dev/null
done
exit 0
