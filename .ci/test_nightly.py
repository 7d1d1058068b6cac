"""Tests of nightly.py: in a repository of their own, with the script as it is."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("nightly.py")
SECTIONS = """# kept
[one]
files = ["a.txt", "src/**"]
sha256 = ""

[two]
files = ["b.txt"]
sha256 = ""
"""


class Nightly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / ".ci").mkdir()
        (self.root / "src/deep").mkdir(parents=True)
        shutil.copy(SCRIPT, self.root / ".ci")
        for path, text in [("a.txt", "a"), ("b.txt", "b"), ("src/deep/c.txt", "c"), (".ci/nightly.toml", SECTIONS)]:
            (self.root / path).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        self.add()

    def add(self):
        subprocess.run(["git", "add", "-A"], cwd=self.root, check=True)

    def run_script(self, *words):
        command = [sys.executable, self.root / ".ci/nightly.py", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=self.root / "src", check=False)

    def due(self):
        return self.run_script("due").stdout.split()

    def test_a_section_is_due_until_it_is_recorded_and_again_when_a_file_of_it_changes(self):
        self.assertEqual(self.due(), ["one", "two"])
        self.assertEqual(self.run_script("record", "one").returncode, 0)
        self.assertEqual(self.due(), ["two"])
        self.assertEqual(self.run_script("record", "two").returncode, 0)
        self.assertEqual(self.due(), [])
        (self.root / "src/deep/c.txt").write_text("changed")
        self.assertEqual(self.due(), ["one"], "it need not be staged")
        self.add()
        self.assertEqual(self.due(), ["one"])
        self.assertRegex(self.run_script("show").stdout, r'^\[one\]\nsha256 = "[0-9a-f]{64}"\n$')

    def test_recording_leaves_the_rest_of_the_file_as_it_is(self):
        self.run_script("record", "two")
        text = (self.root / ".ci/nightly.toml").read_text()
        self.assertTrue(text.startswith(SECTIONS[: SECTIONS.rindex('sha256 = ""')]), text)

    def test_what_cannot_be_right_fails(self):
        self.assertIn("there is no section three", self.run_script("record", "three").stderr)
        for wrong in ['[one]\nfiles = ["gone/**"]\nsha256 = ""\n', "[one]\nsha256 = 1\n", '[one]\nfiles = []\nsha256 = ""\n']:
            (self.root / ".ci/nightly.toml").write_text(wrong)
            answer = self.run_script("due")
            self.assertNotEqual(answer.returncode, 0, wrong)
            self.assertIn("section one", answer.stderr)


if __name__ == "__main__":
    unittest.main()
