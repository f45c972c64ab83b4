"""What was broken off goes on: no row is missing, none stands twice, and what was done is not done again."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import experiment


class Resuming(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name) / "out"

    def test_a_killed_experiment_goes_on_where_it_was(self):
        # The matrix is a file of this test's own, so that processes can be told by its path: the same test may run
        # elsewhere on this machine.
        matrix = self.folder.with_name("killed.toml")
        matrix.write_bytes(experiment.SMALL.read_bytes())
        first = experiment.start(self.folder, matrix=matrix)
        experiment.wait_for(
            lambda: len(experiment.found(self.folder, "replays/*/rows.csv")) >= 3 or first.poll() is not None,
            "three replays",
        )
        self.assertIsNone(first.poll(), experiment.said(self.folder))
        experiment.kill([pid for pid in experiment.processes(str(matrix)) if pid != first.pid])
        first.wait(timeout=60)
        self.assertFalse((self.folder / "rows.csv").exists(), "it was killed too late to show anything")
        before = {path: path.stat().st_mtime_ns for path in experiment.found(self.folder, "traces/[!.]*/trace.bin")}

        self.assertEqual(experiment.run(self.folder, matrix=matrix), 0, experiment.said(self.folder))
        self.assertEqual(experiment.keys(self.folder), experiment.WANTED)
        again = [path for path, time in before.items() if path.stat().st_mtime_ns != time]
        # Two steps run at a time: those that were at work when they were killed are made again.
        self.assertLessEqual(len(again), 2, again)
        self.assertEqual(experiment.found(self.folder, "*/.*-*"), [])

        whole = self.folder.with_name("whole")
        self.assertEqual(experiment.run(whole), 0, experiment.said(whole))
        self.assertEqual(experiment.figures(self.folder), experiment.figures(whole))
        chart = "charts/diamond.svg"
        self.assertEqual((self.folder / chart).read_bytes(), (whole / chart).read_bytes())

    def test_a_failing_step_is_named_and_the_others_go_on(self):
        matrix = self.folder.with_name("failing.toml")
        text = experiment.SMALL.read_text()
        matrix.write_text(text + '[[program]]\nname = "broken"\nbinary = "/bin/false"\n')
        self.assertEqual(experiment.run(self.folder, matrix=matrix), 1)
        said = experiment.said(self.folder)
        self.assertIn("ended with status 1", said)
        self.assertIn("logs/trace/broken-plain-default-p2-r1.log", said)
        self.assertEqual(len(experiment.found(self.folder, "replays/*/rows.csv")), 8 * experiment.REPEATS)
        # The same again, mended: only what is missing is made.
        made = {path: path.stat().st_mtime_ns for path in experiment.found(self.folder, "replays/*/rows.csv")}
        matrix.write_text(text)
        self.assertEqual(experiment.run(self.folder, matrix=matrix), 0, experiment.said(self.folder))
        self.assertEqual(experiment.keys(self.folder), experiment.WANTED)
        self.assertEqual(made, {path: path.stat().st_mtime_ns for path in made})

    def test_a_step_that_takes_too_long_is_ended_and_told(self):
        matrix = self.folder.with_name("slow.toml")
        matrix.write_text(
            'limits = { time = "2s" }\nthreads = [1]\n[[program]]\nname = "sleep"\nbinary = "/bin/sleep"\narguments = ["60"]\n'
        )
        self.assertEqual(experiment.run(self.folder, matrix=matrix), 1)
        self.assertIn("ran longer than the limit of 2 s", experiment.said(self.folder))

    def test_wrong_arguments_are_told(self):
        for arguments, words in [
            ([], "which matrix"),
            (["nothing"], "there is no matrix nothing.toml"),
            (["--profile", "none", "quick"], "there is no profile none"),
            (["--fast", "quick"], "no option --fast"),
        ]:
            done = subprocess.run([experiment.COMMAND, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
