#!/bin/sh
# Builds with sanitizers, and compares what is printed.
set -eu
out=${TMPDIR:-/tmp}/wordfreq.$$
trap 'rm -f "$out"' EXIT
cc -g -Wall -fsanitize=address,undefined -fno-sanitize-recover=all -o "$out" wordfreq.c
for text in texts/*.txt; do
    "$out" <"$text" | diff - "${text%.txt}.expected" || { echo "FAIL $text"; exit 1; }
done
echo "all texts are right"
