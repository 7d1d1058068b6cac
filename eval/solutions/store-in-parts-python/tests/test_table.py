import os
import tempfile
import unittest

from store.table import Table


class TableTest(unittest.TestCase):
    def test_content_is_kept(self):
        path = os.path.join(tempfile.mkdtemp(), "t")
        table = Table(path)
        table.set("a", 1)
        table.set("b", 2)
        table.delete("a")
        table.compact()
        self.assertEqual(Table(path).keys(), ["b"])
