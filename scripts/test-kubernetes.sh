#!/bin/sh
# Holds the Job that `runnerctl submit --to kubernetes` makes to Kubernetes' own schemas, of the oldest and the newest
# version that are known: scripts/test-kubernetes.sh [--image]
#
# `--image` builds Containerfile too, on a Debian that mmdebstrap makes, and drives a run in it: it takes root, buildah
# and mmdebstrap, and Debian's packages. Nothing of a registry of images is asked for.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
validate_version=1.37.0
oldest=1.29.0
newest=1.37.0

need_validate() {
    case "$(kubernetes-validate --version 2>/dev/null)" in
        *"$validate_version"*) return 0 ;;
    esac
    say "installing kubernetes-validate $validate_version into target/tools"
    from_wheel kubernetes-validate "$validate_version" kubernetes-validate && return 0
    [ "${CI:-}" != true ] || fail "kubernetes-validate cannot be installed: see target/tools/kubernetes-validate.log"
    say "NOT CHECKED: the Job; kubernetes-validate cannot be installed, see target/tools/kubernetes-validate.log"
    return 1
}

# Makes the Job of a run as a person does, with everything that its settings may add.
job() {
    mkdir -p "$work/config/runnerctl"
    printf '[engine.kubernetes]\nimage = "registry.example.org/agents:1"\n' >"$work/config/runnerctl/config.toml"
    git init --quiet --bare "$work/remote.git"
    XDG_CONFIG_HOME=$work/config "$root/target/debug/runnerctl" submit "file://$work/remote.git" \
        --to kubernetes --run x -m 'Do it.' --print >"$work/job.yaml"
}

check_job() {
    for version in "$oldest" "$newest"; do
        kubernetes-validate --strict --kubernetes-version "$version" "$work/job.yaml"
    done
    # What a schema does not hold, it has not checked.
    sed 's/restartPolicy/restartpolicy/' "$work/job.yaml" >"$work/wrong.yaml"
    ! kubernetes-validate --strict --quiet --kubernetes-version "$newest" "$work/wrong.yaml" >/dev/null 2>&1 ||
        fail "a Job with a word that Kubernetes does not know was accepted"
}

builder() {
    command=$1
    shift
    buildah --storage-driver vfs --root "$work/images" --runroot "$work/run" "$command" "$@"
}

check_image() {
    for program in buildah mmdebstrap; do
        has "$program" || fail "$program is missing: install Debian's package"
    done
    say "making a Debian, and the image on it"
    mmdebstrap --quiet --variant=minbase bookworm "$work/base.tar"
    printf 'FROM scratch\nADD base.tar /\n' >"$work/base"
    builder bud --isolation chroot --quiet --tag localhost/base --file "$work/base" "$work"
    mkdir -p "$work/tree/bin"
    for program in runnerd runnerctl runnerd-shim runner-ui; do
        strip -o "$work/tree/bin/$program" "$root/target/debug/$program"
    done
    builder bud --isolation chroot --quiet --build-arg BASE=localhost/base --tag localhost/runnerd \
        --file "$root/Containerfile" "$work/tree"
    container=$(builder from localhost/runnerd)
    builder run --isolation chroot "$container" -- sh -euc "$drive"
}

# A whole run in the image, as its ordinary user: of a project whose agent is three lines of shell.
# shellcheck disable=SC2016
drive='
    git init --quiet --initial-branch=main project
    cd project
    mkdir -p .runner/state
    cat >.runner/state/config.toml <<TEXT
[executor]
kind = "command"
command = ["sh", "agent.sh"]
[guard]
command = ["test", "-f", "work.txt"]
TEXT
    cat >agent.sh <<"TEXT"
echo work >work.txt
echo "{\"status\": \"done\", \"summary\": \"Wrote work.txt.\", \"children\": null}" >"$RUNNER_OUTPUT"
TEXT
    git add --all
    git -c user.name=a -c user.email=a@example.org commit --quiet --message=project
    git clone --quiet --bare . ../remote.git
    cd ..
    runnerd drive "file://$PWD/remote.git" --run x -m "Have the file there." --yes
    git --git-dir=remote.git show runner/x:work.txt
    runnerctl --version
'

find_tools
cd -- "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo build --locked --workspace
! need_validate || { job && check_job; }
[ "${1:-}" != --image ] || check_image
