# shellcheck shell=sh
# What the scripts for the page of the web view share; sourced after tools.sh.

# shellcheck disable=SC2034,SC2154
page=$root/runner-ui/web

find_node() {
    has npm && has node || fail "Node.js is missing: install version 20 or newer, with npm"
    [ "$(node -p 'process.versions.node.split(".")[0] >= 20')" = true ] || fail "Node.js $(node --version) is too old: install version 20 or newer"
}

# Packages as the lock file has them; none of their scripts is run. Again only where the lock file is another one.
install_packages() {
    stamp=node_modules/.package-lock.sum
    sum=$(cksum <package-lock.json)
    [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ] || return 0
    say "installing the page's packages"
    npm ci --ignore-scripts --no-audit --no-fund --loglevel error >&2 || fail "npm cannot install the packages of runner-ui/web"
    printf '%s\n' "$sum" >"$stamp"
}
