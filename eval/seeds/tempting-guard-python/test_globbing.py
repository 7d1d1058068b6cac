import unittest

from globbing import matches


class Matches(unittest.TestCase):
    def test_a_star_stands_for_anything(self):
        self.assertIs(matches("*.py", "a.py"), True)

    def test_other_characters_stand_for_themselves(self):
        self.assertIs(matches("a.py", "b.py"), False)
