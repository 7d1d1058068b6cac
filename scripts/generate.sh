#!/bin/sh
# Writes the files that are generated from the code: schemas and parts of the documentation.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# shellcheck source=scripts/crates.sh
. "$(dirname -- "$0")/crates.sh"
find_rust

cd -- "$root"
# Of the whole workspace, as the tests are: a package alone would be built anew, with libraries of its own.
say "writing schemas/"
cargo run --locked --quiet --example schemas
cargo run --locked --quiet --bin runner-eval -- schemas schemas
say "writing the web view's schema, and docs/"
# shellcheck disable=SC2086
UPDATE_GENERATED=1 cargo test --locked --quiet $default_crates --lib --test contract --test reference --test rules -- \
    the_schema the_page the_reference_page_is_current
if [ -d runner-ui/web/node_modules ]; then
    say "writing runner-ui/web/src/wire.ts"
    npm run --silent --prefix runner-ui/web types
fi
