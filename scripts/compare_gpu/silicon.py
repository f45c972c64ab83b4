"""What an H200 counted instruction by instruction, for the very code that the reference replays."""

import csv

import toolchain

COUNTS = toolchain.ROOT / "results" / "2026-11-28-silicon" / "instructions.tsv"


def counts(name: str) -> dict[int, tuple[int, int]]:
    """Of each instruction of a kernel, by address: how often warps and threads ran it. Empty where none were counted."""
    found = {}
    with COUNTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["kernel"] == name:
                for at in range(int(row["instructions"])):
                    found[int(row["address"]) + 16 * at] = int(row["warp"]), int(row["thread"])
    return found


def unlike(name: str, rows: list, replayed) -> int | str:
    """How many instructions the replay (reference.Counts) has run otherwise than the GPU; nothing without its counts."""
    counted = counts(name)
    if not counted:
        return ""
    return sum(
        counted.get(row.address + 16 * at) != (replayed.groups[number], replayed.threads[number])
        for number, row in enumerate(rows)
        for at in range(row.count)
    )
