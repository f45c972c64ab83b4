"""Charts of papers as SVG: bars in groups, one axis of values."""

from html import escape
from pathlib import Path

GREY, INK = "#bbbbbb", "#222222"


class Svg:
    """A white picture, and what is drawn on it. Words are of one colour, and bars may have an outline."""

    def __init__(self, width: float, tall: float, ink: str = f'fill="{INK}" ', outline: str = ""):
        self.width, self.ink, self.outline = width, ink, outline
        self.out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{tall}" font-family="sans-serif" font-size="11">',
            f'<rect width="{width}" height="{tall}" fill="#ffffff"/>',
        ]

    def text(self, x: float, y: float, words: str, more: str = "") -> None:
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" {self.ink}{more}>{escape(words)}</text>')

    def name(self, x: float, y: float, words: str, turn: int = -35) -> None:
        """Words under a group, on the slant."""
        self.text(x, y, words, f'text-anchor="end" transform="rotate({turn} {x:.1f} {y})"')

    def bar(self, x: float, y: float, wide: str, high: str, colour: str) -> None:
        self.out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide}" height="{high}" fill="{colour}"{self.outline}/>')

    def rule(self, left: int, y: float, more: str) -> None:
        """A level line over the whole width."""
        self.out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{self.width - 20}" y2="{y:.1f}" {more}/>')

    def level(self, left: int, y: float) -> None:
        """The line at which nothing has changed."""
        self.rule(left, y, f'stroke="{INK}" stroke-dasharray="4 3"')

    def head(self, title: str, note: str, legend: dict[str, str]) -> None:
        self.text(12, 20, title, 'font-weight="bold" font-size="13"')
        self.text(12, 36, note, 'font-size="10"')
        x = 12.0
        for label, colour in legend.items():
            self.out.append(f'<rect x="{x:.1f}" y="45" width="9" height="9" fill="{colour}"{self.outline}/>')
            self.text(x + 13, 54, label)
            x += 34 + 6.2 * len(label)

    def axis(self, left: int, ticks: list[tuple[float, str]], colour: str = "#e2e2e2") -> None:
        """A line and words for each tick, at its height."""
        for y, words in ticks:
            self.rule(left, y, f'stroke="{colour}"')
            self.text(left - 6, y + 4, words, 'text-anchor="end"')

    def done(self) -> str:
        return "\n".join([*self.out, "</svg>"]) + "\n"


def bars(title: str, note: str, legend: dict[str, str], panels: list[tuple]) -> str:
    """Panels of groups of bars, one above the other. A panel: its title, the value that the axis ends at, the one at
    which a line stands, how values are written, and its groups: a name, and for each bar its value or none, its colour
    and what stands above it."""
    left, high, gap, wide = 60, 170, 84, 15
    width = max(left + wide * max(sum(len(of) + 1 for _, of in groups) for *_, groups in panels) + 30, 420)
    svg = Svg(width, 84 + len(panels) * (high + gap), outline=f' stroke="{INK}" stroke-width="0.4"')
    svg.head(title, note, legend)
    for number, (heading, most, line, form, groups) in enumerate(panels):
        bottom = 66 + number * (high + gap) + high + 20
        svg.text(left, bottom - high - 8, heading, 'font-size="10"')
        svg.axis(left, [(bottom - high * tick / most, form(tick)) for tick in (most * i / 4 for i in range(5))])
        x = left + wide / 2
        for name, of_group in groups:
            first = x
            for value, colour, above in of_group:
                if value is None:
                    above, height = "–", 0
                else:
                    height = high * min(value, most) / most
                    svg.bar(x, bottom - height, str(wide - 1), f"{height:.1f}", colour)
                svg.text(x + wide / 2, bottom - height - 4, above, 'text-anchor="middle"')
                x += wide
            svg.name((first + x) / 2, bottom + 14.0, name)
            x += wide
        svg.level(left, bottom - high * line / most)
    return svg.done()


def save(folder: Path, drawn: dict[str, str | None]) -> list[Path]:
    """Writes the pictures that there are."""
    folder.mkdir(exist_ok=True)
    files = {folder / f"{name}.svg": svg for name, svg in drawn.items() if svg is not None}
    for file, svg in files.items():
        file.write_text(svg, encoding="utf-8")
    return list(files)
