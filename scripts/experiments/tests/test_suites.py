"""Programs of a suite: what of it is copied, what make finds, and what a run is held by."""

import hashlib
import os
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import matrix as matrices
import steps

MATRIX = """
environment = { GREETING = "hello" }
[[program]]
name = "tell"
suite = "apps/tell/src"
parts = ["apps/tell/src", "libs"]
target = "tell"
unpack = ["apps/tell/inputs/small.tar"]
arguments = ["words.txt"]
stderr = true
writes = ["out.txt"]
"""
#: Leaves a program that prints to both streams and writes a file.
MAKEFILE = """
tell: ../../../libs/word
\t(echo '#!/bin/sh'; echo "echo $$GREETING; cat $$(cat $<) >out.txt; echo told >&2") >tell
\tchmod +x tell
clean:
\trm -f tell
"""


class Suites(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.suite = self.folder / "suite"
        for part in ("apps/tell/src", "apps/tell/inputs", "libs", "large"):
            (self.suite / part).mkdir(parents=True)
        (self.suite / "apps/tell/src/Makefile").write_text(MAKEFILE)
        (self.suite / "libs/word").write_text("words.txt")
        words = self.folder / "words.txt"
        words.write_text("a b\n")
        with tarfile.open(self.suite / "apps/tell/inputs/small.tar", "w") as archive:
            archive.add(words, "words.txt")
        file = self.folder / "original-tell.toml"
        file.write_text(MATRIX)
        self.matrix = matrices.read(file)
        self.addCleanup(os.environ.pop, "LOCKSTEP_SUITE", None)
        os.environ["LOCKSTEP_SUITE"] = str(self.suite)

    def made(self) -> Path:
        (build,) = self.matrix.builds.values()
        built = self.folder / "built"
        built.mkdir()
        steps.make_of_suite(build, ["cc"], self.matrix.limits, built)
        return built

    def test_parts_are_copied_and_archives_unpacked_where_the_program_runs(self):
        built = self.made()
        self.assertEqual(sorted(path.name for path in (built / "source").iterdir()), ["apps", "libs"])
        self.assertFalse((built / "source/apps/tell/inputs").exists())
        self.assertEqual((built / "source/apps/tell/src/words.txt").read_text(), "a b\n")
        self.assertTrue(os.access(built / "program", os.X_OK))

    def test_a_run_is_held_by_both_streams_and_what_it_writes(self):
        built, (run,) = self.made(), self.matrix.runs.values()
        steps.run_of(run, built, [], self.matrix.limits, self.folder / "printed")
        lines = (self.folder / "printed").read_text().splitlines()
        digest = hashlib.sha256(b"a b\n").hexdigest()
        self.assertEqual(lines, ["hello", "told", f"out.txt: {digest}"])

    def test_an_archive_that_is_missing_is_named(self):
        (self.suite / "apps/tell/inputs/small.tar").unlink()
        with self.assertRaises(steps.StepError) as caught:
            self.made()
        self.assertIn("small.tar of the suite is what tell reads", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
