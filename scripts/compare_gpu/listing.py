"""The control flow of a kernel in NVIDIA's machine code (SASS), read from nvdisasm's listing, and as a plain table.

A table has a row for each run of like instructions:

    address  block  kind  count  guard  barrier  target

`address` is the first one's offset in the function. `block` is the block of the IR that the instructions come from.
`kind` is `plain`, `store` (to memory that other code can see), `bssy`, `bsync`, `break`, `warpsync`, `bra` or
`exit`. `guard` is what each depends on, empty where they run for all lanes: a predicate, or two joined by &.
`barrier` is the number of a convergence barrier, `target` an address.
"""

import re
from dataclasses import dataclass

INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
LABEL = re.compile(r"^(\.L_x_\d+):")
LINE = re.compile(r'//## File "[^"]*", line (\d+)')
TARGET = re.compile(r"`\((\.L_x_\d+)\)")
BARRIER = re.compile(r"\bB(\d+)\b")
FIRST_PREDICATE = re.compile(r"^(!?U?P[0-9]+)\s*,")
COLUMNS = ("address", "block", "kind", "count", "guard", "barrier", "target")
#: Kinds that end a row by themselves: control flow.
CONTROL = ("bssy", "bsync", "break", "warpsync", "bra", "exit", "call")
NOTHING = -1


class ListingError(Exception):
    """What in a listing is not understood."""


@dataclass
class Row:
    """A run of like instructions, or one of control flow; see the module for the columns."""

    address: int
    block: int
    kind: str
    count: int = 1
    guard: str = ""
    barrier: int = NOTHING
    target: int = NOTHING


def kind_of(operation: str) -> str:
    """The kind of an instruction by its name."""
    name = operation.split(".")[0]
    if name in ("BSSY", "BSYNC", "BREAK", "BRA", "EXIT"):
        return name.lower()
    if operation == "WARPSYNC.ALL":
        return "warpsync"
    if name in ("CALL", "RET", "BRX", "JMP", "JMX", "BMOV", "WARPSYNC", "YIELD", "BPT", "KILL", "NANOSLEEP"):
        return "call"
    return "store" if name in ("ST", "STG") else "plain"


def parse(listing: str) -> list[Row]:
    """The rows of the function `kernel`, without what stands behind its last instruction to fill it up."""
    rows: list[Row] = []
    labels: dict[str, int] = {}
    waiting: list[str] = []
    targets: list[tuple[Row, str]] = []
    block, inside, fresh = 0, False, True
    for text in listing.splitlines():
        if text.startswith("\t.section"):
            inside = ".text.kernel" in text
        if not inside:
            continue
        line, label, instruction = LINE.search(text), LABEL.match(text), INSTRUCTION.match(text)
        if line:
            block = int(line[1]) - 1
        elif label:
            waiting.append(label[1])
            fresh = True
        elif instruction:
            address, guard, operation, operands = (
                int(instruction[1], 16),
                instruction[2] or "",
                instruction[3],
                instruction[4],
            )
            kind = kind_of(operation)
            for name in waiting:
                labels[name] = address
            target = TARGET.search(operands)
            if kind == "bra" and waiting and target and target[1] in waiting and not guard:
                break
            waiting = []
            barrier = NOTHING
            if kind in ("bra", "break"):
                second = FIRST_PREDICATE.match(operands)
                if second:
                    guard = "&".join(part for part in (guard, second[1]) if part)
            if kind in ("bssy", "bsync", "break"):
                barrier = int(BARRIER.search(operands)[1])
            if kind == "call":
                raise ListingError(f"{operation} at {address:#x} is not followed")
            last = rows[-1] if rows else None
            if (
                kind not in CONTROL
                and not fresh
                and last
                and (last.block, last.kind, last.guard) == (block, kind, guard)
            ):
                last.count += 1
                continue
            rows.append(Row(address, block, kind, 1, guard, barrier))
            fresh = False
            if target:
                targets.append((rows[-1], target[1]))
    for row, name in targets:
        row.target = labels[name]
    return rows


def to_table(rows: list[Row]) -> str:
    """The rows as tab-separated values with a head."""
    lines = ["\t".join(COLUMNS)]
    for row in rows:
        barrier, target = ("" if value == NOTHING else value for value in (row.barrier, row.target))
        lines.append(f"{row.address}\t{row.block}\t{row.kind}\t{row.count}\t{row.guard}\t{barrier}\t{target}")
    return "\n".join(lines) + "\n"


def from_table(text: str) -> list[Row]:
    """What to_table() wrote."""
    rows = []
    for line in text.splitlines()[1:]:
        address, block, kind, count, guard, barrier, target = line.split("\t")
        rows.append(
            Row(int(address), int(block), kind, int(count), guard, int(barrier or NOTHING), int(target or NOTHING))
        )
    return rows
