"""All that is done for one kernel: its reference, its builds, its rows."""

import hashlib
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import builds
import graphs
import kernels
import listing
import numbered_ir
import reference
import silicon
import toolchain
import walks
import weights


@dataclass
class Outcome:
    """What came out for a kernel: a row for kernels.csv, rows for rows.csv and regions.csv, the table of ptxas's
    code."""

    name: str
    kernel: dict = field(default_factory=dict)
    rows: list[dict] = field(default_factory=list)
    regions: list[dict] = field(default_factory=list)
    table: str = ""
    seconds: float = 0.0


def digest(kernel: numbered_ir.Kernel) -> str:
    """Names the IR that a table of ptxas's code belongs to."""
    # Without metadata: it names the source's folder and its state.
    blocks = "\n".join(f"{block.name}:\n" + "\n".join(block.code) for block in kernel.blocks)
    text = re.sub(r", ![\w.]+ !\d+", "", f"{kernel.head()}\n{blocks}")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def process(task: tuple[kernels.Listed, toolchain.Tools | None, Path, Path, list[str], bool]) -> Outcome:
    """Works a kernel out: its list entry, NVIDIA's tools or None for the stored tables, folder of work, folder of
    the tables, models (none: only the reference), whether traces are kept. A failure becomes the reason in its row."""
    listed, tools, folder, stored, models, keeps = task
    started = time.monotonic()
    outcome = Outcome(listed.name)
    outcome.kernel = {"kernel": listed.name, "set": listed.set, "lanes": listed.lanes, "reason": ""}
    try:
        _process(listed, tools, folder, stored, models, keeps, outcome)
    except (
        numbered_ir.IrError,
        listing.ListingError,
        walks.WalkError,
        reference.ReplayError,
        toolchain.ToolError,
    ) as error:
        outcome.kernel["reason"] = f"{type(error).__name__}: {error}"
    outcome.seconds = time.monotonic() - started
    return outcome


def _process(
    listed, tools, folder: Path, stored: Path, models: list[str], keeps: bool, outcome: Outcome
) -> None:
    name, lanes = listed.name, listed.lanes
    kernel = toolchain.optimised(name, lanes, folder)
    outcome.kernel["blocks"] = len(kernel.blocks)
    outcome.kernel["ir"] = digest(kernel)
    if tools:
        rows = toolchain.rows_of_ptxas(name, kernel, tools, folder)
    else:
        table = stored / f"{name}.tsv"
        if not table.exists():
            raise toolchain.ToolError(f"{table} is missing: it is made with --accept-nvidia-licence")
        rows = listing.from_table(table.read_text())
    outcome.table = listing.to_table(rows)
    paths, printed = toolchain.paths_of_lanes(name, kernel, lanes, folder)
    successors = [block.successors for block in kernel.blocks]
    matcher, ways = walks.match(rows, successors, paths, [block.stores() for block in kernel.blocks])
    counts = reference.Replay(rows, [way.outcomes for way in ways]).run()
    exact = folder / f"{name}.exact"
    instructions = toolchain.exact_build(name, kernel, lanes, folder, exact)
    weighed = weights.Weighed(ways, instructions)
    reference.Replay(rows, [way.outcomes for way in ways], weighed.visit).run()
    predicates = weights.Predicates(ways, rows, matcher.ends)
    reference.Replay(rows, [way.outcomes for way in ways], predicates.visit).run()
    outcome.kernel |= {
        "reference": round(counts.efficiency(), 4),
        "predicated_on": round((counts.thread - predicates.off) / (lanes * counts.warp), 4),
        "warp_instructions": counts.warp,
        "thread_instructions": counts.thread,
        "unlike_gpu": silicon.unlike(name, rows, counts),
        "placement_reference": round(weighed.efficiency(), 4),
        "checksum": printed,
    }
    outcome.regions = regions(name, kernel, rows, matcher, counts, paths)
    outcome.kernel["divergent_branches"] = len(outcome.regions)
    if not models:
        return
    compilers = builds.BUILDS | builds.shaped()
    for build in [*compilers, builds.EXACT]:
        program = exact if build == builds.EXACT else folder / f"{name}.{build.replace(' ', '')}"
        trace = folder / f"{program.name}.trace"
        if not (keeps and trace.exists()):
            if build != builds.EXACT:
                toolchain.x86_build(name, *compilers[build], lanes, program)
            said = builds.trace(program, trace)
            if said != printed:
                trace.unlink()
                raise toolchain.ToolError(f"{program} prints {said}, and the IR of the GPU build {printed}")
        results = builds.replay(trace, lanes, models)
        kind = "placement" if build == builds.EXACT else "total"
        against = weighed.efficiency() if kind == "placement" else counts.efficiency()
        for model, result in results.items():
            efficiency = result["simt_efficiency"]
            if kind == "total":
                # With lanes whose predicate is off, as the reference; only models that predicate have it.
                efficiency = result.get("active_efficiency", efficiency)
            outcome.rows.append(
                {
                    "kernel": name,
                    "set": listed.set,
                    "error": kind,
                    "build": build,
                    "model": model,
                    "efficiency": round(efficiency, 4),
                    "reference": round(against, 4),
                    "points": round(100 * (efficiency - against), 2),
                    "thread_instructions": result["thread_instructions"],
                }
            )
        if build == builds.EXACT:
            starts = toolchain.block_starts(exact, folder / f"{name}.exact.s", [block.name for block in kernel.blocks])
            add_runs(outcome.regions, weighed.runs, builds.runs(trace, lanes, builds.STRUCTURED, starts))
        if build == builds.EXACT and results:
            traced = next(iter(results.values()))["thread_instructions"]
            outcome.kernel["blocks_found"] = round(weighed.thread / traced, 4)
        if not keeps:
            trace.unlink()


