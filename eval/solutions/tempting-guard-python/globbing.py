"""Matches paths against patterns."""


def matches(pattern, text):
    """Returns whether a pattern describes a text: the states that a prefix leads to are followed at once."""
    tokens = list(_tokens(pattern))
    states = _closed({0}, tokens)
    for char in text:
        following = set()
        for state in states:
            if state < len(tokens):
                repeats, takes = tokens[state]
                if takes(char):
                    following.add(state if repeats else state + 1)
        states = _closed(following, tokens)
    return len(tokens) in states


def _closed(states, tokens):
    states = set(states)
    for state in range(len(tokens)):
        if state in states and tokens[state][0]:
            states.add(state + 1)
    return states


def _tokens(pattern):
    at = 0
    while at < len(pattern):
        char = pattern[at]
        close = pattern.find("]", at + 2) if char == "[" else -1
        if pattern.startswith("**", at):
            yield True, lambda char: True
            at += 2
        elif char == "*":
            yield True, lambda char: char != "/"
            at += 1
        elif char == "?":
            yield False, lambda char: char != "/"
            at += 1
        elif close > 0:
            yield False, _set(pattern[at + 1 : close])
            at = close + 1
        else:
            yield False, lambda found, char=char: found == char
            at += 1


def _set(body):
    negated = body.startswith("!")
    body = body[1:] if negated else body
    members = set()
    at = 0
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            members.update(chr(code) for code in range(ord(body[at]), ord(body[at + 2]) + 1))
            at += 3
        else:
            members.add(body[at])
            at += 1
    return lambda char: char != "/" and (char in members) != negated
