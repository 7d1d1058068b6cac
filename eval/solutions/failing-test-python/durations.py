"""Durations as people write them: `1h 30m`."""

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def parse(text):
    """Returns the seconds of a text such as `1d 2h`."""
    total = 0
    for part in text.split():
        total += int(part[:-1]) * UNITS[part[-1]]
    return total


def render(seconds):
    """Returns the text of a number of seconds, the largest unit first."""
    parts = []
    for unit, size in UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"
