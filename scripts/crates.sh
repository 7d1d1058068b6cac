# shellcheck shell=sh
# The crates whose tests are the default ones: the others' are sections of .ci/nightly.toml. What chooses the same crates has the
# same features of dependencies, and is built once.
# shellcheck disable=SC2034
default_crates='--workspace --exclude runner-git --exclude runner-simulation'
