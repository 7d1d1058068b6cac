# Names for commands; what they do is in scripts/ and .ci/run.

# List the names.
default:
    @just --list --unsorted

# Build everything and show a complete run; no account is needed.
demo *OPTIONS:
    scripts/demo.sh {{ OPTIONS }}

# Build everything and run the tests.
test *OPTIONS:
    scripts/test.sh {{ OPTIONS }}

# Run what takes longer: the fault matrix and all slow tests.
test-faults *OPTIONS:
    scripts/test.sh --workspace --profile faults {{ OPTIONS }}

# Run whole runs with the real Codex and Claude against a model on loopback; npm installs them, once.
test-agents *OPTIONS:
    scripts/test-agents.sh {{ OPTIONS }}

# Play whole runs in memory: `just simulate --seed N --runs M`; a failure names the seed that brings it back.
simulate *OPTIONS:
    scripts/simulate.sh {{ OPTIONS }}

# Measure everything that has a budget, or `just bench WHAT`: `just bench help` names them.
bench *OPTIONS:
    scripts/bench.sh {{ OPTIONS }}

# Feed a fuzz target with hostile input until it fails; options are libFuzzer's, like -max_total_time=60.
fuzz *TARGET:
    scripts/fuzz.sh {{ TARGET }}

# Format the code.
fmt:
    cargo fmt --all

# Look for mistakes; a warning is an error.
lint:
    cargo clippy --locked --workspace --all-targets -- -D warnings

# Write schemas and generated documentation anew.
generate:
    scripts/generate.sh

# All that must hold before a commit lands.
ci:
    .ci/run
