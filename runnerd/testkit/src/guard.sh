#!/bin/sh
# Scripted guard: the n-th run is guard/<n>.sh, else guard/default.sh.
kit=$(cd "${0%/*}/../scripts/NAME" && pwd)
export kit
read -r g < "$kit/guarded"
g=$((g + 1))
echo "$g" > "$kit/guarded.new" && mv "$kit/guarded.new" "$kit/guarded"
gate() { echo > "$kit/gates/$1.in"; read -r _ < "$kit/gates/$1.out"; }
misbehave() { python3 "$kit/misbehave.py" "$@"; }
become() { exec python3 "$kit/misbehave.py" "$@"; }
step="$kit/guard/$g.sh"
[ -e "$step" ] || step="$kit/guard/default.sh"
. "$step"
