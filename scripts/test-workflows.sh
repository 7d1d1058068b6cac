#!/bin/sh
# Looks at .github/workflows: rights, pins and injections with zizmor, which is installed into target/tools; syntax with
# actionlint, where that is on PATH. Asks nothing of GitHub, so it does not see whether a pin is what its comment says.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
zizmor_version=1.32.0

need_zizmor() {
    case "$(zizmor --version 2>/dev/null)" in
        *" $zizmor_version") return 0 ;;
    esac
    say "installing zizmor $zizmor_version into target/tools"
    from_wheel zizmor "$zizmor_version" zizmor && return 0
    [ "${CI:-}" != true ] || fail "zizmor cannot be installed: see target/tools/zizmor.log"
    say "NOT CHECKED: rights and pins; zizmor cannot be installed, see target/tools/zizmor.log"
    return 1
}

PATH=$tools/venv/bin:$tools/pip/bin:$tools/bin:$PATH
export PATH
cd -- "$root"
! need_zizmor || zizmor --offline --no-progress --persona pedantic .github/workflows
if has actionlint; then
    actionlint
else
    say "NOT CHECKED: syntax; actionlint is not there, see https://github.com/rhysd/actionlint"
fi
