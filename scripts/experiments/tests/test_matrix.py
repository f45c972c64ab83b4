"""What a matrix file may say, and what is told about one that is wrong."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import matrix as matrices

GOOD = """
threads = [2, 4]
repeats = 2
transforms = ["none", "fcs"]
warp_widths = ["threads", 8]
locks = ["serialize", "drop"]
[[program]]
name = "fft"
workload = "fft"
arguments = ["-p", "{threads}"]
inputs = { small = "-m 8", large = "-m 12" }
[[program]]
name = "xz"
binary = "/usr/bin/xz"
transforms = ["plain"]
threads = [1]
"""


def read(text: str) -> matrices.Matrix:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.toml"
        path.write_text(text)
        return matrices.read(path)


class Spreading(unittest.TestCase):
    def test_a_matrix_is_the_product_of_its_lists(self):
        matrix = read(GOOD)
        self.assertEqual(list(matrix.builds), ["fft-none-ordered", "fft-fcs-ordered", "xz-plain-default"])
        # 2 builds x 2 inputs x 2 thread counts x 2 repeats, and xz twice.
        self.assertEqual(len(matrix.runs), 16 + 2)
        self.assertEqual(len(matrix.replays), 18 * 4)
        run = matrix.runs["fft-fcs-ordered-large-p4-r2"]
        self.assertEqual(run.arguments, ("-p", "4", "-m", "12"))
        replay = matrix.replays["fft-fcs-ordered-large-p4-r2-w8-consecutive-drop"]
        self.assertEqual(replay.options[-2:], ("--warp-size", "8"))
        self.assertNotIn("--warp-size", matrix.replays["xz-plain-default-p1-r1-wthreads-consecutive-drop"].options)

    def test_a_pass_with_a_parameter_has_a_name_that_files_can_have(self):
        matrix = read(GOOD.replace('"fcs"', '"fcs:threshold=8,layout"'))
        self.assertEqual(list(matrix.builds)[1], "fft-fcs+threshold+8+layout-ordered")
        self.assertEqual(matrix.builds["fft-fcs+threshold+8+layout-ordered"].transform, "fcs:threshold=8,layout")

    def test_divergent_instructions_of_each_program_are_the_first_charts(self):
        chart = '[[chart]]\nname = "fft"\nkind = "efficiency"\n'
        charts = read(GOOD + chart).charts
        self.assertEqual(list(charts), [f"divergent-{p}-{l}" for p in ("fft", "xz") for l in ("serialize", "drop")] + ["fft"])
        first = charts["divergent-fft-serialize"]
        self.assertEqual(first.kind, "divergent")
        self.assertEqual(dict(first.where), {"program": "fft", "width": "threads", "group": "consecutive", "locks": "serialize"})
        with self.assertRaisesRegex(matrices.MatrixError, "divergent-xz-drop.*choose another"):
            read(GOOD + chart.replace("fft", "divergent-xz-drop"))

    def test_every_matrix_that_ships_is_right(self):
        files = sorted((Path(matrices.__file__).parent / "matrices").glob("*.toml"))
        self.assertTrue(files)
        for file in files:
            with self.subTest(file.name):
                self.assertTrue(matrices.read(file).replays)


class Faults(unittest.TestCase):
    def check(self, old: str, new: str, *words: str):
        self.assertIn(old, GOOD)
        with self.assertRaises(matrices.MatrixError) as caught:
            read(GOOD.replace(old, new, 1))
        for word in ("m.toml", *words):
            self.assertIn(word, str(caught.exception))

    def test_each_fault_is_named_with_its_place(self):
        self.check("repeats = 2", "repeat = 2", "no key 'repeat'", "repeats")
        self.check("repeats = 2", "repeats = 0", "repeats is 0")
        self.check("repeats = 2", "repeats = true", "must be a int")
        self.check("repeats = 2", "repeats = 2\nlimits = { time = '5 minutes' }", "time is '5 minutes'", "90s")
        self.check("repeats = 2", "repeats = 2\nlimits = { memory = '0GiB' }", "memory is '0GiB'")
        self.check("threads = [2, 4]", "threads = []", "threads is empty")
        self.check("threads = [2, 4]", "threads = [2, 2]", "comes out twice")
        self.check("threads = [2, 4]", "threads = ['all']", "program 'fft'", "list of numbers")
        self.check("[2, 4]", "[2, 4", "line")
        self.check('workload = "fft"', "", "one of workload, sources, binary and suite")
        self.check('workload = "fft"', 'suite = "apps/fft"', "suite and target go together")
        self.check('workload = "fft"', 'workload = "fft"\nmake = ["all"]', "make is for a program of a suite")
        self.check('workload = "fft"', 'workload = "fft"\nunpack = ["a.tar"]', "unpack is for a program of a suite")
        parts = 'suite = "apps/fft"\ntarget = "fft"\nparts = ["apps/f"]'
        self.check('workload = "fft"', parts, "suite must lie in one")
        self.check('workload = "fft"', 'workload = "fft"\nstdin = "a"\ntyped = "b"', "give one")
        self.check('name = "fft"', 'name = "../fft"', "must be of letters")
        self.check('name = "xz"', 'name = "fft"', "stands twice")
        self.check('transforms = ["plain"]', 'transforms = ["fcs"]', "not rebuilt")
        self.check('"threads", 8', '"wide", 8', "warp_widths")

    def test_a_missing_file_is_named(self):
        with self.assertRaises(matrices.MatrixError) as caught:
            matrices.read(Path("none.toml"))
        self.assertIn("none.toml: No such file", str(caught.exception))

    def test_a_file_without_programs_is_refused(self):
        with self.assertRaises(matrices.MatrixError):
            read("repeats = 2")


if __name__ == "__main__":
    unittest.main()
