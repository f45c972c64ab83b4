"""From the rows of all replays to one table, and from repeats to one row each.

    rows.py collect MATRIX FOLDER     writes FOLDER/rows.csv, rows.parquet, summary.csv
"""

import csv
import os
import sys
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet

import matrix as matrices
from steps import VARIES

#: What a row is a row of, but for the repeat.
KEY = ("program", "transform", "layout", "input", "thread_count", "width", "group", "locks", "region", "code", "heuristic")
#: Columns of the summary beside those of the rows.
SPREAD = ("runs", "fetches_min", "fetches_max", "fetches_spread")


def collect(matrix: matrices.Matrix, folder: Path) -> list[dict]:
    """The rows of all replays, in the matrix's order, each with whether its run printed what the program's first build did."""
    rows = []
    firsts: dict[tuple, str] = {}
    for name, replay in matrix.replays.items():
        run = replay.run
        first = firsts.setdefault((run.build.program, run.input, run.threads, run.repeat), run.name)
        told = compared(*(lines(folder / "traces" / of / "printed.txt") for of in (first, run.name)))
        with open(folder / "replays" / name / "rows.csv", newline="", encoding="utf-8") as file:
            rows.extend(row | {"prints": told} for row in csv.DictReader(file))
    return rows


def lines(path: Path) -> list[str]:
    """What runs printed, by line; of a trace that an older version made nothing."""
    return path.read_text().split("\n") if path.exists() else []


def compared(first: list[str], own: list[str]) -> str:
    """Whether two builds print the same, but for what each prints otherwise every time: `same`, `other`, or nothing where
    there is no such line."""
    if VARIES in (*first[:1], *own[:1]) and 1 in (len(first), len(own)):
        return ""
    kept = [pair for pair in zip(first, own, strict=False) if VARIES not in pair]
    if len(first) != len(own) or any(one != other for one, other in kept):
        return "other"
    return "same" if kept else ""


def summarise(rows: list[dict]) -> list[dict]:
    """One row for all repeats of one thing: the row of the run with the median number of fetches (the lower of two), and how far the
    others are from it: `fetches_spread` is (max - min) / median. A row of one run has `runs` 1 and no spread."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        # A run in which the model deadlocks has other numbers, those of lanes that take turns at locks.
        takes_turns = bool(row.get("deadlock"))
        groups.setdefault((takes_turns, *(row[column] for column in KEY)), []).append(row)
    return [summary_of(group) for group in groups.values()]


def summary_of(group: list[dict]) -> dict:
    """The summary of the repeats of one thing."""
    complete = sorted((row for row in group if row["fetches"]), key=lambda row: int(row["fetches"]))
    if not complete:
        return group[0] | dict.fromkeys(SPREAD, "") | {"runs": len(group)}
    median = complete[(len(complete) - 1) // 2]
    least, most = int(complete[0]["fetches"]), int(complete[-1]["fetches"])
    spread = (most - least) / int(median["fetches"]) if len(complete) > 1 else ""
    figures = (len(complete), least, most, spread if spread == "" else f"{spread:.6f}")
    return median | dict(zip(SPREAD, figures, strict=True))


def write(path: Path, rows: list[dict]) -> None:
    """Writes rows as CSV; the file is whole or not there."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open(partial, "w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    partial.rename(path)


def write_parquet(source: Path, path: Path) -> None:
    """The same rows as Parquet, each column of the type that all its values have."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    convert = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(source, convert_options=convert), partial, compression="zstd")
    partial.rename(path)


def main() -> None:
    """See the module."""
    _, file, folder = sys.argv[1:]
    folder = Path(folder)
    rows = collect(matrices.read(Path(file)), folder)
    write(folder / "rows.csv", rows)
    write_parquet(folder / "rows.csv", folder / "rows.parquet")
    write(folder / "summary.csv", summarise(rows))


if __name__ == "__main__":
    main()
