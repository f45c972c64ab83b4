"""Runs of scripts/experiment for tests: started, broken off, looked at."""

import atexit
import csv
import os
import signal
import subprocess
import tempfile
import time
from itertools import product
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND = HERE.parents[1] / "experiment"
#: How often each program runs: once, unless `scripts/check --whole` sets LOCKSTEP_WHOLE.
REPEATS = 2 if "LOCKSTEP_WHOLE" in os.environ else 1
_scratch = tempfile.TemporaryDirectory()
atexit.register(_scratch.cleanup)
SMALL = Path(_scratch.name) / "small.toml"
SMALL.write_text((HERE / "small.toml").read_text().replace("repeats = 2", f"repeats = {REPEATS}"))
#: What the rows of small.toml must be rows of.
WANTED = sorted(product(("diamond", "loops"), ("2", "4"), ("1", "2")[:REPEATS], ("threads", "2"), ("minpc", "ipdom:placement=binary,predicate=0")))


def start(folder: Path, *options: str, matrix: Path = SMALL, more: tuple = ()) -> subprocess.Popen:
    """Starts an experiment in a session of its own, its output in FOLDER.log."""
    with open(f"{folder}.log", "ab") as log:
        command = [COMMAND, *options, "--output", folder, matrix, *more]
        return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)


def run(folder: Path, *options: str, matrix: Path = SMALL, more: tuple = ()) -> int:
    """Runs an experiment to its end."""
    return start(folder, *options, matrix=matrix, more=more).wait(timeout=600)


def said(folder: Path) -> str:
    """What it printed so far."""
    return Path(f"{folder}.log").read_text(errors="replace")


def found(folder: Path, pattern: str) -> list[Path]:
    """Files that there are."""
    return sorted(folder.glob(pattern))


def wait_for(condition, what: str, seconds: float = 300) -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def processes(word: str) -> list[int]:
    """Processes that have a word in their command line."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    pids.append(int(entry.name))
            except OSError:
                pass
    return pids


def kill(pids: list[int]) -> None:
    """Kills processes at once."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def keys(folder: Path) -> list[tuple]:
    """What the rows are rows of, in order."""
    with open(folder / "rows.csv", newline="", encoding="utf-8") as file:
        columns = ("program", "thread_count", "repeat", "width", "heuristic")
        return sorted(tuple(row[column] for column in columns) for row in csv.DictReader(file))


def figures(folder: Path) -> list[tuple]:
    """The counts, which are the same in each run of these programs."""
    with open(folder / "rows.csv", newline="", encoding="utf-8") as file:
        columns = ("program", "thread_count", "repeat", "width", "heuristic", "fetches", "thread_instructions")
        return sorted(tuple(row[column] for column in columns) for row in csv.DictReader(file))
