"""Post-dominators and regions of small graphs: successors by number of block; block 0 is the entry."""


def reverse_postorder(successors: list[list[int]]) -> list[int]:
    """Blocks that the entry reaches, each before those that it leads to, except over back edges."""
    order, seen, stack = [], {0}, [(0, iter(successors[0]))]
    while stack:
        number, rest = stack[-1]
        for following in rest:
            if following not in seen:
                seen.add(following)
                stack.append((following, iter(successors[following])))
                break
        else:
            order.append(number)
            stack.pop()
    return order[::-1]


def post_dominators(successors: list[list[int]]) -> list[int | None]:
    """The immediate post-dominator of each block; None where that is the exit, or nothing."""
    count, everything = len(successors), None
    sets: list[set[int] | None] = [everything] * count
    order = reverse_postorder(successors)[::-1]
    changed = True
    while changed:
        changed = False
        for block in order:
            known = [sets[following] for following in successors[block] if sets[following] is not None]
            if successors[block] and not known:
                continue
            new = (set.intersection(*known) if known else set()) | {block}
            if new != sets[block]:
                sets[block] = new
                changed = True
    nearest: list[int | None] = [None] * count
    for block in order:
        others = (sets[block] or {block}) - {block}
        # The nearest one is post-dominated by all others.
        nearest[block] = max(others, key=lambda other: len(sets[other]), default=None)
    return nearest


def region(successors: list[list[int]], start: int, end: int | None) -> set[int]:
    """What can be reached from the successors of `start` without passing `end`; `start` itself only over a loop."""
    seen, work = set(), list(successors[start])
    while work:
        block = work.pop()
        if block not in seen and block != end:
            seen.add(block)
            work += successors[block]
    return seen
