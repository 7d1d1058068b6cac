import unittest

from durations import parse, render


class Durations(unittest.TestCase):
    def test_parts_are_added_up(self):
        self.assertEqual(parse("1h 30m"), 5400)

    def test_one_part_is_enough(self):
        self.assertEqual(parse("90m"), 5400)

    def test_whole_hours_are_rendered(self):
        self.assertEqual(render(7200), "2h")


if __name__ == "__main__":
    unittest.main()
