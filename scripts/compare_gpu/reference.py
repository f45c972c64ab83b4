"""What a GPU of the Volta kind and later would count: lanes replayed through ptxas's code, under its own barriers.

It knows nothing about lockstep's models. A group of lanes has one program counter and runs alone:

- BSSY B, target: the lanes of the group become the participants of a region; each keeps it in its register B.
- BSYNC B: a lane waits until all participants of its region do; then they go on at the region's target, as one group.
  A lane whose register holds no region goes on.
- BREAK B: a lane leaves its region; EXIT: it leaves all of them. That may end the waiting of the others.
- WARPSYNC: a lane waits for all lanes that have not left; they go on as one group.
- A branch whose lanes disagree makes two groups of one. The one with fewer lanes goes on, or with as many the one that
  does not jump; the other is ready to.
- A group goes on until it waits or leaves; then the group that became ready last does, and with it those that are ready
  at the same address. Groups that came there in the last SETTLED instructions of the warp do not join.

How groups are ordered is read off counters of an H200, instruction by instruction (results/2026-11-28-silicon): it
decides how many groups run a BSYNC, and little else. Every instruction counts for the warp once for each group that comes by, and for each lane of the group; one under a predicate counts for all
of them (Nsight's active threads). Efficiency is thread instructions / (lanes x warp instructions).
"""

from collections import Counter
from dataclasses import dataclass, field


#: Instructions of a warp after which a group that is ready can be joined; fitted to 59 kernels.
SETTLED = 7


class ReplayError(Exception):
    """Lanes wait for ever, or a lane's path does not fit the code."""


@dataclass(eq=False)
class Region:
    """Who waits for whom: made by one BSSY of one group."""

    target: int
    order: int
    participants: set[int]
    waiting: set[int] = field(default_factory=set)


@dataclass
class Counts:
    """What a replay counts. Per row: groups that came by, and lanes in them. `joins`: for each row of a branch
    whose lanes disagreed, the targets of the innermost region that they were in (None without one), with how often."""

    lanes: int
    warp: int = 0
    thread: int = 0
    groups: Counter = field(default_factory=Counter)
    threads: Counter = field(default_factory=Counter)
    joins: dict[int, Counter] = field(default_factory=dict)

    def efficiency(self) -> float:
        """Of all lane slots of the warp, the share that did something."""
        return self.thread / (self.lanes * self.warp)


