"""Counters of programs that are OpenMP and CUDA at once: built by nvcc, run under ncu on an NVIDIA GPU.

Starting ncu costs seconds, so that one ncu runs several programs one after another. A program that such a run has no
counters of, or that fails in it, is run once more on its own. What is measured is written at once.
"""

import csv
import os
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

#: Counters of ncu, by the columns they become.
COUNTERS = {
    "warp_inst": "smsp__inst_executed.sum",
    "thread_inst": "smsp__thread_inst_executed.sum",
    "thread_inst_pred_on": "smsp__thread_inst_executed_pred_on.sum",
    "ld_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "ld_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "st_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "st_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "time": "gpu__time_duration.sum",
}
#: Programs that one ncu runs: its start is shared, and few counters are lost where it does not end.
TOGETHER = 8
#: Seconds after which an ncu, a compiler or a program is given up.
LIMIT = 120
#: Runs programs one after another; NAME.out gets what each prints, NAME.status how it ended.
ONE_AFTER_ANOTHER = 'for p in "$@"; do "$p" >"$p.out" 2>&1 </dev/null; echo $? >"$p.status"; done'


class Failed(Exception):
    """What went wrong with one program or one ncu."""


def finished(command, **options):
    """A command's standard output; all that it started ends with it, or at the limit."""
    with subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    ) as process:
        try:
            said, complained = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"{command[0]} did not end in {LIMIT} s") from None
    if process.returncode != 0:
        raise Failed(f"{command[0]}: status {process.returncode}: {(complained.strip() or said.strip())[-600:]}")
    return said


def build(source, folder):
    """Builds a program for the GPU and for the processor; what the second prints, or none if it cannot be built or run.

    The GPU's program is called as its source is, since ncu's rows name it so."""
    finished(["nvcc", "-O3", "-arch=native", "-std=c++17", source, "-o", folder / source.stem])
    on_processor = folder / f"{source.stem}.processor"
    try:
        finished(["g++", "-x", "c++", "-std=c++17", "-O2", "-fopenmp", "-w", source, "-o", on_processor])
        return finished([on_processor], env={**os.environ, "OMP_NUM_THREADS": "1"}).strip()
    except (Failed, OSError):
        return None


def rows_of(said):
    """The rows of ncu's CSV among what else is printed. The header may come again with each process."""
    lines = [line for line in said.splitlines() if line.startswith('"')]
    return [row for row in csv.DictReader(lines) if row["ID"] != "ID"]


def summed(rows):
    """Launches and sums of counters of each kernel, from rows of one program."""
    values = {}
    for row in rows:
        kernel = row["Kernel Name"].split("(")[0].split(" ")[-1]
        value = float(row["Metric Value"].replace(",", ""))
        values.setdefault(kernel, {}).setdefault(row["Metric Name"], []).append(value)
    return {
        kernel: [len(found[COUNTERS["warp_inst"]]), *(round(sum(found[name])) for name in COUNTERS.values())]
        for kernel, found in values.items()
    }


def profiled(names, folder):
    """Runs programs under one ncu: for each that went well its kernels, and what it printed."""
    for name in names:
        (folder / f"{name}.status").unlink(missing_ok=True)
    command = ["ncu", "--target-processes", "all", "--csv", "--print-units", "base"]
    command += ["--metrics", ",".join(COUNTERS.values()), "sh", "-c", ONE_AFTER_ANOTHER, "sh"]
    programs = [f"./{name}" for name in names]
    said = finished([*command, *programs], cwd=folder, env={**os.environ, "LC_ALL": "C"})
    rows = rows_of(said)
    found = {}
    for name in names:
        # A program alone has all rows, however ncu names it.
        own = [row for row in rows if len(names) == 1 or row["Process Name"] == name]
        status, printed = ((folder / f"{name}.{kind}") for kind in ("status", "out"))
        lines = [line for line in printed.read_text(encoding="utf-8").splitlines() if not line.startswith("==")]
        if not status.exists() or status.read_text(encoding="utf-8").strip() != "0":
            raise_if_alone(names, f"fails: {' '.join(lines)[-300:]}")
        elif not own:
            errors = [line for line in said.splitlines() if line.startswith("==ERROR==")]
            raise_if_alone(names, f"ncu has no counters of it: {' '.join(errors)}")
        else:
            found[name] = (summed(own), "\n".join(lines).strip())
    return found


def raise_if_alone(names, why):
    """A program alone fails; one of several is left out, and run again."""
    if len(names) == 1:
        raise Failed(why)


def one_by_one(names, folder, failed):
    """Each program with what ncu has of it: several at a time, and alone where that did not go well."""
    for at in range(0, len(names), TOGETHER):
        together = names[at : at + TOGETHER]
        try:
            found = profiled(together, folder)
        except (Failed, KeyError, ValueError, OSError) as error:
            print(f"{', '.join(together)}: {str(error)[:300]}", flush=True)
            found = {}
        yield from found.items()
        for name in (name for name in together if name not in found):
            try:
                yield name, profiled([name], folder)[name]
            except (Failed, KeyError, ValueError, OSError) as error:
                print(f"{name}: {str(error)[:300]}", flush=True)
                failed.append(name)


def measure(sources, counters):
    """Measures the programs of a folder and writes their counters; names of those that have none."""
    sources, failed, expected = sorted(Path(sources).glob("*.cu")), [], {}
    with (
        tempfile.TemporaryDirectory() as place,
        open(counters, "w", encoding="utf-8", newline="") as out,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        folder = Path(place)
        writer = csv.writer(out)
        writer.writerow(["name", "kernel", "launches", *COUNTERS, "printed"])
        for source, built in [(source, pool.submit(build, source.resolve(), folder)) for source in sources]:
            try:
                expected[source.stem] = built.result()
            except (Failed, OSError) as error:
                print(f"{source.stem}: {str(error)[:300]}", flush=True)
                failed.append(source.stem)
        print(f"{len(expected)} programs are built", flush=True)
        for name, (kernels, printed) in one_by_one(list(expected), folder, failed):
            for kernel, found in kernels.items():
                writer.writerow([name, kernel, *found, printed])
            out.flush()
            same = {None: "(not run on the processor)", printed: "as on the processor"}
            differs = f"DIFFERS from the processor's: {expected[name]}"
            print(f"{name}: {', '.join(kernels)}: {printed}: {same.get(expected[name], differs)}", flush=True)
    return failed


def missing():
    """A tool that measuring needs and that there is not; none if all are there."""
    return next((tool for tool in ("nvcc", "ncu", "g++") if not shutil.which(tool)), None)
