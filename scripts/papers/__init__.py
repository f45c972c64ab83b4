"""What the scripts of papers share: command lines, programs built by a pass, traces, replays to rows, means and tables.

A script runs from the root of the repository, and whatever its commands write lies in WORK, which goes when it ends.
"""

import argparse
import atexit
import contextlib
import csv
import functools
import itertools
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Clang leaves what both arms do in them, as a GPU's compiler would.
APART = ["-mllvm", "-sink-common-insts=false", "-mllvm", "-hoist-common-insts=false"]
INCLUDES = ["-Iworkloads/include", "-Iinclude"]


def arguments(doc: str, *flags: str, places: dict[str, str | None] | None = None, **values) -> argparse.Namespace:
    """What was typed: flags, `places` (positional words, by how many there may be) and options with a value, by their
    defaults. --help prints the head of the script, and so does a mistake."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(doc.strip())
        sys.exit()
    parser = argparse.ArgumentParser(usage=doc.strip().replace("%", "%%"), add_help=False)
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    for name, default in values.items():
        kind = Path if default is None else type(default)
        parser.add_argument(f"-{name}" if len(name) == 1 else f"--{name}", default=default, type=kind)
    for name, count in (places or {}).items():
        parser.add_argument(name, nargs=count)
    return parser.parse_args()


def stop(why: str) -> None:
    """Ends the script."""
    sys.exit(f"scripts/{Path(sys.argv[0]).name}: {why}")


def run(*command, may_fail: bool = False, **options) -> str | None:
    """What a command prints, which must succeed; none where it fails and may."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT, **options}
    done = subprocess.run([str(word) for word in command], text=True, **options)
    if done.returncode and not may_fail:
        stop(f"{' '.join(map(str, command))}: status {done.returncode}: {(done.stderr or '').strip()[-1000:]}")
    return None if done.returncode else done.stdout


@functools.cache
def work() -> Path:
    """A folder of this run."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


@functools.cache
def binary() -> Path:
    """The `lockstep` that LOCKSTEP names, else that of the release build, which is made."""
    if named := os.environ.get("LOCKSTEP"):
        return Path(named).absolute()
    run("cargo", "build", "--release", "--quiet", "--package", "cli", stderr=None)
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release/lockstep"


def lockstep(*words, **options) -> str | None:
    """What `lockstep` prints."""
    return run(binary(), *words, **options)


def ungated(passes: str) -> str:
    """`linearize` as its paper has it: of all that is unstructured, whether it gains by prediction or not."""
    name, _, words = passes.partition(":")
    return passes if name != "linearize" else ":".join([name, ",".join(["threshold=-1000", *([words] if words else [])])])


def build(source: str | Path, to: Path, passes: str = "none", flags: list = (), how: list = ()) -> Path:
    """A program built by `lockstep cc`, whose own options are in `how`."""
    lockstep("cc", "--transform", passes, *how, "--", "-std=gnu11", *flags, *INCLUDES, source, "-o", to, "-pthread", "-lm")
    return to


def trace(*command, to: str = "trace.bin", memory: bool = True, may_fail: bool = False) -> Path | None:
    """The trace of a program; none where it fails and may."""
    path = work() / to
    made = lockstep("trace", *(["--memory"] if memory else []), "-o", path, "--", *command, may_fail=may_fail)
    return None if made is None else path


def replay(of: Path, *options) -> list[dict]:
    """The rows of a replay."""
    lockstep("replay", *options, "--csv", work() / "rows.csv", of)
    return read(work() / "rows.csv")


def read(file: Path) -> list[dict]:
    """The rows of a file."""
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def write(file: Path | None, rows: Iterable[dict], columns: list[str] | None = None) -> None:
    """Writes rows to a file as they come, else to standard output. What a row does not have is empty."""
    rows = iter(rows)
    if columns is None:
        first = next(rows)
        rows, columns = itertools.chain([first], rows), list(first)
    with file.open("w", newline="", encoding="utf-8") if file else contextlib.nullcontext(sys.stdout) as to:
        writer = csv.DictWriter(to, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def programs(workloads: list[str], threads: int) -> list[tuple[str, str, list[str], list[str]]]:
    """These workloads, benchmarks of melding and kernels: name, source, flags for the compiler, arguments."""
    flags = {"mandelbrot": ["-fopenmp"]}
    found = [(name, f"workloads/{name}/{name}.c", flags.get(name, []), ["-p", str(threads)]) for name in workloads]
    for folder, prefix in (("melding", "melding"), ("gpu-kernels", "kernel")):
        sources = sorted((ROOT / "workloads" / folder).glob("*.c"))
        found += [(f"{prefix}_{source.stem}", str(source.relative_to(ROOT)), [], []) for source in sources]
    return found


def melding() -> list[str]:
    """The benchmarks of control-flow melding."""
    return [source.stem for source in sorted((ROOT / "workloads/melding").glob("*.c"))]


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def ratio(rows: list[dict], column: str) -> float:
    """A column of the first of two rows / that of the second."""
    return int(rows[0][column]) / int(rows[1][column])


def markdown(columns: list, rows: list[list]) -> str:
    """A table; nothing stands behind its last line but the line's end."""
    lines = [columns, *rows]
    written = ["| " + " | ".join(map(str, cells)) + " |" for cells in lines]
    return "\n".join([written[0], "|" + "---|" * len(columns), *written[1:]]) + "\n"
