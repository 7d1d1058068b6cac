#!/bin/sh
# The checks of this project.
set -eu
python3 -m compileall -q store
python3 -m unittest discover -s tests -t .
