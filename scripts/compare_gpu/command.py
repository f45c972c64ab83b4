"""The command line of compare-gpu."""

import argparse
import csv
import multiprocessing
import sys
from pathlib import Path

import errors
import kernel_steps
import kernels
import toolchain

RESULTS = toolchain.ROOT / "results" / "2026-11-22-gpu"


def arguments() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(
        prog="compare-gpu",
        description="Compares lockstep's efficiencies with a reference: the paths that the lanes of a kernel take through its "
        "GPU build, replayed under the convergence barriers that ptxas put into it. " + toolchain.LICENCE,
    )
    parser.add_argument("kernels", nargs="*", help="names of workloads/gpu-kernels (default: all of kernels.tsv)")
    parser.add_argument("--accept-nvidia-licence", action="store_true", help="fetch and run ptxas and nvdisasm")
    parser.add_argument("--only-reference", action="store_true", help="no traces: only the reference of each kernel")
    parser.add_argument("--check", action="store_true", help="fail unless references are those of the results (implies the former)")
    parser.add_argument("--output", type=Path, default=toolchain.CACHE / "results", help="folder of the rows (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="kernels worked on at once (default: %(default)s)")
    return parser.parse_args()


def main() -> int:
    """Runs it; the exit status."""
    options = arguments()
    try:
        return compare(options)
    except toolchain.ToolError as error:
        print(f"compare-gpu: {error}", file=sys.stderr)
        return 1


def compare(options: argparse.Namespace) -> int:
    """Works all kernels out, writes and prints what came out."""
    chosen = [listed for listed in kernels.listed() if not options.kernels or listed.name in options.kernels]
    missing = set(options.kernels) - {listed.name for listed in chosen}
    if missing:
        raise toolchain.ToolError(f"there is no kernel {min(missing)} in {toolchain.KERNELS / 'kernels.tsv'}")
    tools = toolchain.nvidia_tools(options.accept_nvidia_licence)
    work = toolchain.CACHE / "work"
    work.mkdir(parents=True, exist_ok=True)
    stored = RESULTS / "sass"
    tasks = [(listed, tools, work, stored, options.only_reference or options.check) for listed in chosen]
    outcomes = []
    with multiprocessing.Pool(options.jobs) as pool:
        for outcome in pool.imap(kernel_steps.process, tasks):
            outcomes.append(outcome)
            shown = outcome.kernel
            print(
                f"{outcome.name:24} {shown.get('reference', '-'):>7} {shown.get('placement_reference', '-'):>7} "
                f"{shown['reason']} ({outcome.seconds:.0f} s)",
                flush=True,
            )
    if options.check:
        return check(outcomes)
    write(outcomes, options.output)
    lines = errors.summary([row for outcome in outcomes for row in outcome.rows])
    write_csv(options.output / "errors.csv", lines)
    for kind in ("placement", "total"):
        for group in ("tuned", "held-out", "all"):
            if any(line["error"] == kind and line["set"] == group for line in lines):
                print(f"\n{kind} error, {group} kernels: mean absolute in points (worst)\n\n{errors.table(lines, kind, group)}")
    return 0


def check(outcomes: list) -> int:
    """Whether references are those of the results."""
    with open(RESULTS / "kernels.csv", encoding="utf-8", newline="") as file:
        known = {row["kernel"]: row for row in csv.DictReader(file)}
    status = 0
    for outcome in outcomes:
        row = known[outcome.name]
        for column in ("ir", "reference", "placement_reference", "checksum", "reason"):
            now = str(outcome.kernel.get(column, ""))
            if now != row[column]:
                print(f"{outcome.name}: {column} is {now}, and in the results {row[column]}", file=sys.stderr)
                status = 1
    return status


def write(outcomes: list, folder: Path) -> None:
    """The rows, and the tables of ptxas's code."""
    (folder / "sass").mkdir(parents=True, exist_ok=True)
    write_csv(folder / "kernels.csv", [outcome.kernel for outcome in outcomes])
    write_csv(folder / "rows.csv", [row for outcome in outcomes for row in outcome.rows])
    write_csv(folder / "regions.csv", [row for outcome in outcomes for row in outcome.regions])
    for outcome in outcomes:
        if outcome.table:
            (folder / "sass" / f"{outcome.name}.tsv").write_text(outcome.table)


def write_csv(path: Path, rows: list[dict]) -> None:
    """Rows with all columns that any of them has."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
