"""Which way each lane takes through ptxas's code, from the blocks of the IR that it enters.

A branch of the machine code names the block of the IR whose branch it is, but not which way is which: ptxas turns
conditions round, moves and copies code, and puts two branches into one. What is unknown is, for each branch row and
each edge of the IR, whether the row's branch is taken. One answer holds for all lanes and visits. It is searched:
the first guess is the side whose code names the blocks that the lane enters next; where a walk reaches a branch
that the lane's path does not have next, the last guess is turned round.
"""

import contextlib
from collections import Counter
from dataclasses import dataclass, field

import graphs
import reference

#: Steps of one lane, and guesses that are turned round, before a kernel is given up.
MOST_STEPS = 2_000_000
MOST_TURNS = 20_000


class WalkError(Exception):
    """Why lanes' paths can't be matched with ptxas's code."""


class UnplacedError(WalkError):
    """A block whose branch must be in the code, and no row names it."""

    def __init__(self, block: int):
        super().__init__(f"the branch of block {block} is not in the code, and branches that it decides on are")
        self.block = block


@dataclass
class Walk:
    """A lane's way: outcomes as reference.py wants them, and for each visit of a leader row the blocks of the IR whose
    code it runs."""

    outcomes: list[bool] = field(default_factory=list)
    visits: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)


@dataclass
class Token:
    """A decision of a lane's path: its group of blocks, the edge by which it leaves them, where in the path that is."""

    group: int
    edge: tuple[int, int]
    last: int


def is_conditional(row) -> bool:
    """Whether lanes can part at this row."""
    return row.kind in ("bra", "exit") and bool(row.guard)


class Matcher:
    """The code of one kernel (rows) and the successors of its IR blocks; `match` takes the lanes' paths.

    With `copied_arms`, a jump behind instructions of its own block and predicate is taken for the end of an arm
    that ptxas made of a copy of that block, not for the block's own branch. `given` has the blocks of rows that
    name another one, `stores` the number of stores of each block. The branch of the block `known` is not in the code
    where a lane reaches it from outside of its loop: its way is known there when the code is made."""

    def __init__(
        self,
        rows: list,
        successors: list[list[int]],
        stores=None,
        copied_arms: bool = False,
        given: dict[int, int] | None = None,
        known: int | None = None,
    ):
        self.known_block = known
        self.copied_arms = copied_arms
        self.given = given or {}
        self.stores = stores or [0] * len(successors)
        self.rows = rows
        self.index = {row.address: at for at, row in enumerate(rows)}
        self.successors = successors
        self.order = {block: at for at, block in enumerate(graphs.reverse_postorder(successors))}
        self.leaders = sorted(at for at in reference.leaders(rows) if at < len(rows))
        self.ends = {at: following - 1 for at, following in zip(self.leaders, [*self.leaders[1:], len(rows)])}
        self.lines = self._lines()
        self.groups = self._groups()
        self.known: dict[tuple[int, tuple[int, int]], bool] = {}

    def _lines(self) -> dict[int, set[int]]:
        """For each stretch of code from a leader to the next, the blocks that are at home there: those of which it has
        more than half as many instructions as any stretch."""
        counts = {at: Counter() for at in self.leaders}
        most = Counter()
        for at in self.leaders:
            for row in self.rows[at : self.ends[at] + 1]:
                counts[at][row.block] += row.count
            most |= counts[at]
        return {
            at: {block for block, count in inside.items() if 2 * count > most[block]} for at, inside in counts.items()
        }

    def _groups(self) -> dict[int, int]:
        """The group of each conditional block whose branch is in the code: its own number, or that of the block
        whose branch ptxas merged it with. Blocks that are missing became predicates or selections."""
        conditional = {block for block, following in enumerate(self.successors) if len(following) > 1}
        self.decider = {at: self._decider(at, conditional) for at, row in enumerate(self.rows) if is_conditional(row)}
        named = set(self.decider.values())
        nearest = graphs.post_dominators(self.successors)
        self.predicated = set()
        groups = {block: block for block in named}
        for block in sorted(conditional - named, key=lambda block: self.order.get(block, 0)):
            inside = graphs.region(self.successors, block, nearest[block])
            if not inside & named:
                self.predicated.add(block)
                continue
            mine = set(self.successors[block])
            merged = [
                other
                for other in groups
                if mine & set(self.successors[other]) and (other in mine or block in self.successors[other])
            ]
            if not merged:
                raise UnplacedError(block)
            groups[block] = groups[merged[0]]
        return groups

    def _decider(self, at: int, conditional: set[int]) -> int:
        """The block whose branch a conditional row stands for: mostly its own. An arm whose instructions became
        predicated keeps the jump at its end, which then has the arm's predicate: the branch that leads to the arm.
        Where the arm was copied, that is the nearest one above in the same stretch of code."""
        if at in self.given:
            return self.given[at]
        start = block = self.rows[at].block
        if self.copied_arms and at not in self.leaders and self._ends_copied_arm(at):
            above = at
            while above not in self.leaders:
                above -= 1
                if not self.rows[above].guard and self.rows[above].block in conditional - {start}:
                    return self.rows[above].block
        while block not in conditional:
            before = [other for other, following in enumerate(self.successors) if block in following]
            if len(before) != 1 or before[0] == start:
                break
            block = before[0]
        while block not in conditional:
            at -= 1
            if at < 0 or at + 1 in self.leaders:
                raise WalkError(f"a branch of the code belongs to block {start}, which has none")
            block = self.rows[at].block
        return block

    def _ends_copied_arm(self, at: int) -> bool:
        """Whether the row before a jump, except for BSSY, has its block and predicate."""
        row, before = self.rows[at], at - 1
        while before not in self.leaders and self.rows[before].kind == "bssy":
            before -= 1
        return self.rows[before].kind == "plain" and (self.rows[before].guard, self.rows[before].block) == (
            row.guard,
            row.block,
        )

    def tokens(self, path: list[int]) -> list[Token]:
        """The decisions of a path, in order."""
        found: list[Token] = []
        previous = None
        for at in range(len(path) - 1):
            block = path[at]
            group = self.groups.get(block)
            if group is None:
                continue
            edge = (block, path[at + 1])
            if block == self.known_block and at > 0 and self.order[path[at - 1]] < self.order[block]:
                continue
            if found and found[-1].group == group and previous != block and self.order[previous] < self.order[block]:
                found[-1].edge, found[-1].last = edge, at
            else:
                found.append(Token(group, edge, at))
            previous = block
        return found

    def match(self, paths: list[list[int]]) -> list[Walk]:
        """A walk for each lane's path."""
        walks: list[Walk] = []
        tokens = [self.tokens(path) for path in paths]
        #: Lane, its state before, key, the first guess, whether it was turned round.
        guesses: list[tuple] = []
        turns = 0
        state = State(self, paths[0], tokens[0])
        while True:
            found = state.run()
            if found == "done":
                walks.append(state.walk)
                if len(walks) == len(paths):
                    check_stores(self.rows, walks, paths, self.ends, self.stores)
                    return walks
                state = State(self, paths[len(walks)], tokens[len(walks)])
            elif found == "stuck":
                why, stuck = state.why, len(walks)
                while guesses and guesses[-1][-1]:
                    del self.known[guesses.pop()[2]]
                turns += 1
                if not guesses or turns > MOST_TURNS:
                    raise WalkError(f"no way through the code fits lane {stuck}: {why}")
                lane, kept, key, outcome, _ = guesses.pop()
                guesses.append((lane, kept, key, outcome, True))
                self.known[key] = not outcome
                del walks[lane:]
                state = kept.copy()
            else:
                key, outcome = found
                guesses.append((len(walks), state.copy(), key, outcome, False))
                self.known[key] = outcome


