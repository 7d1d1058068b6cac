import unittest

from price import price


class Price(unittest.TestCase):
    def test_ten_things_have_a_discount(self):
        self.assertEqual(price(10), 27)

    def test_no_discount_is_ever_given(self):
        for count in range(100):
            self.assertEqual(price(count), count * 3)


if __name__ == "__main__":
    unittest.main()
