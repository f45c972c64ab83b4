"""The page of a folder of results: what is compared with what, and the tables."""

import platform
import textwrap

import errors
import toolchain

HEAD = """# Efficiencies against a GPU's code

Made by `scripts/compare-gpu --accept-nvidia-licence` ([what it does](../../scripts/compare_gpu/README.md)), on
{machine}, with {gcc}, {clang},
and ptxas and nvdisasm of {packages} for sm_90. No GPU was there.
`scripts/remake-charts` makes this page and the chart from the rows.

![Efficiency under three models over the reference, for two compilers](scatter.svg)

`reference` is the efficiency of a kernel's lanes in ptxas's code, under its convergence barriers, in its
instructions, lanes whose predicate is off included (`predicated_on`: without them). Two errors of lockstep's
efficiencies are taken against it, in points:

- *total*: an ordinary program for x86-64 of the same source, against `reference`. It holds all that compilers do
  differently: unrolled loops, copied code, predicates, and how many instructions a block has. Of models with
  `predicate`, the efficiency with predicated lanes is taken.
- *placement*: a program for x86-64 that has the very blocks of the GPU build, against `placement_reference`:
  ptxas's regions, with this program's instructions per block. All that is left is where lanes wait for each other.

Files: `kernels.csv` (a row for each kernel), `rows.csv` (each kernel, build and model), `errors.csv` (each build
and model, by set), `regions.csv` (each branch at which lanes parted), `tools.csv` (versions), `sass/` (control flow
of ptxas's code, a table for each kernel, from which the references can be made again without NVIDIA's tools).
"""


def first_line(command: list[str]) -> str:
    """The first line that a program prints."""
    return toolchain.run(command).splitlines()[0]


def tools() -> list[dict]:
    """What the results were made with."""
    versions = {
        "machine": f"{platform.system()} {platform.machine()}",
        "gcc": first_line(["gcc", "--version"]),
        "clang": first_line([toolchain.CLANG, "--version"]),
        "packages": " and ".join(toolchain.NVIDIA_PACKAGES),
    }
    return [{"tool": tool, "version": version} for tool, version in versions.items()]


def page(kernels: list[dict], regions: list[dict], lines: list[dict], made_with: list[dict]) -> str:
    """The page as Markdown, from rows as they are in the files."""
    out = [HEAD.format(**{row["tool"]: row["version"] for row in made_with})]
    matched = [row for row in kernels if not row["reason"]]
    low = sum(float(row["reference"]) < 0.9 for row in matched)
    out.append("## Kernels\n")
    out.append(
        f"{len(kernels)} kernels, {sum(row['set'] == 'held-out' for row in kernels)} of them held out; {len(matched)} have a reference, "
        f"{low} of these below 0.9.\n"
    )
    if counted := [row for row in matched if row.get("unlike_gpu")]:
        alike = sum(row["unlike_gpu"] == "0" for row in counted)
        out.append(
            f"In {alike} of {len(counted)} the reference runs every instruction as often, and with as many lanes, as an H200 did\n"
            "(`unlike_gpu` of `kernels.csv`; [counters](../2026-11-28-silicon/README.md))."
        )
    out += [f"- {row['kernel']}: {row['reason']}" for row in kernels if row["reason"]]
    for group in ("tuned", "held-out"):
        names = [f"{row['kernel']} {float(row['reference']):.3f}" for row in matched if row["set"] == group]
        out.append("\n" + textwrap.fill(f"{group}: {', '.join(names)}.", 116))
    counted = [row for row in regions if row.get("agrees")]
    if counted:
        out.append("\n## Regions\n")
        for group in ("tuned", "held-out"):
            members = {row["kernel"] for row in kernels if row["set"] == group}
            mine = [row for row in counted if row["kernel"] in members]
            same = sum(row["agrees"] == "yes" for row in mine)
            out.append(
                f"{group}: at {same} of {len(mine)} branches where lanes parted ({100 * same / max(1, len(mine)):.1f}%),\n"
                "groups run the block where ptxas lets lanes meet as often under `structured` as under ptxas's barriers.\n"
            )
        out.append(
            "The others:\n\n| kernel | block | lines | meets in | post-dominator | runs by ptxas | by `structured` |\n"
            "|---|---|---|---|---|---|---|"
        )
        columns = ("kernel", "name", "lines", "join", "post_dominator", "runs_by_ptxas", "runs_by_structured")
        out += [
            "| " + " | ".join(str(row[column]) for column in columns) + " |" for row in counted if row["agrees"] == "no"
        ]
    for kind in ("placement", "total"):
        for group in ("tuned", "held-out", "all"):
            if any(line["error"] == kind and line["set"] == group for line in lines):
                out.append(f"\n## {kind.capitalize()} error, {group} kernels\n")
                out.append("Mean absolute in points, and the worst with its kernel.\n")
                out.append(errors.table(lines, kind, group))
    return "\n".join(out) + "\n"
