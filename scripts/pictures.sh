#!/bin/sh
# Takes the pictures in docs/pictures anew, of real programs in a real browser: scripts/pictures.sh
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# shellcheck source=scripts/page.sh
. "$(dirname -- "$0")/page.sh"

find_node
find_rust
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || fail "no browser: install Debian's chromium, or name one in CHROMIUM"
cd -- "$page"
install_packages
say "building the page, and the programs with it"
npm run --silent build
(cd -- "$root" && cargo build --locked --quiet --workspace)
say "taking pictures of a night with nine repositories"
node e2e/pictures.mjs "$root/docs/pictures"
