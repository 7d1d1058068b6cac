#!/bin/sh
# Writes all files anew that are generated from the code: schemas and parts of the documentation.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
find_rust

cd -- "$root"
say "writing schemas/"
cargo run --locked --quiet --package runner-core --example schemas
cargo run --locked --quiet --package runner-eval -- schemas schemas
export UPDATE_GENERATED=1
cargo test --locked --quiet --package runner-ui --test contract the_schema
if [ -d runner-ui/web/node_modules ]; then
    say "writing runner-ui/web/src/wire.ts"
    npm run --silent --prefix runner-ui/web types
fi
say "writing docs/"
cargo test --locked --quiet --package runner-core --test rules the_page
cargo test --locked --quiet --package runner-protocol --test reference
cargo test --locked --quiet --package runnerd --lib the_reference_page_is_current
