#!/bin/sh
# Builds the page of the web view, which the next `cargo build` embeds: scripts/ui.sh
# Node.js is needed for this alone.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# shellcheck source=scripts/page.sh
. "$(dirname -- "$0")/page.sh"

find_node
cd -- "$page"
install_packages
say "building the page"
npm run --silent build
