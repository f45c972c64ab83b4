"""The list of kernels, in workloads/gpu-kernels/kernels.tsv."""

import csv
from dataclasses import dataclass

import toolchain


@dataclass
class Listed:
    """A line of the list: file name without .c, lanes, `tuned` or `held-out`, and what kind of control flow it has."""

    name: str
    lanes: int
    set: str
    kind: str


def listed() -> list[Listed]:
    """All kernels, in the order of the list."""
    with open(toolchain.KERNELS / "kernels.tsv", encoding="utf-8", newline="") as file:
        return [
            Listed(row["name"], int(row["lanes"]), row["set"], row["kind"])
            for row in csv.DictReader(file, delimiter="\t")
        ]
