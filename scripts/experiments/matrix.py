"""The matrix of an experiment: read from a TOML file, checked, and spread out into builds, traces and replays.

A matrix is a product: programs x inputs x thread counts x transformations x layouts x repeats give traces; warp widths x groupings x
lock policies give the replays of each trace, each with all heuristics in one reading. Every step has a name made of what it is for,
which is also the name of its files.
"""

import re
import shlex
import tomllib
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path


class MatrixError(Exception):
    """A fault in a matrix file; its text names the file, the key and the way out."""


#: Keys with their defaults that stand at the top of a file, and that a program may set for itself.
SHARED = {
    "threads": [4],
    "transforms": ["plain"],
    "layouts": ["ordered"],
    "inputs": {"": ""},
    "trace_options": [],
    "replay_options": [],
    "heuristics": ["all"],
    "warp_widths": ["threads"],
    "grouping": ["consecutive"],
    "locks": ["serialize"],
    "region": "auto",
    "code": "all",
    "repeats": 1,
    "flags": ["-O2", "-g"],
    "environment": {},
}
#: Keys with their defaults that stand at the top only.
TOP = {"title": "", "text": "", "keep_traces": True, "limits": {}, "program": [], "chart": []}
#: Keys of a program besides the shared ones.
PROGRAM = {
    "name": "",
    "workload": "",
    "sources": [],
    "libraries": [],
    "binary": "",
    "suite": "",
    "parts": [],
    "target": "",
    "make": [],
    "unpack": [],
    "stdin": "",
    "typed": "",
    "stderr": False,
    "writes": [],
    "arguments": [],
}
#: Keys of a chart. `where` keeps the rows whose columns have these values.
CHART = {"name": "", "kind": "", "text": "", "where": {}, "columns": 1}

WIDTH_OF_ALL = "threads"
PLAIN = "plain"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*\Z")
TIME = re.compile(r"(\d+)(s|m|h)\Z")
MEMORY = re.compile(r"(\d+)(MiB|GiB)\Z")
SECONDS = {"s": 1, "m": 60, "h": 3600}
MEBIBYTES = {"MiB": 1, "GiB": 1024}


@dataclass(frozen=True)
class Limits:
    """What one step may use."""

    #: Wall-clock seconds.
    seconds: int = 600
    #: MiB of private memory of each process.
    mebibytes: int = 4096


@dataclass(frozen=True)
class Build:
    """A program built in one way."""

    name: str
    program: str
    transform: str
    layout: str
    workload: str
    sources: tuple[str, ...]
    libraries: tuple[str, ...]
    flags: tuple[str, ...]
    binary: str
    #: A folder of a suite in which `make` leaves `target`, with these words for it.
    suite: str = ""
    target: str = ""
    make: tuple[str, ...] = ()
    #: What make finds in its environment.
    environment: tuple[tuple[str, str], ...] = ()
    #: The folders of the suite that are copied, where not all of it is.
    parts: tuple[str, ...] = ()
    #: Archives of the suite whose files are put where the program runs.
    unpack: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """A build run once under the tracer."""

    name: str
    build: Build
    input: str
    threads: int
    repeat: int
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    #: What it reads: a file of its folder, or a text.
    stdin: str = ""
    typed: str = ""
    #: What it must do the same in all builds, besides what it prints: whether errors too, and files that it writes.
    stderr: bool = False
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replay:
    """A trace replayed with every heuristic in one setting."""

    name: str
    run: Run
    width: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Chart:
    """A chart of some of the rows."""

    name: str
    kind: str
    text: str
    where: tuple[tuple[str, str], ...]
    columns: int


@dataclass
class Matrix:
    """All that an experiment does."""

    name: str
    title: str
    text: str
    keep_traces: bool
    limits: Limits
    builds: dict[str, Build] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    replays: dict[str, Replay] = field(default_factory=dict)
    charts: dict[str, Chart] = field(default_factory=dict)

    def is_of_suite(self) -> bool:
        """Whether its programs are a benchmark suite's: see scripts/original."""
        return any(build.suite for build in self.builds.values())

    def is_compared(self, run: Run) -> bool:
        """Whether its program is built in several ways, which must print the same."""
        return sum(build.program == run.build.program for build in self.builds.values()) > 1


