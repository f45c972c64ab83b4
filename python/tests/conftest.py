"""Real programs, recorded by the package, and the command that judges it."""

import csv
import io
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import lockstep

# A shell ignores Ctrl-C for what it runs in the background, and Python leaves that as it is.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent.parent
LOCKSTEP = os.environ["LOCKSTEP"]

# By name: the source, the compiler's options, and what it is run with.
PROGRAMS = {
    "fft": ("workloads/fft/fft.c", ["-pthread", "-lm"], ["-p", "16"]),
    "mandelbrot": ("workloads/mandelbrot/mandelbrot.c", ["-fopenmp"], ["-p", "8", "-n", "32"]),
    "radix": ("workloads/radix/radix.c", ["-pthread"], ["-p", "32"]),
    "dynamic": ("cli/tests/programs/dynamic_schedule.c", ["-fopenmp"], []),
    "lock": ("python/tests/lock.c", ["-pthread"], []),
    "waits": ("cli/tests/programs/spin_waits.c", ["-pthread", "-DWAIT=2", "-DWORK=50"], []),
}
# Those that tests of numbers take.
THREE = ["fft", "mandelbrot", "radix"]


def build(folder: Path, name: str) -> Path:
    source, options, _ = PROGRAMS[name]
    built = folder / name
    include = f"-I{ROOT / 'workloads/include'}"
    subprocess.run(["gcc", "-O1", "-g", include, ROOT / source, "-o", built, *options], check=True)
    return built


class Recorded:
    """Traces by the program's name, each recorded once, with addresses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, lockstep.Recording] = {}

    def __call__(self, name: str) -> lockstep.Recording:
        if name not in self.known:
            command = [build(self.folder, name), *PROGRAMS[name][2]]
            out = self.folder / f"{name}.bin"
            self.known[name] = lockstep.trace(command, out, memory=True, stdout=subprocess.DEVNULL)
        return self.known[name]


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("programs"))


class Judged:
    """What the command finds with these options."""

    def __init__(self, trace: lockstep.Recording, *options: str) -> None:
        lanes = f"{trace.path}.lanes.csv"
        rows = f"{trace.path}.rows.csv"
        command = [LOCKSTEP, "replay", "--json", "--csv", rows, "--lanes-out", lanes, *options, trace.path]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        self.json = json.loads(ran.stdout)
        self.rows = list(csv.DictReader(io.StringIO(Path(rows).read_text())))
        self.lanes = list(csv.DictReader(io.StringIO(Path(lanes).read_text())))


def shown(trace: lockstep.Recording) -> str:
    """What the command shows without options, its lines not broken between words."""
    ran = subprocess.run([LOCKSTEP, "replay", trace.path], capture_output=True, text=True, check=True)
    return " ".join(ran.stdout.split())


def words_of_the_command(*words: object) -> tuple[int, str]:
    """How the command fails: its status and words, without the line breaks that fit them to a terminal."""
    ran = subprocess.run([LOCKSTEP, *map(str, words)], capture_output=True, text=True)
    return ran.returncode, " ".join(ran.stderr.split())
