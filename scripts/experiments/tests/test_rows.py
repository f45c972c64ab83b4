"""Repeats become one row, and say how far they are apart."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import pyarrow.parquet
import rows as tables
import steps


def row(fetches: str, repeat: int, **others: str) -> dict:
    return dict.fromkeys(tables.KEY, "x") | {"fetches": fetches, "repeat": str(repeat), "status": "ok"} | others


class Summaries(unittest.TestCase):
    def test_the_row_of_the_median_run_stands_for_all(self):
        (one,) = tables.summarise([row("300", 1), row("100", 2), row("110", 3)])
        self.assertEqual((one["fetches"], one["repeat"], one["runs"]), ("110", "3", 3))
        self.assertEqual((one["fetches_min"], one["fetches_max"]), (100, 300))
        self.assertEqual(one["fetches_spread"], f"{200 / 110:.6f}")

    def test_of_two_runs_the_lower_stands_for_both(self):
        (one,) = tables.summarise([row("300", 1), row("100", 2)])
        self.assertEqual(one["fetches"], "100")

    def test_one_run_has_no_spread(self):
        (one,) = tables.summarise([row("300", 1)])
        self.assertEqual((one["runs"], one["fetches_spread"]), (1, ""))

    def test_settings_are_not_mixed(self):
        self.assertEqual(len(tables.summarise([row("300", 1), row("100", 1, heuristic="minpc")])), 2)

    def test_a_deadlock_stays_a_row_without_numbers(self):
        (one,) = tables.summarise([row("", 1, status="deadlock"), row("", 2, status="deadlock")])
        self.assertEqual((one["status"], one["fetches"], one["runs"]), ("deadlock", "", 2))


class Outputs(unittest.TestCase):
    def test_what_changes_from_run_to_run_is_not_compared(self):
        first = steps.printed([b"sum 5\ntime 1", b"sum 5\ntime 2", b"sum 5\ntime 1"])
        self.assertEqual(first, ["sum 5", steps.VARIES])
        self.assertEqual(tables.compared(first, ["sum 5", "time 9"]), "same")
        self.assertEqual(tables.compared(first, ["sum 6", "time 9"]), "other")
        self.assertEqual(tables.compared(first, ["sum 5", "time 9", "more"]), "other")
        self.assertEqual(tables.compared([steps.VARIES], ["time 9"]), "")

    def test_of_runs_that_print_more_lines_than_others_nothing_is_known(self):
        varies = steps.printed([b"a", b"a\nb"])
        self.assertEqual(varies, [steps.VARIES])
        self.assertEqual(tables.compared(varies, ["a", "b"]), "")


class Files(unittest.TestCase):
    def test_parquet_holds_the_same_with_types(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            tables.write(folder / "r.csv", [row("300", 1, simt_efficiency="0.5"), row("", 2, simt_efficiency="")])
            tables.write_parquet(folder / "r.csv", folder / "r.parquet")
            read = pyarrow.parquet.read_table(folder / "r.parquet").to_pydict()
            self.assertEqual((read["fetches"], read["simt_efficiency"]), ([300, None], [0.5, None]))
            self.assertEqual([p.name for p in folder.iterdir() if p.name.startswith(".")], [])


if __name__ == "__main__":
    unittest.main()
