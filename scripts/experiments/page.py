"""Charts and pages of an experiment, made from its rows.

    page.py chart MATRIX FOLDER NAME    draws FOLDER/charts/NAME.svg
    page.py readme MATRIX FOLDER        writes FOLDER/README.md
    page.py page MATRIX FOLDER          writes FOLDER/index.html and FOLDER/README.md
"""

import csv
import html
import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import matrix as matrices
import steps

#: Columns of the table on the page, with their headings; those that say one thing only are left out.
KEYS = {
    "program": "program",
    "transform": "transform",
    "layout": "layout",
    "input": "input",
    "thread_count": "threads",
    "warp_size": "warp size",
    "group": "grouping",
    "locks": "locks",
    "heuristic": "heuristic",
}
FIGURES = {
    "fetches": "fetches",
    "simt_efficiency": "SIMT efficiency",
    "divergent_fetches": "divergent fetches",
    "lower_bound": "lower bound",
    "runs": "runs",
    "fetches_spread": "spread of fetches",
}
#: What was the same for all rows, told once.
FACTS = ("cpu", "cores", "kernel", "lockstep", "compiler", "flags", "traced_at")
#: More rows than this are left to the CSV file.
MOST_ROWS = 400


def chart_words(chart: matrices.Chart, rows: str, output: str) -> list[str]:
    """The command that draws a chart, after the tool's name."""
    where = [word for column, value in chart.where for word in ("--where", f"{column}={value}")]
    return ["plot", rows, "--kind", chart.kind, "--columns", str(chart.columns), *where, "-o", output]


def draw(chart: matrices.Chart, folder: Path) -> None:
    """Draws one chart."""
    (folder / "charts").mkdir(exist_ok=True)
    partial = f".{chart.name}.{os.getpid()}.svg"
    words = chart_words(chart, "summary.csv", f"charts/{partial}")
    if subprocess.run([steps.tool("lockstep").absolute(), *words], cwd=folder, check=False).returncode:
        raise steps.StepError("lockstep plot could not draw it; the lines above say why")
    (folder / "charts" / partial).rename(folder / "charts" / f"{chart.name}.svg")


