"""Keys and values on top of a log."""

import os

from store.log import Log


class Table:
    def __init__(self, path):
        self.log = Log(path)
        self.content = {}
        for record in self.log.read():
            if "value" in record:
                self.content[record["key"]] = record["value"]
            else:
                self.content.pop(record["key"], None)

    def get(self, key):
        return self.content.get(key)

    def set(self, key, value):
        self.log.append({"key": key, "value": value})
        self.content[key] = value

    def delete(self, key):
        self.log.append({"key": key})
        self.content.pop(key, None)

    def keys(self):
        return sorted(self.content)

    def compact(self):
        new = Log(self.log.path + ".new")
        open(new.path, "w").close()
        for key in self.keys():
            new.append({"key": key, "value": self.content[key]})
        os.replace(new.path, self.log.path)
