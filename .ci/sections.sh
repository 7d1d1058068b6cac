# shellcheck shell=bash
# What .ci/run and .ci/nightly share: how a section is run and told of, and the sections that run only where they are due.
# It is sourced, with the root of the repository as the current folder.

logs=${CARGO_TARGET_DIR:-target}/ci
rows=()
current=''
# Names of sections that there are, for whoever sources this.
known=()

# Runs a section, with what it prints kept in a file: NAME COMMAND...
section() {
    local begun=$SECONDS
    current=$1
    shift
    printf '\n== %s (after %d s)\n' "$current" "$begun"
    mkdir -p "$logs"
    # In a process of its own, so that the first command that fails ends it.
    "$@" 2>&1 | tee "$logs/$current.log"
    rows+=("$(printf '%-14s %5d s' "$current" "$((SECONDS - begun))")")
    current=''
}

# Ends where one of the names is none of those that are `known`: NAME...
refuse_unknown() {
    local name
    for name in "$@"; do
        [[ " ${known[*]} " == *" $name "* ]] || { printf 'error: there is no section %s; there are: %s\n' "$name" "${known[*]}" >&2 && exit 2; }
    done
}

# Tells how long each section took, and of one that failed what it was and how it is run alone.
finish() {
    local code=$?
    trap - EXIT
    printf '\n== sections\n'
    [[ ${#rows[@]} -eq 0 ]] || printf '%s\n' "${rows[@]}"
    printf '%-14s %5d s\n' all "$SECONDS"
    [[ -z $current ]] || failure >&2
    exit "$code"
}

failure() {
    local tests profile=''
    tests=$(grep -E '^ +(FAIL|TIMEOUT|ABORT|SIG[A-Z]+|LEAK-FAIL|TERMINATED) +\[' "$logs/$current.log" | awk '{ print $NF }' | sort -u || true)
    [[ $current == tests ]] || profile=" --profile $current"
    printf '\nFAILED: %s; what it printed is in %s\n' "$current" "$logs/$current.log"
    # The real agents have to be installed first.
    if [[ -z $tests || $current == agents ]]; then
        printf '%s\n' ${tests:+"$(head -n 3 <<<"$tests")"} "alone: .ci/run $current"
        return
    fi
    printf 'tests: %d failed, of them:\n' "$(wc -l <<<"$tests")"
    head -n 3 <<<"$tests" | while read -r name; do
        printf "  cargo nextest run --workspace%s -E 'test(=%s)'\n" "$profile" "$name"
    done
}

# Has packages of Debian's installed where a program is missing, which only CI's own machine or root allows:
# "PACKAGES" PROGRAM...
package() {
    local program missing='' wanted
    read -ra wanted <<<"$1"
    for program in "${@:2}"; do
        command -v "$program" >/dev/null || missing+=" $program"
    done
    [[ -z $missing ]] && return
    local as_root=()
    [[ $EUID -eq 0 ]] || as_root=(sudo -n)
    if [[ $EUID -eq 0 || ${CI:-} == true ]] && command -v apt-get >/dev/null; then
        "${as_root[@]}" apt-get update -qq &&
            "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null && return
    fi
    printf 'missing, and not to be installed here:%s\n' "$missing" >&2
    return 1
}

as_root() {
    [[ $EUID -eq 0 ]] || { printf 'only root can do this\n' >&2 && return 1; }
}

# The sections of .ci/nightly.toml. One that cannot run on this machine fails.

workflows() {
    scripts/test-workflows.sh
}

client() {
    package valgrind valgrind
    cargo build --locked --profile dist-client --package runnerctl
    cargo build --locked --workspace
    "${CARGO_TARGET_DIR:-target}"/debug/runner-bench counts --client "${CARGO_TARGET_DIR:-target}/dist-client/runnerctl"
}

page() {
    package 'chromium fonts-liberation' chromium
    scripts/test-ui.sh
}

install() {
    cargo build --locked --workspace
    scripts/test-install.sh
}

packages() {
    as_root
    package 'mmdebstrap debian-archive-keyring lintian rpm' mmdebstrap lintian rpmbuild
    cargo build --locked --workspace
    scripts/test-packages.sh
}

old_git() {
    scripts/test-git.sh
}

slurm() {
    as_root
    package 'slurm-wlm munge' /usr/sbin/slurmctld /usr/sbin/slurmd /usr/sbin/munged
    scripts/test-slurm.sh
}

kubernetes() {
    scripts/test-kubernetes.sh
}

# The clients' types alone: the daemon does not build there.
macos() {
    local target=aarch64-apple-darwin
    rustup target add "$target"
    cargo check --locked --target "$target" --package runnerctl --package runner-ui
}
