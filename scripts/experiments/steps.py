"""The steps of an experiment that run a program: build, trace, replay. Snakemake calls them; each can be called by hand too.

    steps.py build|trace|replay MATRIX NAME FOLDER

What a step makes appears in FOLDER under its name when it is whole, and not before: it is made under another name and then renamed.
"""

import contextlib
import csv
import ctypes
import fcntl
import hashlib
import json
import os
import platform
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import matrix as matrices
from matrix import PLAIN, Build, Limits, Matrix, Replay, Run

ROOT = Path(__file__).resolve().parents[2]
LIBC = ctypes.CDLL(None)
#: What a process gets when its parent has died: a killed step leaves nothing running.
PR_SET_PDEATHSIG = 1
#: Exit status of `replay` when no heuristic could end: its rows say so.
DEADLOCK = 6


class StepError(Exception):
    """Why a step failed; its text is the last line of the step's log."""


def tool(name: str) -> Path:
    """A binary of ours: beside the others that the environment names, or of the release build."""
    folder = Path(os.environ.get("LOCKSTEP_BIN") or ROOT / "target" / "release")
    if not (folder / name).exists():
        raise StepError(f"{folder / name} is missing: build it with cargo build --release, or set LOCKSTEP_BIN")
    return folder / name


def run_limited(command: list, limits: Limits, allowed=(0,), stdin=subprocess.DEVNULL, **options) -> int:
    """Runs a command within limits; its process group is killed when it takes too long."""
    command = [str(word) for word in command]
    print("+", " ".join(command), flush=True)
    bytes_allowed = limits.mebibytes << 20

    def before_exec():
        resource.setrlimit(resource.RLIMIT_DATA, (bytes_allowed, bytes_allowed))
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    process = subprocess.Popen(command, preexec_fn=before_exec, process_group=0, stdin=stdin, **options)
    try:
        status = process.wait(timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise StepError(f"{command[0]} ran longer than the limit of {limits.seconds} s (limits.time)") from None
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    if status not in allowed:
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        raise StepError(f"{command[0]} {how}; the limit of memory was {limits.mebibytes} MiB")
    return status


def sha256(path: Path) -> str:
    """The file's SHA-256, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def build_id(path: Path) -> str:
    """The GNU build id of a binary, or nothing."""
    text = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=False).stdout
    return next((line.split()[-1] for line in text.splitlines() if "Build ID:" in line), "")


def first_line(command: list) -> str:
    """The first line that a command prints, or nothing where it cannot be run."""
    try:
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
    return text.splitlines()[0] if text else ""


def machine() -> dict:
    """What the numbers were made on."""
    cpu = ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    return {"host": platform.node(), "cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release()}


def make_build(build: Build, limits: Limits, folder: Path) -> None:
    """Builds a program: a workload by its Makefile, sources by the compiler; a binary is taken as it is."""
    if build.binary:
        binary = shutil.which(build.binary) or build.binary
        if not os.access(binary, os.X_OK):
            raise StepError(f"{build.binary} is no program that can be run")
        (folder / "program").symlink_to(os.path.abspath(binary))
        compiler = "none"
    else:
        wrapper = [tool("lockstep"), "cc", "--transform", build.transform.replace("+", ","), "--layout", build.layout]
        compiler = ["cc"] if build.transform == PLAIN else [*wrapper, "--"]
        compiler = [str(word) for word in compiler]
        if build.workload:
            make_workload(build, compiler, limits, folder)
        elif build.suite:
            make_of_suite(build, compiler, limits, folder)
        else:
            command = [*compiler, *build.flags, *build.sources, "-o", folder / "program", *build.libraries]
            run_limited(command, limits)
    facts = {
        "transform": spelt_out(build.transform),
        "layout": build.layout,
        "compiler": first_line(["cc" if build.transform == PLAIN else "clang-19", "--version"]) if compiler != "none" else "",
        "flags": "the suite's own" if build.suite else " ".join(build.flags) if compiler != "none" else "",
        "binary_sha256": sha256(folder / "program"),
        "build_id": build_id(folder / "program"),
    }
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


def spelt_out(transform: str) -> str:
    """A list of transformations with all of their parameters, as rows tell it."""
    if transform == PLAIN:
        return transform
    return first_line([tool("lockstep"), "transform", "--list", "--pass", transform.replace("+", ",")])


def make_workload(build: Build, compiler: list[str], limits: Limits, folder: Path) -> None:
    """Builds a copy of a workload, since two steps may build one workload at once. `micro/diamond` is one program of a folder,
    `linearization/mum` a folder of its own."""
    name, _, target = build.workload.partition("/")
    if (ROOT / "workloads" / build.workload / "Makefile").exists():
        target = Path(build.workload).name
        name = build.workload
    source = ROOT / "workloads" / name
    if not (source / "Makefile").exists():
        raise StepError(f"there is no workload {name} in {source.parent}")
    for part in ("include", name):
        shutil.copytree(ROOT / "workloads" / part, folder / "source" / part)
    # The marks: workloads name them from their own folders.
    shutil.copytree(ROOT / "include", folder / "include")
    for shared in source.parent.glob("*.mk"):
        shutil.copy2(shared, folder / "source" / name / "..")
    copy = folder / "source" / name
    run_limited(["make", "-s", "-C", copy, "clean"], limits)
    settings = [f"CC={' '.join(compiler)}", f"CFLAGS={' '.join(build.flags)}"]
    run_limited(["make", "-C", copy, *settings, *filter(None, [target])], limits)
    shutil.copy2(copy / (target or name), folder / "program")


#: Lets clang take the C and C++ of old suites, as gcc does.
OLD_FAULTS = ("implicit-function-declaration", "implicit-int", "int-conversion", "return-type", "register")
OLD_C = [f"-Wno-{fault}" for fault in OLD_FAULTS]


def make_of_suite(build: Build, compiler: list[str], limits: Limits, folder: Path) -> None:
    """Builds a program of a suite by its own makefile, in a copy of the suite: the user's stays as it is. Whatever name
    the makefile has for the compiler, it is ours that is found."""
    suite = Path(os.environ.get("LOCKSTEP_SUITE") or "/nowhere")
    if not (suite / build.suite).is_dir():
        raise StepError(f"the suite has no folder {build.suite}: name the suite's folder, as scripts/original SUITE FOLDER")
    ignored = shutil.ignore_patterns(".git", ".svn", "*.tar")
    for part in build.parts or ("",):
        copy = folder / "source" / part
        shutil.copytree(suite / part, copy, symlinks=True, ignore=ignored, ignore_dangling_symlinks=True)
    place = folder / "source" / build.suite
    (folder / "bin").mkdir()
    for name in ("cc", "gcc", "clang", "c++", "g++", "clang++") if build.transform != PLAIN else ():
        words = ["c++" if word == "cc" and "++" in name else word for word in compiler]
        stand_in = folder / "bin" / name
        stand_in.write_text(f'#!/bin/sh\nexec {shlex.join([*words, *OLD_C])} "$@"\n')
        stand_in.chmod(0o755)
    env = os.environ | dict(build.environment) | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    run_limited(["make", "-C", place, "clean"], limits, allowed=range(256), env=env)
    run_limited(["make", "-C", place, *build.make], limits, env=env)
    if not os.access(place / build.target, os.X_OK):
        raise StepError(f"make left no program {build.target} in {build.suite}")
    for archive in build.unpack:
        try:
            with tarfile.open(suite / archive) as files:
                files.extractall(place, filter="data")
        except (OSError, tarfile.TarError) as error:
            raise StepError(f"{archive} of the suite is what {build.program} reads: {error}") from error
    (folder / "program").symlink_to(Path("source") / build.suite / build.target)


def run_of(run: Run, built: Path, command: list, limits: Limits, output: Path) -> None:
    """Runs a program, or what runs it, with what it reads. One of a suite runs in its own folder, where its inputs are."""
    with tempfile.TemporaryDirectory() as scratch, open(output, "wb") as printed, contextlib.ExitStack() as files:
        # Under its own name: rows tell the command, and are the same wherever they were made.
        place, name = Path(scratch), run.build.target or run.build.program
        if run.build.suite:
            place = built / "source" / run.build.suite
        else:
            (place / name).symlink_to(built / "program")
        text = Path(scratch) / ".typed"
        text.write_text(run.typed)
        reads = place / run.stdin if run.stdin else text
        if not reads.exists():
            raise StepError(f"{run.stdin} is not in {run.build.suite or 'the folder of the run'}: it is what the program reads")
        stdin = files.enter_context(open(reads, "rb"))
        options = {"env": os.environ | {"OMP_NUM_THREADS": str(run.threads)}, "cwd": place, "stdout": printed}
        if run.stderr:
            options["stderr"] = printed
        for file in run.writes:
            (place / file).unlink(missing_ok=True)
        run_limited([*command, f"./{name}", *run.arguments], limits, stdin=stdin, **options)
        for file in run.writes:
            printed.write(f"{file}: {sha256(place / file)}\n".encode())


#: Stands for a line that runs of one program do not print alike: a time, or what a race decides.
VARIES = "~"


def printed(outputs: list[bytes]) -> list[str]:
    """What runs of one program print alike, by line. Where not even the number of lines is the same, nothing is."""
    runs = [output.decode(errors="replace").splitlines() for output in outputs]
    if len({len(run) for run in runs}) > 1:
        return [VARIES]
    return [lines[0] if len(set(lines)) == 1 else VARIES for lines in zip(*runs, strict=True)]


def make_trace(matrix: Matrix, run: Run, folder: Path, made: Path) -> None:
    """Runs a build under the tracer, and twice without, to know what it prints each time."""
    built = folder / "builds" / run.build.name
    started = datetime.now(UTC)
    clock = time.monotonic()
    command = [tool("trace"), "-o", made / "trace.bin", *run.options, "--"]
    run_of(run, built, command, matrix.limits, made / "output.txt")
    traced_in = round(time.monotonic() - clock, 2)
    outputs = [(made / "output.txt").read_bytes()]
    for _ in range(2 if matrix.is_compared(run) else 0):
        # Another second of the day, which programs print.
        time.sleep(1.1)
        run_of(run, built, [], matrix.limits, made / "again.txt")
        outputs.append((made / "again.txt").read_bytes())
    (made / "printed.txt").write_text("\n".join(printed(outputs)))
    facts = json.loads((built / "facts.json").read_text())
    facts |= {
        "arguments": " ".join(run.arguments),
        "trace_options": " ".join(run.options),
        "trace_sha256": sha256(made / "trace.bin"),
        "trace_bytes": (made / "trace.bin").stat().st_size,
        "traced_at": started.isoformat(timespec="seconds"),
        "traced_in_s": traced_in,
        "lockstep": first_line([tool("lockstep"), "--version"]),
        "lockstep_sha256": sha256(tool("lockstep")),
    }
    (made / "facts.json").write_text(json.dumps(facts | machine(), indent=1) + "\n")


def make_replay(matrix: Matrix, replay: Replay, folder: Path, made: Path) -> None:
    """Replays a trace under all heuristics, and puts beside each row what it is a row of."""
    run = replay.run
    traced = folder / "traces" / run.name
    rows = made / "replay.csv"
    command = [tool("replay"), *replay.options, "--workers", "1", "--csv", rows, traced / "trace.bin"]
    run_limited(command, matrix.limits, allowed=(0, DEADLOCK))
    facts = json.loads((traced / "facts.json").read_text())
    key = {
        "experiment": matrix.name,
        "program": run.build.program,
        "transform": facts["transform"],
        "layout": run.build.layout,
        "input": run.input,
        "thread_count": run.threads,
        "width": replay.width,
        "repeat": run.repeat,
    }
    # Charts name traces by this; threads and repeats have columns of their own.
    trace = "-".join(filter(None, [run.build.name, run.input]))
    facts = {name: value for name, value in facts.items() if name not in key}
    with open(rows, newline="", encoding="utf-8") as file, open(made / "rows.csv", "w", newline="", encoding="utf-8") as out:
        read = csv.DictReader(file)
        taken = {"trace", *(read.fieldnames or ())}
        facts = {name: value for name, value in facts.items() if name not in taken}
        write = csv.DictWriter(out, [*key, *(read.fieldnames or ()), *facts], lineterminator="\n")
        write.writeheader()
        write.writerows(key | row | {"trace": trace} | facts for row in read)
    rows.unlink()


@contextlib.contextmanager
def at_work(folder: Path):
    """Tells `scripts/experiment` that a step is at work, also when nobody waits for it any more."""
    with open(folder / ".steps", "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def main() -> None:
    """One step, made under another name and renamed when whole."""
    kind, file, name, folder = sys.argv[1:]
    folder = Path(folder).resolve()
    matrix = matrices.read(Path(file))
    target = folder / {"build": "builds", "trace": "traces", "replay": "replays"}[kind] / name
    # A step that is told to end takes back what it has half made, as after any fault.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(f"the step {kind} of {name} was ended by SIGTERM"))
    with at_work(folder):
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{name}-"))
        try:
            match kind:
                case "build":
                    make_build(matrix.builds[name], matrix.limits, made)
                case "trace":
                    make_trace(matrix, matrix.runs[name], folder, made)
                case "replay":
                    make_replay(matrix, matrix.replays[name], folder, made)
            shutil.rmtree(target, ignore_errors=True)
            made.rename(target)
        finally:
            shutil.rmtree(made, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except (StepError, matrices.MatrixError) as error:
        sys.exit(f"{Path(sys.argv[0]).name} {sys.argv[1]} {sys.argv[3]}: {error}")
