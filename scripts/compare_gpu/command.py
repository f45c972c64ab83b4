"""The command line of compare-gpu."""

import argparse
import csv
import multiprocessing
import sys
from pathlib import Path

import builds
import errors
import kernel_steps
import kernels
import page
import scatter
import toolchain

RESULTS = toolchain.ROOT / "results" / "2026-11-23-gpu"


def arguments() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(
        prog="compare-gpu",
        description="Compares lockstep's efficiencies with a reference: the paths that the lanes of a kernel take "
        "through its GPU build, replayed under the convergence barriers that ptxas put into it. " + toolchain.LICENCE,
    )
    parser.add_argument("kernels", nargs="*", help="names of workloads/gpu-kernels (default: all of kernels.tsv)")
    parser.add_argument("--accept-nvidia-licence", action="store_true", help="fetch and run ptxas and nvdisasm")
    parser.add_argument("--heuristic", help="models, as replay takes them (default: all, with each placement)")
    parser.add_argument("--only-reference", action="store_true", help="no traces: only the reference of each kernel")
    parser.add_argument(
        "--check", action="store_true", help="fail unless references are those of the results (implies the former)"
    )
    parser.add_argument(
        "--keep-traces",
        action="store_true",
        help="keep the programs and traces, and take those that an earlier run has kept: for a change of models alone",
    )
    parser.add_argument(
        "--page", type=Path, metavar="FOLDER", help="only make the page and the chart of a folder from its rows"
    )
    parser.add_argument(
        "--output", type=Path, default=toolchain.CACHE / "results", help="folder of the rows (default: %(default)s)"
    )
    parser.add_argument("--jobs", type=int, default=2, help="kernels worked on at once (default: %(default)s)")
    return parser.parse_args()


def main() -> int:
    """Runs it; the exit status."""
    options = arguments()
    if options.page:
        write_page(options.page)
        return 0
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
    models = []
    if not (options.only_reference or options.check):
        models = split_models(options.heuristic) if options.heuristic else builds.models()
    tasks = [(listed, tools, work, stored, models, options.keep_traces) for listed in chosen]
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
    write_csv(options.output / "tools.csv", page.tools())
    print(f"\n{write_page(options.output)}")
    return 0


def split_models(text: str) -> list[str]:
    """Models with commas between them, of which each may have parameters with commas between them."""
    found: list[str] = []
    for part in text.split(","):
        if "=" in part and ":" not in part and found:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def check(outcomes: list) -> int:
    """Whether references are those of the results."""
    known = {row["kernel"]: row for row in read_csv(RESULTS / "kernels.csv")}
    status = 0
    for outcome in outcomes:
        row = known[outcome.name]
        for column in ("ir", "reference", "predicated_on", "placement_reference", "unlike_gpu", "checksum", "reason"):
            now = str(outcome.kernel.get(column, ""))
            if now != row[column]:
                print(f"{outcome.name}: {column} is {now}, and in the results {row[column]}", file=sys.stderr)
                status = 1
    if status:
        made_with = {row["tool"]: row["version"] for row in read_csv(RESULTS / "tools.csv")}
        print(f"The results were made with {made_with['clang']}.", file=sys.stderr)
        print("Where `ir` differs, it is another clang: make them again with --accept-nvidia-licence.", file=sys.stderr)
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


def write_page(folder: Path) -> str:
    """Writes the summary, the page and the chart of a folder from its rows; the page."""
    rows, of_kernels, regions, made_with = (
        read_csv(folder / f"{name}.csv") for name in ("rows", "kernels", "regions", "tools")
    )
    lines = errors.summary(rows)
    write_csv(folder / "errors.csv", lines)
    text = page.page(of_kernels, regions, lines, made_with)
    (folder / "README.md").write_text(text)
    (folder / "scatter.svg").write_text(scatter.chart(rows))
    return text


def read_csv(path: Path) -> list[dict]:
    """The rows of a file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, rows: list[dict]) -> None:
    """Rows with all columns that any of them has."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
