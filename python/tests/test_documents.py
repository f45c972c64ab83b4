"""The page and the notebook run as they stand."""

import json
import os
import re
from pathlib import Path

import matplotlib
import pytest
from conftest import LOCKSTEP, ROOT, Judged

import lockstep

matplotlib.use("Agg")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_runs(there: Path, capfd: pytest.CaptureFixture[str]) -> None:
    readme, page = [(ROOT / name).read_text() for name in ("README.md", "docs/python.md")]
    (there / "triangle.c").write_text(re.search(r"```c\n(.*?)```", readme, re.DOTALL).group(1))
    assert os.system(re.search(r"^gcc .*-o triangle$", readme, re.MULTILINE).group(0)) == 0
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 3
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
    said = capfd.readouterr().out
    expected = re.search(r"```text\n(verdict: .*?)```", page, re.DOTALL).group(1).splitlines()
    assert [line for line in expected if line not in said] == []


def test_the_notebook_draws_what_the_command_counts(there: Path) -> None:
    import matplotlib.pyplot as plt

    notebook = json.loads((ROOT / "docs/python.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict = {}
    for number, cell in enumerate(cells, 1):
        exec(compile(cell, f"docs/python.ipynb, cell {number}", "exec"), names)
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert len(figures) == 3
    efficiency, active, widths = (figure.axes[0] for figure in figures)
    trace = names["recording"]
    judge = {row["heuristic"]: row for row in Judged(trace, "-H", "all").rows}
    bars = {label.get_text(): bar.get_width() for label, bar in zip(efficiency.get_yticklabels(), efficiency.patches)}
    assert len(bars) == len(judge) == len(lockstep.heuristics())
    for heuristic, row in judge.items():
        assert bars[heuristic.split(":")[0]] == float(row["simt_efficiency"])
    of_nvidia = Judged(trace).json["results"][0]
    assert [bar.get_height() for bar in active.patches] == of_nvidia["active_histogram"]
    (line,) = widths.lines
    for width, drawn in zip(*line.get_data()):
        assert drawn == float(Judged(trace, "-W", str(width)).rows[0]["simt_efficiency"])
    plt.close("all")


def test_every_public_name_says_what_it_is() -> None:
    for name in lockstep.__all__:
        assert getattr(lockstep, name).__doc__, name
    text = (ROOT / "docs/python.md").read_text()
    assert all(f"{name}" in text for name in ("lockstep.trace", "lockstep.replay", "lockstep.open", "lockstep.Error"))
    assert Path(LOCKSTEP).exists()
