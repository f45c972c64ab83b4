"""The scatter chart: the efficiency of each kernel by the reference, and by some models from two ordinary builds."""

from html import escape

SIDE, LEFT, TOP, GAP = 300, 50, 60, 60
#: Model, its label, and colour.
SERIES = [
    ("minsp-pc", "minsp-pc", "#999999"),
    ("ipdom:placement=binary", "ipdom, placement=binary", "#d55e00"),
    ("hanoi:placement=structured,predicate=4", "hanoi, structured, predicate=4 (nvidia)", "#0072b2"),
]
PANELS = ("gcc -O2", "clang -O2")


def chart(rows: list[dict]) -> str:
    """The chart as SVG, of the rows of all kernels."""
    width, height = LEFT + len(PANELS) * (SIDE + GAP), TOP + SIDE + 50
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for at, (_, label, colour) in enumerate(SERIES):
        x = LEFT + at * 190
        out.append(f'<circle cx="{x}" cy="16" r="4" fill="{colour}"/><text x="{x + 8}" y="20">{escape(label)}</text>')
    for at, build in enumerate(PANELS):
        out += panel(LEFT + at * (SIDE + GAP), build, [row for row in rows if row["build"] == build])
    return "\n".join([*out, "</svg>"]) + "\n"


def panel(left: int, build: str, rows: list[dict]) -> list[str]:
    """One square: the reference from left to right, a model's efficiency upwards, the line on which both are equal."""
    bottom = TOP + SIDE
    out = [
        f'<text x="{left}" y="{TOP - 10}" font-weight="bold">{escape(build)}</text>',
        f'<rect x="{left}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#444444"/>',
        f'<line x1="{left}" y1="{bottom}" x2="{left + SIDE}" y2="{TOP}" stroke="#bbbbbb"/>',
        f'<text x="{left + SIDE / 2}" y="{bottom + 34}" text-anchor="middle">reference</text>',
    ]
    for tick in (0, 50, 100):
        step = SIDE * tick / 100
        out.append(f'<text x="{left + step}" y="{bottom + 16}" text-anchor="middle">{tick}%</text>')
        out.append(f'<text x="{left - 6}" y="{bottom - step + 4}" text-anchor="end">{tick}%</text>')
    for model, _, colour in SERIES:
        for row in rows:
            if row["model"] == model:
                x, y = left + SIDE * float(row["reference"]), bottom - SIDE * float(row["efficiency"])
                title = escape(f"{row['kernel']}: {row['efficiency']} for {row['reference']}")
                dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.7">'
                out.append(f"{dot}<title>{title}</title></circle>")
    return out
