# shellcheck shell=bash
# Sections that are tests alone, each a profile of nextest's with its name. They are sourced beside sections.sh, on a change of
# which every section is due.

# Without nextest there are no profiles, and the section `tests` was all: PROFILE [OPTIONS]
profile() {
    cargo nextest --version >/dev/null 2>&1 || return 0
    scripts/test.sh --workspace --profile "$1" "${@:2}"
}

simulation() {
    profile simulation --exclude runner-git
}

engines() {
    profile engines --exclude runner-simulation
}

cases() {
    profile cases --exclude runner-git --exclude runner-simulation
}