def read(path: Path) -> Matrix:
    """Reads and checks a matrix file. Paths in it are relative to its folder."""
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise MatrixError(f"{path}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise MatrixError(f"{path}: {error}") from error
    try:
        return spread(table, path)
    except MatrixError as error:
        raise MatrixError(f"{path}: {error}") from error


def spread(table: dict, path: Path) -> Matrix:
    """Checks a table and makes its steps."""
    top = with_defaults(table, SHARED | TOP, "the file")
    matrix = Matrix(path.stem, top["title"] or path.stem, top["text"], top["keep_traces"], limits(top["limits"]))
    if not top["program"]:
        raise MatrixError("there is no [[program]]")
    seen = set()
    for program in top["program"]:
        shared = {key: top[key] for key in SHARED}
        where = f"program {program.get('name', len(seen) + 1)!r}"
        program = with_defaults(program, PROGRAM | shared, where)
        if program["name"] in seen:
            raise MatrixError(f"{where} stands twice: names must differ")
        seen.add(program["name"])
        try:
            add_program(matrix, program, path.parent)
        except MatrixError as error:
            raise MatrixError(f"{where}: {error}") from error
        for chart in divergent_charts(program):
            matrix.charts[chart.name] = chart
    for chart in top["chart"]:
        chart = with_defaults(chart, CHART, f"chart {chart.get('name', '')!r}")
        check_name("chart", chart["name"])
        if chart["name"] in matrix.charts:
            raise MatrixError(f"the chart name {chart['name']!r} stands twice, or is that of a program's first chart: choose another")
        where = tuple((key, str(value)) for key, value in chart["where"].items())
        matrix.charts[chart["name"]] = Chart(chart["name"], chart["kind"], chart["text"], where, chart["columns"])
    return matrix


def divergent_charts(program: dict):
    """The first charts of each page: a program's divergent instructions, in its widest warps and its first grouping, for each lock policy."""
    widths = program["warp_widths"]
    widest = WIDTH_OF_ALL if WIDTH_OF_ALL in widths else max(widths)
    for locks in program["locks"]:
        name = f"divergent-{program['name']}" + (f"-{locks}" if len(program["locks"]) > 1 else "")
        where = (("program", program["name"]), ("width", str(widest)), ("group", program["grouping"][0]), ("locks", locks))
        told = "all threads in one warp" if widest == WIDTH_OF_ALL else f"warps of {widest}"
        policy = f", locks {locks}" if len(program["locks"]) > 1 else ""
        text = f"{program['name']}: thread instructions in divergent fetches, stacked under the others ({told}{policy})."
        yield Chart(name, "divergent", text, where, 1)


def with_defaults(table: dict, defaults: dict, what: str) -> dict:
    """The table with what it leaves out; a key that does not exist, or a value of another type, is an error."""
    for key, value in table.items():
        if key not in defaults:
            raise MatrixError(f"{what} has no key {key!r}; there are: {', '.join(sorted(defaults))}")
        wanted = type(defaults[key])
        if not isinstance(value, wanted) or isinstance(value, bool) != (wanted is bool):
            raise MatrixError(f"{what}: {key} must be a {wanted.__name__}, not {value!r}")
        if wanted is list and not value and defaults[key]:
            raise MatrixError(f"{what}: {key} is empty, so there is nothing to do")
    return defaults | table


def limits(table: dict) -> Limits:
    """What a step may use."""
    table = with_defaults(table, {"time": "10m", "memory": "4GiB"}, "limits")
    time, memory = TIME.match(table["time"]), MEMORY.match(table["memory"])
    if not time or not int(time[1]):
        raise MatrixError(f"limits: time is {table['time']!r}; it is a number with s, m or h, as 90s")
    if not memory or not int(memory[1]):
        raise MatrixError(f"limits: memory is {table['memory']!r}; it is a number with MiB or GiB, as 2GiB")
    return Limits(int(time[1]) * SECONDS[time[2]], int(memory[1]) * MEBIBYTES[memory[2]])


def check_name(what: str, name: str) -> None:
    """Names become file names."""
    if not NAME.match(name):
        raise MatrixError(f"the {what} name {name!r} must be of letters, digits, _, ., + and -")


def add_program(matrix: Matrix, program: dict, folder: Path) -> None:
    """The builds, runs and replays of one program."""
    check_name("program", program["name"])
    if sum(bool(program[key]) for key in ("workload", "sources", "binary", "suite")) != 1:
        raise MatrixError("it needs one of workload, sources, binary and suite")
    if bool(program["suite"]) != bool(program["target"]):
        raise MatrixError("suite and target go together: a folder of a suite, and the program that make leaves there")
    for key in ("make", "unpack", "parts"):
        if program[key] and not program["suite"]:
            raise MatrixError(f"{key} is for a program of a suite")
    if program["parts"] and not any(Path(program["suite"]).is_relative_to(part) for part in program["parts"]):
        raise MatrixError("parts are the folders that are copied: suite must lie in one")
    if program["stdin"] and program["typed"]:
        raise MatrixError("stdin names a file and typed is a text: give one")
    if program["binary"] and program["transforms"] != [PLAIN]:
        raise MatrixError('a binary is not rebuilt: transforms must be ["plain"]')
    threads = program["threads"]
    if any(not isinstance(n, int) or n < 1 for n in threads):
        raise MatrixError(f"threads is {threads!r}; it is a list of numbers from 1 on")
    if program["repeats"] < 1:
        raise MatrixError(f"repeats is {program['repeats']}; it is a number from 1 on")
    widths = program["warp_widths"]
    if any(w != WIDTH_OF_ALL and (not isinstance(w, int) or w < 1) for w in widths):
        raise MatrixError(f'warp_widths is {widths!r}; it is a list of numbers from 1 on and "threads"')
    for build in builds_of(program, folder):
        add(matrix.builds, build)
        for run in runs_of(program, build):
            add(matrix.runs, run)
            for replay in replays_of(program, run):
                add(matrix.replays, replay)


def add(steps: dict, step) -> None:
    """Adds a step, whose name must be its own: names are put together of parts, and values may be given twice."""
    if step.name in steps:
        raise MatrixError(f"{step.name} comes out twice: a value stands twice in a list, or names run into each other")
    steps[step.name] = step


def builds_of(program: dict, folder: Path):
    """One build for each transformation and layout; one only where the compiler is used as it is."""
    for transform in program["transforms"]:
        for layout in ["default"] if transform == PLAIN else program["layouts"]:
            yield Build(
                name=f"{program['name']}-{re.sub('[,:=]', '+', transform)}-{layout}",
                program=program["name"],
                transform=transform,
                layout=layout,
                workload=program["workload"],
                sources=tuple(str(folder / source) for source in program["sources"]),
                libraries=tuple(program["libraries"]),
                flags=tuple(program["flags"]),
                binary=str(folder / program["binary"]) if program["binary"] else "",
                suite=program["suite"],
                target=program["target"],
                make=tuple(program["make"]),
                environment=tuple(program["environment"].items()) if program["suite"] else (),
                parts=tuple(program["parts"]),
                unpack=tuple(program["unpack"]),
            )


def runs_of(program: dict, build: Build):
    """One run for each input, thread count and repeat."""
    for (name, words), threads in product(program["inputs"].items(), program["threads"]):
        if name:
            check_name("input", name)
        arguments = [*program["arguments"], *shlex.split(words)]
        for repeat in range(1, program["repeats"] + 1):
            yield Run(
                name="-".join(filter(None, [build.name, name, f"p{threads}", f"r{repeat}"])),
                build=build,
                input=name,
                threads=threads,
                repeat=repeat,
                arguments=tuple(word.replace("{threads}", str(threads)) for word in arguments),
                options=tuple(program["trace_options"]),
                stdin=program["stdin"].replace("{threads}", str(threads)),
                typed=program["typed"].replace("{threads}", str(threads)),
                stderr=program["stderr"],
                writes=tuple(program["writes"]),
            )


def replays_of(program: dict, run: Run):
    """One replay for each warp width, grouping and lock policy."""
    for width, grouping, locks in product(program["warp_widths"], program["grouping"], program["locks"]):
        options = ["--heuristic", ",".join(program["heuristics"]), "--group", grouping, "--locks", locks]
        options += ["--region", program["region"], "--code", program["code"]]
        options += program["replay_options"]
        if width != WIDTH_OF_ALL:
            options += ["--warp-size", str(width)]
        yield Replay(f"{run.name}-w{width}-{grouping}-{locks}", run, str(width), tuple(options))
