"""A file of records, one JSON object per line."""

import json
import os


class Log:
    def __init__(self, path):
        self.path = path

    def read(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path, "rb") as file:
            lines = file.read().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def append(self, record):
        with open(self.path, "a+b") as file:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            file.truncate(whole)
            file.write(json.dumps(record).encode() + b"\n")
