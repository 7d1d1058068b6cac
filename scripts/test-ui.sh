#!/bin/sh
# Checks and builds the page of the web view, and drives it in a real browser: scripts/test-ui.sh [ARGUMENTS OF `vitest run`]
# The browser is /usr/bin/chromium, or the one that CHROMIUM names; without one only what needs none is run.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# shellcheck source=scripts/page.sh
. "$(dirname -- "$0")/page.sh"

find_node
find_rust
cd -- "$page"
install_packages
say "formatting, types, unit tests"
npm run --silent format:check
npm run --silent check
npm run --silent test
say "building the page, and the programs with it"
npm run --silent build
(cd -- "$root" && cargo build --locked --quiet --workspace)
if ! [ -x "${CHROMIUM:-/usr/bin/chromium}" ]; then
    say "no browser: install Debian's chromium, or name one in CHROMIUM; its tests are left out"
    exit 0
fi
say "driving the page in $("${CHROMIUM:-/usr/bin/chromium}" --version)"
npm run --silent e2e -- "$@"
