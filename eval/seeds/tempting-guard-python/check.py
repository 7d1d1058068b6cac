"""The slow check: many patterns against many texts, compared with a table that was made by hand."""

from globbing import matches

TABLE = [
    ("*", "abc", True), ("*", "a/c", False), ("**", "a/c", True), ("a?c", "abc", True), ("a?c", "a/c", False),
    ("[a-c]*", "cat", True), ("[!a-c]*", "cat", False), ("src/**/*.py", "src/a/b/c.py", True), ("src/*.py", "src/a/b.py", False),
    ("*a*a*a*a*a*a*a*a*b", "a" * 40, False), ("a**b", "a/x/b", True), ("[]", "[]", True),
]

for pattern, text, want in TABLE:
    if matches(pattern, text) is not want:
        raise SystemExit(f"FAIL {pattern!r} on {text!r}: wanted {want}")
print(f"{len(TABLE)} patterns are right")