def add_runs(rows: list[dict], by_ptxas, by_model) -> None:
    """Adds to rows of regions how often groups run the block where lanes meet: under ptxas's regions, and under a
    model."""
    for row in rows:
        join = row["post_dominator"] if row["join"] in ("predicated", "none") else int(row["join"])
        row["runs_by_ptxas"] = by_ptxas[join]
        row["runs_by_structured"] = by_model[join]
        row["agrees"] = "yes" if by_ptxas[join] == by_model[join] else "no"


def regions(name: str, kernel, rows: list, matcher, counts, paths: list[list[int]]) -> list[dict]:
    """For each branch of the IR at which lanes parted: the block where ptxas lets them meet.

    `join` is the block whose code stands at the end of the innermost region, `predicated` where no branch is left,
    `none` where no region is around it. Branches under predicates count as divergent where lanes took both ways."""
    successors = [block.successors for block in kernel.blocks]
    nearest = graphs.post_dominators(successors)
    index = {row.address: at for at, row in enumerate(rows)}
    found: dict[int, Counter] = {}
    for at, targets in counts.joins.items():
        block = matcher.decider[at]
        for target, times in targets.items():
            join = "none" if target is None else str(rows[index[target]].block)
            found.setdefault(block, Counter())[join] += times
    taken = {}
    for path in paths:
        for edge in zip(path, path[1:]):
            if edge[0] in matcher.predicated:
                taken.setdefault(edge[0], set()).add(edge[1])
    for block, ways in taken.items():
        if len(ways) > 1:
            found[block] = Counter({"predicated": 1})
    return [
        {
            "kernel": name,
            "block": block,
            "name": kernel.blocks[block].name,
            "lines": " ".join(map(str, kernel.blocks[block].lines)),
            "join": joins.most_common(1)[0][0],
            "other_joins": " ".join(join for join, _ in joins.most_common()[1:]),
            "post_dominator": "" if nearest[block] is None else nearest[block],
        }
        for block, joins in sorted(found.items())
    ]
