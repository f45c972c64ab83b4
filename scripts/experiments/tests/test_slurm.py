"""The same experiment as jobs of a real Slurm: one is cancelled, and the next run makes what is missing.

Slurm must be installed (slurm-wlm) and this be run as root: else the test is skipped, and says so.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import experiment

#: Of small.toml one run of each program, and a program that is slow enough to be met while it runs.
MATRIX = (
    experiment.SMALL.read_text().replace("threads = [2, 4]", "threads = [4]").replace("repeats = 2", "repeats = 1")
    + '[[program]]\nname = "sleep"\nbinary = "/bin/sleep"\narguments = ["10"]\nregion = "all"\n'
)
#: The test's Slurm keeps no accounts, so that squeue is asked how jobs are, and soon.
STATUS_CHECKS = ("--", "--slurm-status-command", "squeue", "--seconds-between-status-checks", "1")
STATUS_CHECKS += ("--slurm-init-seconds-before-status-checks", "1")


def installed() -> bool:
    """Whether Slurm's parts are there, and may be started."""
    places = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return os.geteuid() == 0 and all(shutil.which(p, path=places) for p in ("slurmctld", "slurmd", "munged", "sbatch"))


def within_slurm(folder: Path) -> None:
    """The test itself; SLURM_CONF names the cluster."""
    matrix = folder / "jobs.toml"
    matrix.write_text(MATRIX)
    out = folder / "out"
    first = experiment.start(out, "--profile", "slurm", matrix=matrix, more=STATUS_CHECKS)
    command = ["squeue", "--noheader", "--states=RUNNING", "--format=%i %k"]
    cancelled = ""
    end = time.monotonic() + 200
    while not cancelled and first.poll() is None and time.monotonic() < end:
        running = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for line in running.splitlines():
            if "trace" in line and "sleep" in line:
                cancelled = line.split()[0]
        time.sleep(0.2)
    assert cancelled, "no job of the slow program was met\n" + experiment.said(out)
    subprocess.run(["scancel", cancelled], check=True)
    status = first.wait(timeout=300)
    said = experiment.said(out)
    assert status == 1, f"status {status}\n{said}"
    assert "logs/trace/sleep-plain-default-p4-r1.log" in said, said
    assert not (out / "rows.csv").exists()
    made = {path: path.stat().st_mtime_ns for path in experiment.found(out, "replays/*/rows.csv")}
    assert len(made) == 4, f"{made}\n{said}"

    status = experiment.run(out, "--profile", "slurm", matrix=matrix, more=STATUS_CHECKS)
    assert status == 0, experiment.said(out)
    assert made == {path: path.stat().st_mtime_ns for path in made}, "what was done was done again"
    wanted = [key for key in experiment.WANTED if key[1:3] == ("4", "1")]
    wanted += [("sleep", "4", "1", width, model) for width in ("threads", "2") for model in ("minpc", "ipdom:placement=binary,predicate=0")]
    assert experiment.keys(out) == sorted(wanted), experiment.keys(out)


class OnSlurm(unittest.TestCase):
    def test_a_cancelled_job_is_named_and_made_again(self):
        if not installed():
            self.skipTest("needs slurm-wlm and root: not tested")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            scratch = Path(scratch)
            command = [Path(__file__).with_name("one-node-slurm"), scratch / "slurm", sys.executable, __file__, scratch]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 75:
                self.skipTest(f"Slurm does not start on this machine: {done.stderr}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    within_slurm(Path(sys.argv[1]))
