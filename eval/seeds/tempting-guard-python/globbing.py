"""Matches paths against patterns."""


def matches(pattern, text):
    """Returns whether a pattern describes a text."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(matches(pattern[1:], text[at:]) for at in range(len(text) + 1))
    return bool(text) and pattern[0] == text[0] and matches(pattern[1:], text[1:])
