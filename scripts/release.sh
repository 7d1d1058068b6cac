#!/bin/sh
# Makes what a release consists of, and publishes nothing: scripts/release.sh TAG [--out DIR]
#
# TAG has to be v and the version of Cargo.toml, which the changelog has to have a heading for; the work tree has to be
# clean. Archive, packages and sums are in target/release-files, or in DIR.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
tag=${1:-}
out=$root/target/release-files
case $#:${2:-} in
    1:) ;;
    3:--out) out=$3 ;;
    *) fail "usage: scripts/release.sh TAG [--out DIR]" ;;
esac
cd -- "$root"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ "$tag" = "v$version" ] || fail "the tag $tag is not v$version, which Cargo.toml says"
grep -q "^## $version" CHANGELOG.md || fail "CHANGELOG.md has no heading \`## $version\`"
[ -z "$(git status --porcelain)" ] || fail "the working tree has changes: commit them, or leave them out"
if [ -e "$out" ] && [ -n "$(ls -A "$out")" ]; then
    fail "$out is not empty: remove what is in it"
fi
for machine in x86_64 aarch64; do
    scripts/dist.sh --target "$machine" --out "$out"
    scripts/packages.sh --archive "$out/runner-$version-$machine-linux-gnu.tar.gz"
done
(cd -- "$out" && sha256sum --check --quiet SHA256SUMS)
say "everything of $tag is in $out"
