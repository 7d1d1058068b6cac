#!/bin/sh
# Tries the programs for aarch64 in an emulated machine of that kind: scripts/test-aarch64.sh FOLDER OF PROGRAMS
#
# A Debian in memory, with Debian's kernel for it, runs `demo` and `doctor` as an ordinary user, by qemu-system-aarch64. It
# takes root, Debian's packages mmdebstrap, cpio and qemu-system-arm, 3 GiB of memory and two minutes.
set -eu

# shellcheck source=scripts/tools.sh
. "$(dirname -- "$0")/tools.sh"
programs=${1:-}
release=bookworm
packages=coreutils,dash,git,grep,linux-image-arm64,mount,sed,util-linux

# The first process of that machine: what it prints is all that is seen of it.
first_process() {
    cat <<'SH'
#!/bin/sh
export PATH=/usr/bin:/bin:/usr/sbin:/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
chmod 1777 /tmp
uname --kernel-name --kernel-release --machine
cat >/tmp/try <<'TRY'
cd "$HOME"
runnerctl --version
runnerctl --plain demo --clean && echo 'SEEN: demo'
runnerctl --plain doctor && echo 'SEEN: doctor'
TRY
HOME=/srv/stranger setpriv --reuid 1000 --regid 1000 --clear-groups sh /tmp/try
echo o >/proc/sysrq-trigger
sleep 60
SH
}

# Unpacked, nothing is set up: no program of another kind of machine has to run here for it.
make_system() {
    mmdebstrap --quiet --architectures=arm64 --variant=extract --include="$packages" "$release" "$work/system" \
        >"$work/log" 2>&1 || { cat "$work/log" >&2 && fail "there is no Debian for arm64 to unpack"; }
    mv "$work"/system/boot/vmlinuz-* "$work/kernel"
    (cd -- "$work/system" && rm -rf boot lib/modules usr/lib/modules usr/share/doc usr/share/man usr/share/locale dev && mkdir dev)
    cp "$programs/runnerctl" "$programs/runnerd" "$programs/runnerd-shim" "$work/system/usr/bin/"
    echo 'stranger:x:1000:1000::/srv/stranger:/bin/sh' >"$work/system/etc/passwd"
    echo 'stranger:x:1000:' >"$work/system/etc/group"
    install -d -o 1000 -g 1000 "$work/system/srv/stranger"
    mkdir -p "$work/system/proc" "$work/system/sys" "$work/system/tmp"
    first_process >"$work/system/init"
    chmod 755 "$work/system/init"
    (cd -- "$work/system" && find . | cpio --quiet --create --format=newc) >"$work/files.cpio"
    rm -rf -- "$work/system"
}

for program in mmdebstrap cpio qemu-system-aarch64; do
    has "$program" || fail "$program is missing: install Debian's packages mmdebstrap, cpio and qemu-system-arm"
done
[ "$(id -u)" -eq 0 ] || fail "a Debian is unpacked as root"
[ -x "$programs/runnerctl" ] || fail "which programs? scripts/dist.sh --target aarch64 makes them: name the folder bin of its archive"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
trap 'exit 1' HUP INT TERM
say "unpacking a Debian for it"
make_system
say "starting a machine of two emulated processors"
timeout --kill-after=5 600 qemu-system-aarch64 -machine virt -cpu max -smp 2 -m 3072 -nic none -nographic -no-reboot \
    -kernel "$work/kernel" -initrd "$work/files.cpio" -append 'console=ttyAMA0 panic=-1 quiet' </dev/null >"$work/log" 2>&1 || true
for seen in demo doctor; do
    tr -d '\r' <"$work/log" | grep -aqx "SEEN: $seen" || { cat "$work/log" >&2 && fail "$seen did not succeed, see above"; }
done
say "ok: $(tr -d '\r' <"$work/log" | grep -am1 aarch64): demo and doctor succeed"
