"""The command line."""

import sys

from store.table import Table

WORDS = {"get": 1, "set": 2, "delete": 1, "keys": 0, "compact": 0}


def main(arguments):
    if len(arguments) < 2 or WORDS.get(arguments[1]) != len(arguments) - 2:
        print("usage: python3 -m store FILE get|set|delete|keys|compact [KEY [VALUE]]", file=sys.stderr)
        return 2
    table, word, rest = Table(arguments[0]), arguments[1], arguments[2:]
    if word in ("get", "delete") and rest[0] not in table.keys():
        return 1
    if word == "get":
        print(table.get(*rest))
    elif word == "keys":
        print("".join(key + "\n" for key in table.keys()), end="")
    else:
        getattr(table, word)(*rest)
    return 0


sys.exit(main(sys.argv[1:]))
