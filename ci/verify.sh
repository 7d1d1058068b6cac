#!/bin/sh
# Holds the branch of a run against the rules, in a checkout of CI: `runnerctl verify --strict`, with a daemon of its own.
# Fetches what that needs into the checkout around the current folder, the whole history, and moves none of its branches.
# Nothing of the branch is executed, and nothing that the branch says chooses what of it is looked at.
set -eu

usage='usage: verify.sh --ref REF [OPTIONS]

  --ref REF         what to judge, by its name at the remote: runner/RUN, refs/pull/5/head
  --commit ID       a commit that REF must have, which is judged [default: the last one]
  --since BRANCH    report only on what this branch of the remote does not have
  --signers FILE    each commit of the runner must be signed by a key in FILE, as git reads allowed signers
  --reviewers FILE  a person must have approved each task, and signed that with a key in FILE, in the same form
  --tip-log FILE    what FILE names must still be on the branch; its last commit is added where all is well
  --remote NAME     the remote to fetch from [default: origin]
  --sarif FILE      write the findings as SARIF 2.1.0 as well
  --markdown FILE   append a report in Markdown as well

An option with an empty value counts as not given. RUNNERCTL names the program [default: runnerctl].
Exit codes: 0 no violation, 10 a violation or something that was not seen, 2 wrong usage, others: not judged.'

# Hooks may be the checkout's own files, which the branch brings.
git() {
    command git -c core.hooksPath=/dev/null "$@"
}

say() {
    printf 'verify.sh: %s\n' "$*" >&2
}

fail() {
    say "error: $*"
    exit 1
}

misused() {
    printf 'verify.sh: error: %s\n%s\n' "$*" "$usage" >&2
    exit 2
}

ref='' commit='' since='' signers='' reviewers='' tips='' remote='' sarif='' markdown=''
while [ $# -gt 0 ]; do
    case $1 in
        -h | --help) printf '%s\n' "$usage" && exit 0 ;;
        --ref | --commit | --since | --signers | --reviewers | --tip-log | --remote | --sarif | --markdown) [ $# -gt 1 ] || misused "$1 needs a value" ;;
        *) misused "unknown option $1" ;;
    esac
    case $1 in
        --ref) ref=$2 ;;
        --commit) commit=$2 ;;
        --since) since=$2 ;;
        --signers) signers=$2 ;;
        --reviewers) reviewers=$2 ;;
        --tip-log) tips=$2 ;;
        --remote) remote=$2 ;;
        --sarif) sarif=$2 ;;
        --markdown) markdown=$2 ;;
    esac
    shift 2
done
: "${remote:=origin}" "${RUNNERCTL:=runnerctl}"
[ -n "$ref" ] || misused "--ref is missing"
case $ref in refs/*) ;; *) ref=refs/heads/$ref ;; esac
git check-ref-format "$ref" || misused "$ref is no name of a reference"
case $commit in *[!0-9a-f]*) misused "$commit is no commit id" ;; esac
case $since in
    '') ;;
    refs/* | runner/*) misused "--since names a branch that is not a run's: such a branch would choose what is looked at" ;;
    *) git check-ref-format "refs/heads/$since" || misused "$since is no name of a branch" ;;
esac
[ "refs/heads/$since" != "$ref" ] || misused "--since names the branch that is judged"
case $remote in -*) misused "$remote is no name of a remote" ;; esac
# A link that a checkout brought would choose what is written to, and a report that it brought would pass for this one.
[ ! -L "$markdown" ] || misused "$markdown is a symbolic link"
case $sarif in '' | /dev/*) ;; *) rm -f -- "$sarif" ;; esac
command -v "$RUNNERCTL" >/dev/null || fail "$RUNNERCTL is not here: put runnerctl, runnerd and runnerd-shim on PATH"
objects=$(cd -- "$(git rev-parse --git-path objects)" && pwd) || fail "this is no checkout of a repository"

# What is fetched has names of its own until the end, so that no branch is moved and nothing is cleared away meanwhile.
names=refs/runner-verify/$$
scratch=$(mktemp -d)
finish() {
    code=$?
    trap '' HUP INT TERM
    if [ -e "$scratch/s" ]; then "$RUNNERCTL" --no-spawn daemon stop >"$scratch/stop" 2>&1 || cat "$scratch/stop" >&2; fi
    git for-each-ref --format='delete %(refname)' "$names" | git update-ref --stdin
    rm -rf -- "$scratch"
    exit "$code"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fetch() {
    git fetch --quiet --no-tags --no-write-fetch-head --no-auto-maintenance --refmap= --recurse-submodules=no "$@" ||
        fail "what is to be judged cannot be fetched from $remote, see above"
}

# A shallow checkout gets its history, a partial one the objects that were left out of it.
set -- "$remote" "+$ref:$names/judged" ${since:+"+refs/heads/$since:$names/since"}
if git config --get-regexp '^remote\..*\.(promisor|partialclonefilter)$' >/dev/null; then set -- --refetch --no-filter "$@"; fi
if [ "$(git rev-parse --is-shallow-repository)" = true ]; then set -- --unshallow "$@"; fi
fetch "$@"
last=$(git rev-parse --verify "$names/judged^{commit}")
: "${commit:=$last}"
git merge-base --is-ancestor "$commit" "$last" || fail "$ref of $remote does not have $commit: it was moved since"

# The texts that were kept of answers that were not taken: without them less is proven.
run=$(git cat-file blob "$commit:.runner/state/run_state.json" 2>/dev/null | sed -n 's/^ *"run_id": "\([^"]*\)",*$/\1/p' | head -n 1)
if [ -n "$run" ] && git check-ref-format "refs/runner/raw/$run/1"; then
    fetch "$remote" "+refs/runner/raw/$run/*:$names/raw/*"
fi

# A repository that has this branch alone: no other one of the checkout can be taken for it.
git init --quiet --bare --template= "$scratch/judged.git"
printf '%s\n' "$objects" >"$scratch/judged.git/objects/info/alternates"
case $ref in
    refs/heads/runner/*)
        git --git-dir="$scratch/judged.git" update-ref "$ref" "$commit"
        git --git-dir="$scratch/judged.git" symbolic-ref HEAD "$ref"
        ;;
    *) git --git-dir="$scratch/judged.git" update-ref --no-deref HEAD "$commit" ;;
esac
set -- verify "$scratch/judged.git" --strict
if [ -n "$since" ]; then
    before=$(git rev-parse --verify "$names/since^{commit}")
    if git merge-base --is-ancestor "$commit" "$before"; then
        say "$since has all of it: it is reported on as a whole"
    else
        set -- "$@" --since "$before"
    fi
fi

[ -z "$signers" ] || set -- "$@" --signers "$signers"
[ -z "$reviewers" ] || set -- "$@" --reviewers "$reviewers"
if [ -n "$tips" ] && [ "$commit" != "$last" ]; then
    say "$ref has moved on from $commit: the job of its last commit holds that against $tips"
elif [ -n "$tips" ]; then
    set -- "$@" --tip-log "$tips"
fi

export RUNNERD_SOCKET="$scratch/s" RUNNERD_STATE="$scratch/state"
code=0
"$RUNNERCTL" "$@" || code=$?
case $code in 0 | 10) ;; *) exit "$code" ;; esac
# Says the same in another form.
again() {
    "$RUNNERCTL" "$@" || [ $? -eq "$code" ] || fail "it cannot be said in another form, see above"
}
[ -z "$sarif" ] || again "$@" --format sarif >"$sarif"
[ -z "$markdown" ] || again "$@" --format markdown >>"$markdown"
exit "$code"