def match(
    rows: list, successors: list[list[int]], paths: list[list[int]], stores: list[int]
) -> tuple[Matcher, list[Walk]]:
    """A walk for each lane's path, and what found them. Where the code as it names blocks fits no path, other
    readings are tried."""
    try:
        matcher = Matcher(rows, successors, stores)
        return matcher, matcher.match(paths)
    except WalkError as error:
        readings: list[dict] = [{"copied_arms": True}]
        if isinstance(error, UnplacedError):
            # A branch on a condition that was computed before may have that one's block: of a block that several
            # rows name, one.
            names = Counter(row.block for row in rows if is_conditional(row))
            doubtful = [at for at, row in enumerate(rows) if is_conditional(row) and names[row.block] > 1]
            readings += [{"given": {at: error.block}} for at in doubtful]
        heads = [block for block, following in enumerate(successors) if len(following) > 1]
        readings += [reading | {"known": head} for reading in [{}, *readings] for head in heads]
        for reading in readings:
            with contextlib.suppress(WalkError):
                matcher = Matcher(rows, successors, stores, **reading)
                return matcher, matcher.match(paths)
        raise


def check_stores(
    rows: list, walks: list[Walk], paths: list[list[int]], ends: dict[int, int], stores: list[int]
) -> None:
    """Fails where the stores of a block that no predicate guards are not run a whole number of times for each
    entry, and all stores of the code are not as many as those of the IR (by block: `stores`) either: ptxas may give
    a store to a neighbour."""
    executed, entered = Counter(), Counter()
    for walk in walks:
        for at, times in Counter(at for at, _ in walk.visits).items():
            for row in rows[at : ends[at] + 1]:
                if row.kind == "store":
                    executed[row.block] += row.count * times
    for path in paths:
        entered.update(path)
    guarded = {row.block for row in rows if row.kind == "store" and row.guard}
    if sum(executed.values()) == sum(stores[block] * times for block, times in entered.items()):
        return
    for block, times in executed.items():
        if block not in guarded and (times % entered[block] if entered[block] else times):
            raise WalkError(f"the code stores {times} times for block {block}, which is entered {entered[block]} times")


