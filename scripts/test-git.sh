#!/bin/sh
# Runs what asks most of git with an older one: scripts/test-git.sh [ARGUMENTS OF `cargo nextest run`]
#
# Runs in place and isolated, landing, delivery, `verify`, and the unit tests around git. The older git is $RUNNER_OLD_GIT; else
# /usr/bin/git, where another one comes first on PATH; else Debian's, which is unpacked into target/tools.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
# The first git that knows every extension that the runner has ever written down.
known=2.45
chosen='binary(=isolated) or binary(=landing) or binary(=delivery) or binary(=repositories)
    or (binary(=runs) and test(/^(plain|audits|bisect|review)::/))
    or (package(runner-git) and kind(lib))
    or (package(runnerd) and kind(lib) and test(/^(publish|workspace|landing|verify)::/))'
# No older git makes the last.
chosen="($chosen) and not test(/\bslow::/) and not test(/reftable/)"

version() {
    "$1" version | awk '{ print $3 }'
}

is_older() {
    [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

# Unpacks Debian's, which finds its parts by GIT_EXEC_PATH alone: nothing is installed.
unpack() {
    has apt-get && has dpkg || fail "there is no older git: name one by RUNNER_OLD_GIT"
    mkdir -p "$folder/deb"
    (cd "$folder/deb" && apt-get -qq download git) || fail "Debian's git cannot be had: name one by RUNNER_OLD_GIT"
    for package in "$folder"/deb/git_*.deb; do
        dpkg -x "$package" "$folder/root"
    done
}

# Leaves a program at target/tools/old-git/bin/git: GIT [EXEC_PATH]
lay() {
    mkdir -p "$folder/bin"
    {
        echo '#!/bin/sh'
        [ -z "${2:-}" ] || echo "export GIT_EXEC_PATH='$2'"
        echo "exec '$1' \"\$@\""
    } >"$folder/bin/git"
    chmod +x "$folder/bin/git"
}

folder=$tools/old-git
rm -rf "$folder"
if [ -n "${RUNNER_OLD_GIT:-}" ]; then
    lay "$RUNNER_OLD_GIT"
elif [ -x /usr/bin/git ] && [ "$(version /usr/bin/git)" != "$(version git)" ]; then
    lay /usr/bin/git
else
    unpack
    lay "$folder/root/usr/bin/git" "$folder/root/usr/lib/git-core"
fi
found=$(version "$folder/bin/git")
is_older "$found" "$known" || fail "git $found is no older one: name one before $known by RUNNER_OLD_GIT"
cargo nextest --version >/dev/null 2>&1 || fail "cargo-nextest is missing: it chooses these tests"
say "with git $found"
find_tools
PATH=$folder/bin:$PATH
export PATH
exec "$root/scripts/test.sh" --workspace --ignore-default-filter -E "$chosen" "$@"
