#!/usr/bin/env python3
"""Tells which sections of .ci/nightly.toml are due: those whose files are not the ones that they passed with.

nightly.py names | due | show | record SECTION...

A section's digest is the SHA-256 of what `git ls-files -s` prints for its files once all changes are staged, in an index of
this script's own: it needs no history.
"""

import atexit
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

FILE = pathlib.Path(__file__).with_name("nightly.toml")


def sections():
    """Reads the file; a section has `files` and `sha256`, and nothing else."""
    found = tomllib.loads(FILE.read_text())
    for name, section in found.items():
        if not isinstance(section, dict) or set(section) != {"files", "sha256"} or not section["files"]:
            sys.exit(f"error: {FILE}: section {name}: it needs `files` and `sha256`, and nothing else")
    return found


def digest(name, section):
    """Returns the digest of a section's files; each of its patterns must match something."""
    for pattern in section["files"]:
        if not listed([pattern]):
            sys.exit(f"error: {FILE}: section {name}: no file matches {pattern}")
    return hashlib.sha256(listed(section["files"])).hexdigest()


def git(*words, **environment):
    command = ["git", *words]
    return subprocess.run(command, check=True, capture_output=True, cwd=FILE.parent, env=os.environ | environment).stdout


@functools.cache
def staged():
    """Returns a copy of the index in which everything is staged."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    index = pathlib.Path(folder.name, "index")
    shutil.copy(FILE.parent / os.fsdecode(git("rev-parse", "--git-path", "index")).rstrip("\n"), index)
    git("add", "--all", ":/", GIT_INDEX_FILE=str(index))
    return str(index)


def listed(patterns):
    pathspecs = [f":(glob,top){pattern}" for pattern in patterns]
    return git("ls-files", "-s", "--", *pathspecs, GIT_INDEX_FILE=staged())


def record(names):
    """Writes the digests of these sections into the file, which stays as it is otherwise."""
    text, known = FILE.read_text(), sections()
    for name in names:
        line = rf'(?ms)(^\[{re.escape(name)}\]$.*?^sha256 = ")[0-9a-f]*(")'
        text, count = re.subn(line, rf"\g<1>{digest(name, known[name])}\g<2>", text, count=1)
        if count != 1:
            sys.exit(f"error: {FILE}: section {name}: no line `sha256 = \"…\"` below its heading")
    FILE.write_text(text)


def main(command, *names):
    known = sections()
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"error: {FILE}: there is no section {unknown[0]}")
    due = {name: now for name, section in known.items() if (now := digest(name, section)) != section["sha256"]}
    match command:
        case "names":
            print(*known, sep="\n")
        case "due":
            print(*due, sep="\n")
        case "show":
            for name, now in due.items():
                print(f'[{name}]\nsha256 = "{now}"')
        case "record":
            record(names)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(*(sys.argv[1:] or [""]))