class State:
    """How far a lane's walk has come."""

    def __init__(self, matcher: Matcher, path: list[int], tokens: list[Token]):
        self.matcher, self.path, self.tokens = matcher, path, tokens
        self.at = 0
        self.next_token = 0
        self.begun = 0
        self.registers: dict[int, int] = {}
        self.walk = Walk()
        self.steps = 0
        self.why = ""

    def copy(self) -> "State":
        """A state that can go on by itself."""
        other = State(self.matcher, self.path, self.tokens)
        other.__dict__.update(self.__dict__)
        other.registers = dict(self.registers)
        other.walk = Walk(list(self.walk.outcomes), list(self.walk.visits))
        return other

    def stuck(self, why: str) -> str:
        """No way on."""
        self.why = why
        return "stuck"

    def run(self):
        """Goes on until the lane exits ("done"), can't go on ("stuck"), or an unknown outcome is met: its key and
        the better guess; nothing has changed then."""
        matcher, rows = self.matcher, self.matcher.rows
        while True:
            self.steps += 1
            if self.steps > MOST_STEPS:
                return self.stuck("it does not end")
            end = matcher.ends[self.at]
            row = rows[end]
            taken, token = None, None
            if is_conditional(row):
                group = matcher.groups[matcher.decider[end]]
                after = self.tokens[self.next_token] if self.next_token < len(self.tokens) else None
                token = after if after and after.group == group else None
                if token is None:
                    return self.stuck(f"branch of block {row.block} at {row.address:#x}, but the path has {after}")
                key = (end, token.edge)
                taken = matcher.known.get(key)
                if taken is None:
                    return key, self._better(end, token)
            if not self._breaks(self.at, end, taken):
                return self.stuck("a BREAK depends on something else than the branch behind it")
            if token is not None:
                self.next_token += 1
                self.walk.outcomes.append(taken)
            self._visit(token)
            for passed in rows[self.at : end + 1]:
                if passed.kind == "bssy":
                    self.registers[passed.barrier] = passed.target
            if row.kind == "exit" and (taken or not row.guard):
                if self.next_token < len(self.tokens):
                    return self.stuck("the code ends before the path")
                visited, blocks = self.walk.visits[-1]
                self.walk.visits[-1] = (visited, blocks + tuple(self.path[self.begun :]))
                return "done"
            self.at = self._following(end, taken)

    def _following(self, end: int, taken: bool | None) -> int:
        """Where control goes from the end of a stretch of code."""
        row = self.matcher.rows[end]
        if row.kind == "bra" and (taken or not row.guard):
            return self.matcher.index[row.target]
        if row.kind == "bsync":
            return self.matcher.index[self.registers[row.barrier]]
        return end + 1

    def _breaks(self, start: int, end: int, taken: bool | None) -> bool:
        """Notes the outcomes of conditional BREAKs on the way to a branch; False where one can't be known."""
        rows = self.matcher.rows
        for row in rows[start : end + 1]:
            if row.kind != "break" or not row.guard:
                continue
            if taken is None:
                return False
            if row.guard == rows[end].guard:
                self.walk.outcomes.append(taken)
            elif row.guard.lstrip("!") == rows[end].guard.lstrip("!"):
                self.walk.outcomes.append(not taken)
            else:
                return False
        return True

    def _visit(self, token: Token | None) -> None:
        """Takes the blocks of the path that the stretch of code names, up to its branch or to before the next one."""
        if token is not None:
            end = max(self.begun, token.last + 1)
        else:
            after = self.tokens[self.next_token].last if self.next_token < len(self.tokens) else len(self.path) - 1
            lines = self.matcher.lines[self.at]
            end = self.begun
            for at in range(self.begun, after + 1):
                if self.path[at] in lines:
                    end = at + 1
        self.walk.visits.append((self.at, tuple(self.path[self.begun : end])))
        self.begun = end

    def _better(self, end: int, token: Token) -> bool:
        """The side of a branch row that fits better what the path has next."""
        number = self.next_token + 1
        expected = self.tokens[number] if number < len(self.tokens) else None
        last = expected.last + 1 if expected else len(self.path)
        named = set(self.path[token.last + 1 : last])
        scores = [self._score(end, taken, expected, named, token.edge[0]) for taken in (False, True)]
        return scores[1] > scores[0]

    def _score(self, end: int, taken: bool, expected: Token | None, named: set[int], parting: int) -> int:
        matcher, rows = self.matcher, self.matcher.rows
        if rows[end].kind == "exit" and taken:
            return 100 if expected is None else -100
        at, score, registers = self._following(end, taken), 0, dict(self.registers)
        for _ in range(64):
            last = matcher.ends[at]
            for row in rows[at : last + 1]:
                if row.kind == "bssy":
                    registers[row.barrier] = row.target
                elif row.kind in ("plain", "store", "bra") and not row.guard:
                    # What the block that parts lanes does may have moved to one side of its branch.
                    score += row.count if row.block in named else 0 if row.block == parting else -row.count
            row = rows[last]
            if is_conditional(row):
                group = matcher.groups[matcher.decider[last]]
                fits = expected is not None and group == expected.group
                return score + (100 if fits else -100)
            if row.kind == "exit":
                return score + (100 if expected is None else -100)
            if row.kind == "bra":
                at = matcher.index[row.target]
            elif row.kind == "bsync":
                if row.barrier not in registers:
                    return score
                at = matcher.index[registers[row.barrier]]
            else:
                at = last + 1
        return score