def read_rows(path: Path) -> list[dict]:
    """The rows of a file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shown(column: str, row: dict) -> str:
    """A figure as people read it."""
    value = row[column]
    if column == "simt_efficiency" and value:
        return f"{float(value):.1%}"
    if column == "fetches_spread":
        return f"{float(value):.2%}" if value else "one run"
    return f"{int(value):,}" if column in FIGURES and value.isdigit() else value


def table(rows: list[dict]) -> tuple[list[str], list[list[str]]]:
    """Headings and lines of the summary."""
    keys = [column for column in KEYS if len({row[column] for row in rows}) > 1]
    columns = [*keys, *FIGURES]
    lines = []
    for row in rows:
        line = [shown(column, row) for column in columns]
        if row["status"] != "ok":
            line[len(keys)] = row["status"]
        elif row.get("deadlock"):
            line[len(keys)] += f" * ({row['deadlock']}; the numbers are those of locks=simt)"
        lines.append(line)
    return [(KEYS | FIGURES)[column] for column in columns], lines


def differences(rows: list[dict]) -> str:
    """How far repeats are apart."""
    repeated = [row for row in rows if row["fetches_spread"]]
    if not repeated:
        return "Every figure is of one run."
    largest = max(repeated, key=lambda row: float(row["fetches_spread"]))
    if not float(largest["fetches_spread"]):
        return f"All repeats of a run ({largest['runs']} each) gave the same fetches."
    return (
        f"Figures are of the run with the median number of fetches. Repeats differ by at most {shown('fetches_spread', largest)} of it "
        f"({largest['program']}, {largest['thread_count']} threads, {largest['heuristic']}: {int(largest['fetches_min']):,} to "
        f"{int(largest['fetches_max']):,} fetches)."
    )


def wrong(rows: list[dict]) -> str:
    """Which builds print something else than the first of their program."""
    builds = sorted({f"{row['program']} by {row['transform']}" for row in rows if row.get("prints") == "other"})
    return f"**These print something else than the first build of their program: {', '.join(builds)}.**" if builds else ""


def facts(rows: list[dict]) -> list[tuple[str, str]]:
    """What the numbers were made with: all values, or the first and the last of many."""
    told = []
    for name in FACTS:
        values = sorted({row[name] for row in rows if row.get(name)})
        if values:
            told.append((name.replace("_", " "), values[0] if len(values) == 1 else f"{values[0]} … {values[-1]}"))
    return told


def remake(matrix: matrices.Matrix) -> list[str]:
    """The commands that draw the charts from the rows."""
    words = (chart_words(chart, "summary.csv", f"charts/{chart.name}.svg") for chart in matrix.charts.values())
    return [shlex.join(["lockstep", *command]) for command in words]


#: Of lines of prose.
WRAPPING = {"break_long_words": False, "break_on_hyphens": False}


def wrapped(text: str) -> str:
    """Prose in lines of at most 120 columns; tables stay as they are."""
    parts = text.split("\n\n")
    return "\n\n".join(part if part.startswith("|") else textwrap.fill(part, 120, **WRAPPING) for part in parts)


def markdown(matrix: matrices.Matrix, rows: list[dict]) -> str:
    """The page as it stands in results/."""
    parts = [f"# {matrix.title}", *(wrapped(text.strip()) for text in (matrix.text, wrong(rows), differences(rows)))]
    for chart in matrix.charts.values():
        parts.append(f"![{chart.name}](charts/{chart.name}.svg)\n\n{wrapped(chart.text.strip())}")
    parts.append("## Made with")
    parts.append("\n".join(f"- {name}: {value}" for name, value in facts(rows)))
    how = f"scripts/experiment {matrix.name}" if not matrix.is_of_suite() else f"scripts/{matrix.name.replace('-', ' ', 1)} FOLDER"
    parts.append(wrapped(f"The whole experiment is made anew by `{how}`, its charts from `summary.csv`, in this folder, by"))
    parts.append("```sh\n" + "\n".join(remake(matrix)) + "\n```")
    parts.append("`rows.csv` and `rows.parquet` hold every replay of every run, `summary.csv` one row for the repeats of each.")
    headings, lines = table(rows)
    if len(lines) <= MOST_ROWS:
        cells = [headings, ["---"] * len(headings), *lines]
        parts.append("## Figures")
        parts.append("\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells))
    return "\n\n".join(filter(None, parts)) + "\n"


def web_page(matrix: matrices.Matrix, rows: list[dict], folder: Path) -> str:
    """The page with its charts in it, in one file."""
    e = html.escape
    told = filter(None, (matrix.text.strip(), wrong(rows).strip("*"), differences(rows)))
    parts = [f"<h1>{e(matrix.title)}</h1>", *(f"<p>{e(text)}</p>" for text in told)]
    for chart in matrix.charts.values():
        drawn = (folder / "charts" / f"{chart.name}.svg").read_text(encoding="utf-8")
        drawn = drawn[drawn.index("<svg") :]
        parts.append(f"<figure><div class=chart>{drawn}</div><figcaption>{e(chart.text.strip())}</figcaption></figure>")
    headings, lines = table(rows)
    parts.append("<h2>Figures</h2>")
    if len(lines) > MOST_ROWS:
        parts.append(f"<p>The first {MOST_ROWS} of {len(lines)} rows; all are in summary.csv.</p>")
    numbers = {*FIGURES.values(), KEYS["thread_count"], KEYS["warp_size"]}
    of_column = [" class=number" if heading in numbers else "" for heading in headings]
    head = "".join(f"<th scope=col{kind}>{e(heading)}</th>" for heading, kind in zip(headings, of_column, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{e(cell)}</td>" for cell, kind in zip(line, of_column, strict=True)) + "</tr>" for line in lines[:MOST_ROWS]
    )
    parts.append("<div class=filter><input id=filter type=search placeholder='Filter rows' aria-label='Filter rows'><span id=count role=status></span></div>")
    parts.append(f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")
    told = "".join(f"<dt>{e(name)}</dt><dd>{e(value)}</dd>" for name, value in facts(rows))
    parts.append(f"<h2>Made with</h2><dl>{told}</dl>")
    style, script = ((Path(__file__).parent / f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return (
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{e(matrix.title)}</title><style>\n{style}</style></head><body>\n" + "\n".join(parts) + f"\n<script>\n{script}</script>\n</body></html>\n"
    )


def main() -> None:
    """See the module."""
    kind, file, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    matrix = matrices.read(file)
    if kind == "chart":
        return draw(matrix.charts[sys.argv[4]], folder)
    rows = read_rows(folder / "summary.csv")
    (folder / "README.md").write_text(markdown(matrix, rows), encoding="utf-8")
    if kind == "readme":
        return None
    (folder / "index.html").write_text(web_page(matrix, rows, folder), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except (steps.StepError, matrices.MatrixError) as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")
