#!/bin/sh
# Everything that must hold before a commit: each script parses, each check holds.
cd "$(dirname "$0")" || exit 1
for script in bin/* lib/*.sh tests/*.sh; do
    [ ! -e "$script" ] || sh -n "$script" || exit 1
done
sh tests/run.sh
