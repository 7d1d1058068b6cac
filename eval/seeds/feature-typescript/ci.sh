#!/bin/sh
# The checks of this project.
set -eu
tsc -p .
node --test test
