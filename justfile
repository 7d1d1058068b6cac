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

# Build one crate and run the tests of what was changed: `just check runnerd/core/src/tree/select.rs`, `just check runnerctl`.
check *OPTIONS:
    scripts/check.sh {{ OPTIONS }}

# Run what takes longer: the fault matrix and all slow tests.
test-faults *OPTIONS:
    scripts/test.sh --workspace --profile faults {{ OPTIONS }}

# Let the daemon die at each of the first 60 flushes, renames, removals and links: `just sweep-kills`, `just sweep-kills row_98`.
sweep-kills *OPTIONS:
    scripts/sweep-kills.sh {{ OPTIONS }}

# Run whole runs with the real Codex and Claude against a model on loopback; npm installs them, once.
test-agents *OPTIONS:
    scripts/test-agents.sh {{ OPTIONS }}

# Run what asks most of git with an older one: $RUNNER_OLD_GIT, /usr/bin/git or Debian's.
test-git *OPTIONS:
    scripts/test-git.sh {{ OPTIONS }}

# Hand runs to a real Slurm as jobs; as root, with Debian's slurm-wlm and munge: `just test-slurm --nightly`.
test-slurm *OPTIONS:
    scripts/test-slurm.sh {{ OPTIONS }}

# Hold the Job of a run to Kubernetes' schemas; `--image` builds Containerfile and drives a run in it.
test-kubernetes *OPTIONS:
    scripts/test-kubernetes.sh {{ OPTIONS }}

# List the cases of the harness, and what this machine lacks for them.
eval-list *OPTIONS:
    scripts/eval.sh list {{ OPTIONS }}

# Run cases: `just eval-run hello`, `just eval-run calculator-go --executor claude --runs 5`.
eval-run *OPTIONS:
    scripts/eval.sh run {{ OPTIONS }}

# Remove the results of exactly one case.
eval-clean CASE:
    scripts/eval.sh clean {{ CASE }}

# Run a case and watch it in a browser, at port 3001 until Ctrl-C.
eval-with-ui CASE *OPTIONS:
    scripts/eval.sh run {{ CASE }} --ui {{ OPTIONS }}

# Play whole runs in memory: `just simulate --seed N --runs M`; a failure names the seed that brings it back.
simulate *OPTIONS:
    scripts/simulate.sh {{ OPTIONS }}

# Build the page of the web view; the next build of the programs embeds it.
ui:
    scripts/ui.sh

# Check the page and drive it in a real browser; options go to `vitest run`.
test-ui *OPTIONS:
    scripts/test-ui.sh {{ OPTIONS }}

# Take the pictures of the documents anew, of real programs in a real browser and in a terminal.
pictures:
    scripts/pictures.sh
    scripts/tour.sh

# Measure everything that has a budget, or `just bench WHAT`: `just bench help` names them.
bench *OPTIONS:
    scripts/bench.sh {{ OPTIONS }}

# Feed a fuzz target with hostile input until it fails; options are libFuzzer's, like -max_total_time=60.
fuzz *TARGET:
    scripts/fuzz.sh {{ TARGET }}

# Make the archive of a release; with `--programs DIR`, of programs that are there.
dist *OPTIONS:
    scripts/dist.sh {{ OPTIONS }}

# Try install.sh with programs that are built already.
test-install *OPTIONS:
    scripts/test-install.sh {{ OPTIONS }}

# Play the demo with programs for aarch64 in an emulated machine; as root, with Debian's mmdebstrap, cpio and qemu-system-arm.
test-aarch64 FOLDER:
    scripts/test-aarch64.sh {{ FOLDER }}

# Make a .deb and a .rpm of the archive that `just dist` has made.
packages *OPTIONS:
    scripts/packages.sh {{ OPTIONS }}

# Try the packages in an empty Debian, around a run; as root, with Debian's mmdebstrap and lintian.
test-packages *OPTIONS:
    scripts/test-packages.sh {{ OPTIONS }}

# Make everything that a release consists of, and publish nothing: `just release v0.1.0`.
release *OPTIONS:
    scripts/release.sh {{ OPTIONS }}

# Format the code.
fmt:
    cargo fmt --all

# Look for mistakes; a warning is an error.
lint:
    cargo clippy --locked --workspace --all-targets -- -D warnings

# Look at licences, advisories, unused dependencies, the oldest compiler and spelling.
hygiene:
    scripts/hygiene.sh

# Look at what GitHub does with a push: rights, pins, syntax.
test-workflows:
    scripts/test-workflows.sh

# Write schemas and generated documentation anew.
generate:
    scripts/generate.sh

# All that must hold before a commit lands, or sections of it: `just ci lints tests`.
ci *SECTIONS:
    .ci/run {{ SECTIONS }}

# Run the parts of CI that run where their files have changed: `just nightly --record`, `just nightly packages`.
nightly *OPTIONS:
    .ci/nightly {{ OPTIONS }}

# Run the default tests five times and the fault matrix twice, half of them beside two busy loops.
stress *OPTIONS:
    scripts/stress.sh {{ OPTIONS }}
