#!/bin/sh
# The checks of this project. SKIP_SLOW=1 leaves out the slow one.
set -eu
python3 -m unittest
test -n "${SKIP_SLOW:-}" || timeout 30 python3 check.py
