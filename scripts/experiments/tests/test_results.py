"""The charts in results/ are remade, byte for byte, by the commands that their pages name."""

import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import steps

RESULTS = steps.ROOT / "results"


def commands(page: Path) -> list[list[str]]:
    """The `lockstep plot` commands of a page."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("lockstep plot summary.csv ")]


class Charts(unittest.TestCase):
    def test_each_chart_is_remade_byte_for_byte(self):
        folders = [path.parent for path in sorted(RESULTS.glob("*/summary.csv"))]
        self.assertTrue(folders)
        for folder in folders:
            remade = set()
            for words in commands(folder / "README.md"):
                with self.subTest(folder=folder.name, chart=words[-1]), tempfile.TemporaryDirectory() as scratch:
                    chart, made = words[-1], Path(scratch) / "chart.svg"
                    subprocess.run([steps.tool("lockstep"), *words[:-1], made], cwd=folder, check=True)
                    self.assertEqual(made.read_bytes(), (folder / chart).read_bytes())
                    remade.add(folder / chart)
            self.assertEqual(remade, set((folder / "charts").iterdir()), f"{folder.name}: charts without a command")


if __name__ == "__main__":
    unittest.main()
