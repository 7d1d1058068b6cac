"""Makes the index of the repository say that a file is as it was added last: forged_index.py PATH [assume|skip]."""

import hashlib
import os
import struct
import sys

INDEX = ".git/index"
EXTENDED, ASSUME, SKIP = 0x4000, 0x8000, 0x4000


def entries(data, count):
    """Yields the place of each entry, its path, and where it ends."""
    at = 12
    for _ in range(count):
        (flags,) = struct.unpack_from(">H", data, at + 60)
        start = at + (64 if flags & EXTENDED else 62)
        end = data.index(b"\0", start)
        after = at + ((end - at) // 8 + 1) * 8
        yield at, data[start:end].decode(), after
        at = after


def look(path):
    """Returns what an entry says of a file as it is now: times, device, inode, mode, owner, length."""
    found = os.lstat(path)
    times = [found.st_ctime_ns, found.st_mtime_ns]
    words = [part for time in times for part in divmod(time, 10**9)]
    mode = 0o100755 if found.st_mode & 0o100 else 0o100644
    words += [found.st_dev, found.st_ino, mode, found.st_uid, found.st_gid, found.st_size]
    return struct.pack(">10I", *(word & 0xFFFFFFFF for word in words))


def main(path, mark=""):
    with open(INDEX, "rb") as file:
        data = bytearray(file.read())
    version, count = struct.unpack_from(">II", data, 4)
    if mark == "skip":
        version = 3
    out = bytearray(b"DIRC" + struct.pack(">II", version, count))
    last = 12
    for at, name, after in list(entries(data, count)):
        (flags,) = struct.unpack_from(">H", data, at + 60)
        more = struct.unpack_from(">H", data, at + 62)[0] if flags & EXTENDED else 0
        stat = bytes(data[at : at + 40])
        if name == path:
            stat = look(path)
            flags |= ASSUME if mark == "assume" else 0
            more |= SKIP if mark == "skip" else 0
        flags = flags | EXTENDED if more else flags & ~EXTENDED
        entry = stat + data[at + 40 : at + 60] + struct.pack(">H", flags)
        entry += struct.pack(">H", more) if more else b""
        entry += name.encode()
        out += entry + b"\0" * (8 - len(entry) % 8)
        last = after
    out += data[last:-20]
    out += hashlib.sha1(out).digest()
    # In the place of the old one: its times are newer than those of any file.
    with open(INDEX + ".forged", "wb") as file:
        file.write(out)
    os.rename(INDEX + ".forged", INDEX)


main(*sys.argv[1:])
