#!/bin/sh
# Runs the checks in tests/*_test.sh and says which do not hold.
cd "$(dirname "$0")/.." || exit 1
checks=0
failed=0

# check NAME EXPECTED ACTUAL
check() {
    checks=$((checks + 1))
    [ "$2" != "$3" ] || return 0
    failed=$((failed + 1))
    printf 'FAIL %s: expected %s, got %s\n' "$1" "$2" "$3"
}

for file in tests/*_test.sh; do
    [ ! -e "$file" ] || . "./$file"
done
printf '%s checks, %s failed\n' "$checks" "$failed"
[ "$failed" -eq 0 ]
