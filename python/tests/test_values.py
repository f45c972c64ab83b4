"""Values are those of the command, to the last digit."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import LOCKSTEP, THREE, Judged, Recorded, shown

import lockstep

# What is asked in Python, and the same of the command.
ASKED = [
    ({}, []),
    ({"by": "line"}, ["--by", "line"]),
    ({"heuristic": "all", "by": "function"}, ["-H", "all", "--by", "function"]),
    (
        {"heuristic": ["minpc", "ipdom:placement=nak"], "warp_size": 8, "group": "similarity", "by": "branch"},
        ["-H", "minpc,ipdom:placement=nak", "-W", "8", "--group", "similarity", "--by", "branch"],
    ),
    (
        {"machine": "amd", "measures": ["memory", "divergence", "fetch-units=2"], "locks": "all"},
        ["--machine", "amd", "--memory", "--divergence", "--fetch-units", "2", "--locks", "all"],
    ),
    ({"by": "cause", "measures": "alu", "workers": 1}, ["--by", "cause", "--alu"]),
    (
        {
            "heuristic": "hanoi",
            "measures": ["schedule-hash", "pass-lanes=2", "memory", "spaces", "spill-cache=4096", "load-latency=20"],
        },
        ["-H", "hanoi", "--schedule-hash", "--pass-lanes", "2", "--memory", "--spaces", "--spill-cache", "4096"]
        + ["--load-latency", "20"],
    ),
    ({"by": "path", "locks": "ignore", "code": "main"}, ["--by", "path", "--locks", "ignore", "--code", "main"]),
]


def in_csv(value: object) -> str:
    """As the command writes it, quotients aside."""
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(f"{name}:{count}" for name, count in value.items())
    return str(value)


@pytest.mark.parametrize("program", THREE)
@pytest.mark.parametrize(("asked", "options"), ASKED)
def test_tables_are_those_of_the_command(recorded: Recorded, program: str, asked: dict, options: list[str]) -> None:
    trace = recorded(program)
    judge, found = Judged(trace, *options), lockstep.replay(trace, **asked)
    compare_rows(found, judge)
    lanes = [{name: str(value) for name, value in lane.items()} for lane in found.lanes.to_dicts()]
    assert lanes == judge.lanes and len(lanes) >= 8
    if "by" in asked:
        compare_lost(found, judge, asked["by"])


def compare_rows(found: lockstep.Replay, judge: Judged) -> None:
    rows = found.rows.to_dicts()
    assert list(judge.rows[0]) == found.rows.column_names
    assert len(rows) == len(judge.rows) == len(found.rows) == len(judge.json["results"])
    values = 0
    for row, of_csv, of_json in zip(rows, judge.rows, judge.json["results"]):
        for name, value in row.items():
            if isinstance(value, float):
                assert value == float(of_csv[name]), name
            elif (name, of_csv[name]) != ("optimum", "left out"):
                assert in_csv(value) == of_csv[name], name
            if name in of_json and of_json[name] != "left out":
                assert value == of_json[name], name
            values += value is not None
    assert values >= 30 * len(rows)


def compare_lost(found: lockstep.Replay, judge: Judged, by: str) -> None:
    rows = found.lost.to_dicts()
    of_json = [(result, row) for result in judge.json["results"] if "by" in result for row in result["by"]["rows"]]
    assert len(rows) == len(of_json) > 0
    for row, (result, told) in zip(rows, of_json):
        assert row["heuristic"] == result["heuristic"]
        is_line = by == "line" and "file" in told
        assert row["subject"] == (f"{told['file']}:{told['line']}" if is_line else told[by])
        for name in {"file", "line", "function"} - ({by} - ({"line"} if is_line else set())):
            assert row[name] == told.get(name), name
        for name in ("parted_slots", "lost_slots", "fetches", "thread_instructions", "simt_efficiency"):
            assert row.get(name) == told.get(name), name
        if "lost_causes" in told:
            lost_to = [slots for name, slots in row.items() if name.startswith("lost_to_") and slots > 0]
            assert sorted(lost_to) == sorted(told["lost_causes"].values())
    # Either way of counting sums to the slots that the model's row has, and causes do to its own.
    for whole in found.rows.to_dicts():
        of_model = [row for row in rows if row["heuristic"] == whole["heuristic"]]
        assert of_model or whole["status"] != "ok" or whole["lost_slots"] == 0
        for name in of_model[0] if of_model else ():
            if name.startswith("lost_to_"):
                assert sum(row[name] for row in of_model) == whole[name], name
            elif name in ("parted_slots", "lost_slots"):
                assert sum(row[name] for row in of_model) == whole["lost_slots"], name


@pytest.mark.parametrize("program", [*THREE, "dynamic", "waits"])
def test_the_verdict_is_what_the_command_shows_first(recorded: Recorded, program: str) -> None:
    trace = recorded(program)
    found = lockstep.replay(trace)
    verdict, told = found.verdict, Judged(trace).json
    assert verdict is not None
    assert shown(trace).startswith(" ".join(str(verdict).split()))
    assert found.view == told["view"]
    told = told["verdict"]
    assert (verdict.headline, verdict.machine, verdict.heuristic) == (told["headline"], told["machine"], told["heuristic"])
    assert list(verdict.warnings) == told["warnings"]
    assert list(verdict.notes) == told["sentences"]
    assert verdict.coverage == told["coverage"]["share"]
    assert (verdict.items, verdict.places_of) == (told["items"], told["places_of"])
    assert len(verdict.places) == len(told["places"])
    for place, of_json in zip(verdict.places, told["places"]):
        assert (place.at, place.function, place.sentence) == (of_json["at"], of_json["in"], of_json["sentence"])
        assert (place.slots, place.share, place.causes) == (of_json["slots"], of_json["share"], of_json["causes"])
        remedies = [] if of_json["remedy"] is None else [of_json["remedy"], *of_json.get("more_remedies", [])]
        assert [vars(remedy) for remedy in place.remedies] == remedies
    if told["holds"] and not told["is_at_most"]:
        assert (verdict.efficiency, verdict.models) == (told["efficiency"], (told["least"], told["most"]))
        assert verdict.reason is None
        if "range" in told:
            assert verdict.range == (told["range"]["least"], told["range"]["most"])
    else:
        assert (verdict.efficiency, verdict.models, verdict.range) == (None, None, None)
        assert verdict.reason == told["headline"]


def test_three_programs_have_figures_and_a_gpus_time(recorded: Recorded) -> None:
    for program in THREE:
        verdict = lockstep.replay(recorded(program)).verdict
        assert verdict is not None and verdict.efficiency is not None and 0 < verdict.efficiency <= 1
        assert verdict.time is not None and verdict.time["nanoseconds"] > 0


def test_a_figure_that_is_chance_is_none_with_the_reason(recorded: Recorded) -> None:
    verdict = lockstep.replay(recorded("dynamic")).verdict
    assert verdict is not None and verdict.efficiency is None and verdict.at_most is None
    assert verdict.reason is not None and verdict.reason.startswith("withheld, since which lane ran what")


def test_a_bound_is_no_figure(recorded: Recorded) -> None:
    verdict = lockstep.replay(recorded("waits")).verdict
    assert verdict is not None and verdict.efficiency is None
    assert verdict.at_most is not None and verdict.reason is not None
    assert verdict.reason.startswith(f"at most {100 * verdict.at_most:.1f}% SIMT efficiency")


def test_models_that_are_named_have_no_verdict(recorded: Recorded) -> None:
    assert lockstep.replay(recorded("fft"), "minpc").verdict is None


def test_heuristics_are_those_of_the_command() -> None:
    told = json.loads(subprocess.run([LOCKSTEP, "heuristics", "--json"], capture_output=True, check=True).stdout)
    assert [one.name for one in lockstep.heuristics()] == [one["name"] for one in told["heuristics"]]
    assert {one.name: one.rule for one in lockstep.heuristics()} == {o["name"]: o["rule"] for o in told["heuristics"]}


def test_the_recording_is_as_good_as_the_commands(recorded: Recorded, tmp_path: Path) -> None:
    mine = recorded("fft")
    again = tmp_path / "again.bin"
    command = [LOCKSTEP, "trace", "--memory", "-o", again, *mine.command]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    trace = lockstep.open(mine)
    assert (trace.instructions, trace.threads) == (mine.instructions, mine.threads)
    assert trace.has_addresses and trace.recovered is None and trace.command == list(mine.command)
    assert mine.returncode == 0 and mine.bytes == Path(mine).stat().st_size
    columns = ("lanes", "fetches", "thread_instructions", "gpu_sectors")
    here, there = (lockstep.replay(of, "all", measures=["memory"]).rows for of in (mine, again))
    assert all(here[name] == there[name] for name in columns)
