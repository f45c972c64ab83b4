"""A replay under ptxas's regions, weighed with another build's instructions per block of the IR."""

from collections import Counter

import reference


class Weighed:
    """Counts visits of code as reference.Replay makes them, in instructions of `weights` (by block of the IR).

    A stretch of ptxas's code may hold several blocks: arms of which it made predicates, and what stands around
    them. There a group runs the blocks of its lanes one after another, each once for all lanes that enter it."""

    def __init__(self, walks: list, weights: list[int]):
        self.weights = weights
        self.visits = [iter(walk.visits) for walk in walks]
        self.lanes = len(walks)
        self.warp = 0
        self.thread = 0
        #: As thread, with all lanes of a group counted for each block that one of them enters.
        self.active = 0
        #: How often a group runs each block.
        self.runs: Counter = Counter()

    def visit(self, at: int, lanes: list[int]) -> None:
        """A group reaches a row; see reference.Replay."""
        entered: Counter = Counter()
        for lane in lanes:
            row, blocks = next(self.visits[lane])
            if row != at:
                raise reference.ReplayError(f"lane {lane} is at row {at}, its walk at row {row}")
            mine = Counter(blocks)
            self.thread += sum(self.weights[block] * count for block, count in mine.items())
            entered |= mine
        self.runs.update(entered)
        once = sum(self.weights[block] * count for block, count in entered.items())
        self.warp += once
        self.active += once * len(lanes)

    def efficiency(self) -> float:
        """Of all lane slots of the warp, the share that did something."""
        return self.thread / (self.lanes * self.warp)


class Predicates:
    """Counts thread instructions whose predicate is off: those of arms whose block a lane did not enter.
    Instructions under a predicate that are not an arm's own, as those of a selection, count as on."""

    def __init__(self, walks: list, rows: list, ends: dict[int, int]):
        self.visits = [iter(walk.visits) for walk in walks]
        self.guarded = {
            at: [(row.block, row.count) for row in rows[at : end + 1] if row.guard and row.kind in ("plain", "store")]
            for at, end in ends.items()
        }
        self.off = 0

    def visit(self, at: int, lanes: list[int]) -> None:
        """A group reaches a row; see reference.Replay."""
        entered = [set(next(self.visits[lane])[1]) for lane in lanes]
        somewhere = set().union(*entered)
        for block, count in self.guarded[at]:
            if block in somewhere:
                self.off += count * sum(block not in mine for mine in entered)
