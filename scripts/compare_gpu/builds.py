"""Builds for x86-64, traced and replayed by lockstep."""

import itertools
import json
import os
import re
from collections import Counter
from pathlib import Path

import toolchain

ROOT = toolchain.ROOT
#: Name and compiler with its flags.
BUILDS = {
    **{f"gcc -O{level}": ("gcc", [f"-O{level}"]) for level in (1, 2, 3)},
    **{f"clang -O{level}": ("clang-19", [f"-O{level}"]) for level in (1, 2, 3)},
}
#: The build whose blocks are those of the reference.
EXACT = "blocks of the GPU build"
#: The model whose regions are compared with ptxas's.
STRUCTURED = "barrier:meet=barriers,placement=structured"
#: Models that are compared with these values of the parameter `predicate` too, where they have that: the longest arm,
#: in instructions, that is run without parting lanes.
PREDICATED_MODELS = ("hanoi:placement=structured", STRUCTURED, "barrier:meet=anywhere,placement=nak", "wave")
PREDICATED = (2, 3, 4, 6, 8)
#: Left out: nothing is shared under them, so that they are models of no machine.
NOT_COMPARED = ("round-robin", "none")
#: Parameters of which each value is a model of its own here; of others the default is taken.
VARIED = ("placement", "meet")


def lockstep(name: str) -> Path:
    """A binary of lockstep: of the folder that LOCKSTEP_BIN names, or of the release build."""
    path = Path(os.environ.get("LOCKSTEP_BIN") or ROOT / "target" / "release") / name
    if not path.exists():
        raise toolchain.ToolError(f"{path} is missing: build it with cargo build --release -p cli, or set LOCKSTEP_BIN")
    return path


def models() -> list[str]:
    """All models of `lockstep heuristics`, with each value of the parameters that say where lanes meet."""
    found: list[str] = []
    predicated: list[str] = []
    name, choices = "", []

    def add():
        if name and name not in NOT_COMPARED:
            found.extend(":".join(filter(None, (name, ",".join(chosen)))) for chosen in itertools.product(*choices))

    for line in toolchain.run([lockstep("lockstep"), "heuristics"]).splitlines():
        parameter = re.match(r"\s+(\w+)=.*\(([^()]*)\)$", line)
        if not line.startswith(" "):
            add()
            name, choices = line.split()[0], []
        elif re.match(r"\s+predicate=", line):
            of_this = [model for model in PREDICATED_MODELS if model.split(":")[0] == name]
            predicated += [
                f"{model}{',' if ':' in model else ':'}predicate={longest}"
                for model in of_this for longest in PREDICATED
            ]
        elif parameter and parameter[1] in VARIED:
            choices.append([f"{parameter[1]}={value}" for value in parameter[2].split(", ")])
    add()
    return found + predicated


def shaped() -> dict[str, tuple[str, list[str]]]:
    """Builds by `lockstep cc --shape gpu`, where it has that."""
    program = lockstep("lockstep")
    if "--shape" not in toolchain.run([program, "cc", "--help"]):
        return {}
    return {f"shaped -O{level}": (f"{program} cc --shape gpu --", [f"-O{level}"]) for level in (2, 3)}


def trace(program: Path, output: Path) -> str:
    """Traces a program; what it prints."""
    return toolchain.run([lockstep("trace"), "-o", output, program], timeout=300).strip()


def replay(trace_file: Path, lanes: int, models: list[str]) -> dict[str, dict]:
    """What `replay --json` says of each model, by the name that was asked for; models that deadlock are left out."""
    command = [
        lockstep("replay"),
        "--json",
        "--region",
        "kernel",
        "-W",
        lanes,
        "--heuristic",
        ",".join(models),
        trace_file,
    ]
    results = json.loads(toolchain.run(command, timeout=600))["results"]
    return {model: result for model, result in zip(models, results, strict=True) if result["status"] == "ok"}


def runs(trace_file: Path, lanes: int, model: str, starts: dict[int, int]) -> Counter:
    """How often a model runs each block, by the address of its first instruction."""
    command = [
        lockstep("replay"),
        "--region",
        "kernel",
        "-W",
        lanes,
        "--heuristic",
        model,
        "--schedule",
        "-",
        trace_file,
    ]
    found: Counter = Counter()
    for line in toolchain.run(command, timeout=600).splitlines():
        try:
            block = starts.get(int(line.split(" ", 1)[0], 16))
        except ValueError:
            # The line that names the model and the warp.
            continue
        if block is not None:
            found[block] += 1
    return found