class Replay:
    """A warp on its way through rows (see listing.py). `outcomes` has for each lane what its conditional BREAKs,
    branches and EXITs do, in the order in which it reaches them. `visit(row index, lanes)` is called where a group
    reaches a row that control can be transferred to."""

    def __init__(self, rows: list, outcomes: list[list[bool]], visit=None):
        self.rows = rows
        self.index = {row.address: at for at, row in enumerate(rows)}
        self.outcomes = [iter(lane) for lane in outcomes]
        self.visit = visit
        self.leaders = leaders(rows)
        self.counts = Counts(len(outcomes))
        self.registers: list[dict[int, Region]] = [{} for _ in outcomes]
        #: Groups that can go on, the last to become ready at the end: where, since which instruction, lanes.
        self.ready: list[tuple[int, int, list[int]]] = []
        self.made = 0
        #: Instructions of the warp, so far.
        self.now = 0
        self.gone = 0
        #: Lanes that wait at a WARPSYNC, and the row behind it.
        self.at_warpsync: set[int] = set()
        self.behind_warpsync = 0

    def run(self) -> Counts:
        """Replays everything."""
        self._make_ready(0, range(len(self.outcomes)))
        while self.ready:
            self._run_group(*self._next_group())
        if self.gone != len(self.outcomes):
            raise ReplayError(f"{len(self.outcomes) - self.gone} lanes wait for ever")
        for at, row in enumerate(self.rows):
            self.counts.warp += row.count * self.counts.groups[at]
            self.counts.thread += row.count * self.counts.threads[at]
        return self.counts

    def _make_ready(self, at: int, lanes) -> None:
        self.ready.append((at, self.now, sorted(lanes)))

    def _next_group(self) -> tuple[int, list[int]]:
        """Takes the group that became ready last, with those that join it."""
        at, since, lanes = self.ready.pop()
        joins = lambda group: group[0] == at and max(since, group[1]) + SETTLED <= self.now
        joined = [group for group in self.ready if joins(group)]
        self.ready = [group for group in self.ready if not joins(group)]
        return at, sorted(lanes + [lane for _, _, others in joined for lane in others])

    def _run_group(self, at: int, lanes: list[int]) -> None:
        """Until the group waits or has left."""
        while True:
            row = self.rows[at]
            if self.visit and at in self.leaders:
                self.visit(at, lanes)
            self.counts.groups[at] += 1
            self.counts.threads[at] += len(lanes)
            self.now += row.count
            chosen = self._chosen(row, lanes)
            if row.kind == "bssy":
                self.made += 1
                region = Region(self.index[row.target], self.made, set(lanes))
                for lane in lanes:
                    self.registers[lane][row.barrier] = region
            elif row.kind == "break":
                for lane in chosen:
                    self._leave(lane, self.registers[lane].pop(row.barrier, None))
            elif row.kind == "bsync":
                ready = len(self.ready)
                self._wait(at, row.barrier, lanes)
                if len(self.ready) == ready:
                    return
                # Who comes last goes on with those that waited, and joins nobody.
                at, _, lanes = self.ready.pop()
                continue
            elif row.kind == "warpsync":
                self.at_warpsync |= set(lanes)
                self.behind_warpsync = at + 1
                self._release_warpsync()
                return
            elif row.kind in ("bra", "exit"):
                others = [lane for lane in lanes if lane not in set(chosen)]
                if chosen and others:
                    self._record_split(at, lanes)
                if row.kind == "exit":
                    for lane in chosen:
                        self._exit(lane)
                    sides = []
                else:
                    sides = [(chosen, self.index[row.target])]
                sides = [side for side in [*sides, (others, at + 1)] if side[0]]
                if not sides:
                    return
                # With as many lanes, the last: the one that does not jump.
                lanes, at = min(reversed(sides), key=lambda side: len(side[0]))
                for other, there in sides:
                    if there != at:
                        self._make_ready(there, other)
                continue
            at += 1

    def _wait(self, at: int, barrier: int, lanes: list[int]) -> None:
        """Lanes come to a BSYNC."""
        apart = [lane for lane in lanes if barrier not in self.registers[lane]]
        for lane in set(lanes) - set(apart):
            self.registers[lane][barrier].waiting.add(lane)
        if apart:
            self._make_ready(at + 1, apart)
        for region in {self.registers[lane][barrier] for lane in lanes if lane not in apart}:
            self._release(region)

    def _chosen(self, row, lanes: list[int]) -> list[int]:
        """The lanes for which the guard of a row of control flow holds."""
        if row.kind not in ("bra", "exit", "break") or not row.guard:
            return lanes
        return [lane for lane in lanes if next(self.outcomes[lane])]

    def _leave(self, lane: int, region: Region | None) -> None:
        if region:
            region.participants.discard(lane)
            self._release(region)

    def _exit(self, lane: int) -> None:
        self.gone += 1
        regions = list(self.registers[lane].values())
        self.registers[lane] = {}
        for region in regions:
            self._leave(lane, region)
        self._release_warpsync()

    def _release_warpsync(self) -> None:
        if self.at_warpsync and len(self.at_warpsync) + self.gone == len(self.outcomes):
            self._make_ready(self.behind_warpsync, self.at_warpsync)
            self.at_warpsync = set()

    def _release(self, region: Region) -> None:
        """Lets the lanes that wait go on, where no other participant is on its way."""
        if not region.waiting or region.waiting != region.participants:
            return
        for lane in region.waiting:
            self.registers[lane] = {key: kept for key, kept in self.registers[lane].items() if kept is not region}
        self._make_ready(region.target, region.waiting)
        region.participants, region.waiting = set(), set()

    def _record_split(self, at: int, lanes: list[int]) -> None:
        around = set.intersection(*(set(self.registers[lane].values()) for lane in lanes))
        innermost = max(around, key=lambda region: region.order, default=None)
        target = self.rows[innermost.target].address if innermost else None
        self.counts.joins.setdefault(at, Counter())[target] += 1


def leaders(rows: list) -> set[int]:
    """Indexes of rows that control can be transferred to, or that stand behind a transfer."""
    index = {row.address: at for at, row in enumerate(rows)}
    found = {0}
    for at, row in enumerate(rows):
        if row.kind in ("bra", "bssy"):
            found.add(index[row.target])
        if row.kind in ("bra", "exit", "bsync", "warpsync"):
            found.add(at + 1)
    return found
