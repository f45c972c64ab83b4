"""What cannot be done is refused in the command's words; what is broken off ends."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import LOCKSTEP, Recorded, build, words_of_the_command

import lockstep

REPLAYS = [
    ({"region": "no_such_function"}, ["--region", "no_such_function"], 4),
    ({"heuristic": "no-such"}, ["-H", "no-such"], 2),
    ({"heuristic": "long:n=no"}, ["-H", "long:n=no"], 2),
    ({"machine": "abacus"}, ["--machine", "abacus"], 2),
    ({"machine": "amd", "heuristic": "minpc"}, ["--machine", "amd", "-H", "minpc"], 2),
    ({"warp_size": 400}, ["--warp-size", "400"], 2),
    ({"lanes": "iterations"}, ["--lanes", "iterations"], 4),
    ({"loop": "fft.c:1"}, ["--loop", "fft.c:1"], 4),
    ({"by": "weight"}, ["--by", "weight"], 2),
    ({"locks": "no"}, ["--locks", "no"], 2),
    ({"predict": ["fft.c:1"]}, ["--predict", "fft.c:1"], 4),
]


@pytest.mark.parametrize(("asked", "options", "status"), REPLAYS)
def test_replays_are_refused_in_the_commands_words(
    recorded: Recorded, asked: dict, options: list[str], status: int
) -> None:
    trace = recorded("fft")
    with pytest.raises(lockstep.Error) as refused:
        lockstep.replay(trace, **asked)
    told_status, told = words_of_the_command("replay", *options, trace.path)
    assert refused.value.status == told_status == status
    assert " ".join(str(refused.value).split()) in told
    assert "--help" not in str(refused.value) and "Usage" not in str(refused.value)


def test_files_that_are_no_traces(recorded: Recorded, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.bin"
    content = bytearray(Path(recorded("fft")).read_bytes())
    content[len(content) // 2] ^= 0xFF
    damaged.write_bytes(content)
    for path in [tmp_path / "missing.bin", Path(__file__), tmp_path, damaged]:
        with pytest.raises(lockstep.Error) as refused:
            lockstep.replay(path)
        told_status, told = words_of_the_command("replay", path)
        assert refused.value.status == told_status == 3
        assert " ".join(str(refused.value).split()) in told


def test_a_trace_without_addresses_says_how_to_get_them(recorded: Recorded, tmp_path: Path) -> None:
    recorded("fft")
    trace = lockstep.trace(recorded("fft").command, tmp_path / "plain.bin", stdout=subprocess.DEVNULL)
    with pytest.raises(lockstep.Error, match="record it with trace --memory"):
        lockstep.replay(trace, measures=["memory"])
    with pytest.raises(lockstep.Error, match="no measure is called memories: there are .*memory"):
        lockstep.replay(trace, measures=["memories"])
    with pytest.raises(lockstep.Error, match="one width, one grouping"):
        lockstep.replay(trace, group="all")
    with pytest.raises(lockstep.Error, match="by='line'"):
        lockstep.replay(trace).lost


def test_a_model_that_deadlocks_has_no_numbers(recorded: Recorded) -> None:
    rows = lockstep.replay(recorded("lock"), "all", locks="serialize,simt").rows.to_dicts()
    deadlocks = [row for row in rows if row["status"] != "ok"]
    assert 0 < len(deadlocks) < len(rows)
    for row in deadlocks:
        assert "deadlocks: lanes" in row["status"] and "(lock)" in row["status"]
        assert row["fetches"] is None and row["simt_efficiency"] is None and row["active_histogram"] is None


def test_programs_that_cannot_be_recorded(recorded: Recorded, tmp_path: Path) -> None:
    script = tmp_path / "plain-text"
    script.write_text("text")
    fft = recorded("fft").command[0]
    for command, options in [
        (["./no-such-program"], {}),
        ([str(script)], {}),
        ([fft], {"limit": "many"}),
        ([fft], {"engine": "steam"}),
        ([fft], {"markers": True, "start": "main"}),
    ]:
        with pytest.raises(lockstep.Error) as refused:
            lockstep.trace(command, tmp_path / "refused.bin", **options)
        words = ["--markers" if value is True else f"--{name}={value}" for name, value in options.items()]
        told_status, told = words_of_the_command("trace", "-o", tmp_path / "refused.bin", *words, "--", *command)
        assert refused.value.status == told_status
        assert " ".join(str(refused.value).split()) in told
    with pytest.raises(lockstep.Error, match="cannot create") as refused:
        lockstep.trace([fft], tmp_path / "no/such/folder.bin")
    assert refused.value.status == words_of_the_command("trace", "-o", tmp_path / "no/such/folder.bin", fft)[0]
    with pytest.raises(ValueError, match="DEVNULL"):
        lockstep.trace([fft], tmp_path / "refused.bin", stdout=subprocess.PIPE)


def test_what_never_began_is_refused(recorded: Recorded, tmp_path: Path) -> None:
    out = tmp_path / "never.bin"
    command = [LOCKSTEP, "trace", "-o", out, "--markers", *recorded("fft").command]
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with pytest.raises(lockstep.Error, match="nothing was recorded: ") as refused:
        lockstep.trace(recorded("fft").command, out, markers=True, stdout=subprocess.DEVNULL)
    assert refused.value.status == ran.returncode == 125
    assert " ".join(str(refused.value).split()) in " ".join(ran.stderr.split())


def test_the_programs_status_streams_folder_and_environment_are_its_own(tmp_path: Path) -> None:
    with open(tmp_path / "said", "w+") as said:
        script = "read word; echo $word $PLACE; pwd; ls -l /proc/self/fd | wc -l; exit 3"
        word = tmp_path / "word"
        word.write_text("hello\n")
        ran = lockstep.trace(
            ["/bin/sh", "-c", script],
            tmp_path / "sh.bin",
            stdin=open(word),
            stdout=said,
            cwd=tmp_path,
            env={"PLACE": "here", "PATH": os.environ["PATH"]},
        )
        said.seek(0)
        lines = said.read().splitlines()
    assert ran.returncode == 3
    assert lines[:2] == ["hello here", str(tmp_path)]
    # The three streams, the folder that ls reads, and its line of the sum: no pipe of the recorder's.
    assert int(lines[2]) <= 5


def test_errors_can_be_sent_to_other_processes() -> None:
    error = pickle.loads(pickle.dumps(lockstep.Error("words", 4)))
    assert (str(error), error.status) == ("words", 4)


def test_progress_is_told_and_what_it_raises_ends_the_work(recorded: Recorded) -> None:
    told = []
    lockstep.replay(recorded("fft"), "all", warp_size=2, progress=lambda done, of: told.append((done, of)))
    assert told and told == sorted(told) and told[-1][0] == told[-1][1]

    def refuse(done: int, of: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        lockstep.replay(recorded("fft"), "all", warp_size=2, progress=refuse)


ENDLESS = ["sh", "-c", "while :; do :; done"]


def test_progress_of_a_recording(tmp_path: Path) -> None:
    told = []
    ends = tmp_path / "ends"

    def tell(*now: int) -> None:
        told.append(now)
        if len(told) == 2:
            ends.touch()

    ran = lockstep.trace(["sh", "-c", f"until [ -e {ends} ]; do :; done"], tmp_path / "a.bin", progress=tell)
    assert len(told) > 2 and told == sorted(told) and told[-1] == (ran.instructions, ran.threads, ran.bytes)

    def refuse(*now: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        lockstep.trace(ENDLESS, tmp_path / "b.bin", progress=refuse)
    assert lockstep.open(tmp_path / "b.bin").instructions > 0


@pytest.fixture(scope="session")
def long_trace(recorded: Recorded) -> lockstep.Recording:
    """A replay of one warp in one model takes seconds."""
    fft = recorded("fft")
    return lockstep.trace([fft.command[0], "-p", "64", "-m", "16"], f"{fft.path}.long", stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("asked", [{"heuristic": "minpc", "by": "path"}, {"heuristic": "all"}, {"machine": "nvidia"}])
def test_ctrl_c_ends_a_replay(long_trace: lockstep.Recording, asked: dict) -> None:
    def is_ended(after: float) -> bool:
        """Whether it was; else it was done before that many seconds."""
        # That the timer comes to run says that Python's lock is free meanwhile.
        timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        is_done = False
        try:
            lockstep.replay(long_trace, **asked)
            is_done = True
            timer.join()
            time.sleep(10)
        except KeyboardInterrupt:
            pass
        timer.join()
        return not is_done

    assert any(is_ended(after) for after in (0.3, 0.1, 0.03, 0.01, 0.003))


def test_a_trace_is_as_good_after_an_interrupt(long_trace: lockstep.Recording, recorded: Recorded) -> None:
    trace = lockstep.open(recorded("fft"))
    before = trace.replay("all").rows.to_dicts()

    def interrupt(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace.replay("all", progress=interrupt)
    assert trace.replay("all").rows.to_dicts() == before


def test_ctrl_c_ends_the_program_and_leaves_a_trace(tmp_path: Path) -> None:
    """As a terminal does it: the signal comes to all processes, the program's own among them."""
    out = tmp_path / "interrupted.bin"
    code = "import lockstep, sys; lockstep.trace(sys.argv[2:], sys.argv[1], progress=lambda *now: print('now', flush=True))"
    command = [sys.executable, "-c", code, out, *ENDLESS]
    for to_all in (True, False):
        ran = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        assert ran.stdout is not None and ran.stdout.readline() == "now\n"
        os.killpg(ran.pid, signal.SIGINT) if to_all else ran.send_signal(signal.SIGINT)
        _, said = ran.communicate()
        assert said.rstrip().endswith("KeyboardInterrupt"), said
        trace = lockstep.open(out)
        assert trace.instructions > 0 and trace.recovered is None


def test_threads_replay_side_by_side(recorded: Recorded) -> None:
    trace = lockstep.open(recorded("radix"))
    alone = trace.replay("all").rows.to_dicts()
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: trace.replay("all").rows.to_dicts(), range(4))
        assert all(rows == alone for rows in found)


def of_other_process(path: str) -> list[dict]:
    return lockstep.replay(path, "all").rows.to_dicts()


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_other_processes_replay(recorded: Recorded, start: str) -> None:
    here = of_other_process(recorded("fft").path)
    with multiprocessing.get_context(start).Pool(1) as pool:
        assert pool.apply(of_other_process, (recorded("fft").path,)) == here


def test_children_of_the_caller_are_left_alone(recorded: Recorded, tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "0.2"])
    fft = build(tmp_path, "fft")
    lockstep.trace([fft], tmp_path / "fft.bin", stdout=subprocess.DEVNULL)
    assert child.wait() == 0
