"""Errors of builds, models and placements against the reference."""

import math
from collections import defaultdict


def summary(rows: list[dict]) -> list[dict]:
    """For each kind of error, set of kernels, build and model: how many kernels, the mean absolute error and the
    worst in points of efficiency, and the correlation."""
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for row in rows:
        for chosen in (row["set"], "all"):
            groups[row["error"], chosen, row["build"], row["model"]].append(row)
    lines = []
    for (kind, chosen, build, model), members in groups.items():
        worst = max(members, key=lambda row: abs(float(row["points"])))
        lines.append(
            {
                "error": kind,
                "set": chosen,
                "build": build,
                "model": model,
                "kernels": len(members),
                "mean": round(sum(abs(float(row["points"])) for row in members) / len(members), 2),
                "worst": float(worst["points"]),
                "worst_kernel": worst["kernel"],
                "correlation": correlation([(float(row["efficiency"]), float(row["reference"])) for row in members]),
            }
        )
    return lines


def correlation(pairs: list[tuple[float, float]]) -> float | str:
    """Pearson's, of at least two pairs that differ; else empty."""
    count = len(pairs)
    means = [sum(pair[at] for pair in pairs) / count for at in (0, 1)]
    spreads = [math.sqrt(sum((pair[at] - means[at]) ** 2 for pair in pairs)) for at in (0, 1)]
    if not all(spreads):
        return ""
    together = sum((pair[0] - means[0]) * (pair[1] - means[1]) for pair in pairs)
    return round(together / (spreads[0] * spreads[1]), 3)


def table(lines: list[dict], kind: str, chosen: str) -> str:
    """Mean absolute errors as a table in Markdown: a line for each model, a column for each build; the worst in
    brackets."""
    members = [line for line in lines if line["error"] == kind and line["set"] == chosen]
    columns = list(dict.fromkeys(line["build"] for line in members))
    cells = {(line["model"], line["build"]): line for line in members}
    out = ["| model | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for model in dict.fromkeys(line["model"] for line in members):
        found = [cells.get((model, build)) for build in columns]
        shown = [f"{line['mean']:.1f} ({line['worst']:+.0f} {line['worst_kernel']})" if line else "" for line in found]
        out.append(f"| `{model}` | " + " | ".join(shown) + " |")
    return "\n".join(out)
