"""Recording programs.

The recorder runs in a process of its own: another interpreter that loads lockstep's library and nothing else. It stops
and wakes the program by ptrace, forks it and takes signals, which a notebook's process must not.
"""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Optional, Union

from . import _lockstep
from ._errors import Error

_Word = Union[str, "os.PathLike[str]"]
_File = Union[int, IO[Any], None]

# What the other interpreter runs. The program must not inherit the two pipes.
_RECORDER = """
import posix, sys
folder, news, orders = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for descriptor in news, orders:
    posix.set_inheritable(descriptor, False)
sys.path.insert(0, folder)
import _lockstep
_lockstep.record(sys.argv[4:], news, orders)
"""

_CANNOT_RECORD = 125
_BUG = 70


@dataclass(frozen=True)
class Recording:
    """A program that was recorded. It stands for its trace's path: :func:`open` and :func:`replay` take it.

    :ivar path: the trace.
    :ivar command: the program and its arguments.
    :ivar returncode: the program's exit status; -n when signal n ended it.
    :ivar instructions: how many instructions were recorded, over all threads.
    :ivar threads: how many threads.
    :ivar bytes: the size of the trace.
    :ivar seconds: how long it took.
    :ivar stopped_early: why the recording ended before the program did, as a sentence; else None.
    :ivar warnings: what to know of the recording.
    """

    path: str
    command: tuple[str, ...]
    returncode: int
    instructions: int
    threads: int
    bytes: int
    seconds: float
    stopped_early: Optional[str]
    warnings: tuple[str, ...]

    def __fspath__(self) -> str:
        return self.path


def trace(
    cmd: Union[_Word, Sequence[_Word]],
    out: _Word = "trace.bin",
    *,
    memory: bool = False,
    start: Optional[str] = None,
    stop: Optional[str] = None,
    markers: bool = False,
    limit: Union[str, int, None] = None,
    follow_forks: bool = False,
    aslr: bool = False,
    cache: bool = True,
    engine: Optional[str] = None,
    stdin: _File = None,
    stdout: _File = None,
    stderr: _File = None,
    cwd: Optional[_Word] = None,
    env: Optional[Mapping[str, str]] = None,
    progress: Optional[Callable[[int, int, int], object]] = None,
) -> Recording:
    """Runs a program and records every instruction of every thread.

    The program's output and exit status stay as they are. Ctrl-C ends the program and leaves a valid trace.

    :param cmd: the program and its arguments; a single word is a program without arguments.
    :param out: the trace to write.
    :param memory: also record the addresses of memory operands.
    :param start: record from each entry of this function on.
    :param stop: pause the recording at each entry of this function.
    :param markers: record between ``LOCKSTEP_BEGIN`` and ``LOCKSTEP_END`` of lockstep.h.
    :param limit: stop recording after so many instructions (``5000``, ``"100M"``) or bytes (``"1GiB"``).
    :param follow_forks: also record the processes that the program forks.
    :param aslr: let the kernel place the program at random addresses.
    :param cache: use and keep what earlier recordings translated.
    :param engine: how to record: ``"translate"`` (the default) or ``"step"``.
    :param stdin: the program's input, as for :mod:`subprocess`; likewise `stdout` and `stderr`: files or
        ``subprocess.DEVNULL``, not ``PIPE``.
    :param cwd: the folder in which the program runs.
    :param env: its environment. Default: this process's.
    :param progress: called some times a second, and at the end, with the instructions, threads and bytes so far. What it
        raises ends the program.
    :raises Error: where the program cannot be found, started or recorded.
    """
    command = [os.fspath(cmd)] if isinstance(cmd, (str, os.PathLike)) else [os.fspath(word) for word in cmd]
    path = os.path.abspath(os.fspath(out))
    flags = {"memory": memory, "markers": markers, "follow-forks": follow_forks, "aslr": aslr, "no-cache": not cache}
    named = {"start": start, "stop": stop, "limit": limit, "engine": engine, "output": path}
    words = [f"--{name}" for name, is_given in flags.items() if is_given]
    words += [f"--{name}={value}" for name, value in named.items() if value is not None]
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    if subprocess.PIPE in streams.values():
        raise ValueError("nobody reads a pipe while the program runs: give a file or subprocess.DEVNULL")
    told = _recorded([*words, "--", *command], {**streams, "cwd": cwd, "env": env}, progress)
    if progress is not None:
        progress(told["instructions"], told["threads"], told["bytes"])
    if told.get("failure") is not None:
        raise Error(told["failure"], _CANNOT_RECORD)
    return Recording(
        path=path,
        command=tuple(command),
        returncode=told["returncode"],
        instructions=told["instructions"],
        threads=told["threads"],
        bytes=told["bytes"],
        seconds=told["seconds"],
        stopped_early=told["stopped_early"],
        warnings=tuple(told["warnings"]),
    )


def _recorded(
    words: list[str], process: dict[str, Any], progress: Optional[Callable[[int, int, int], object]]
) -> dict[str, Any]:
    """What the recorder tells last."""
    if not sys.executable:
        raise Error("the recorder cannot start: this Python has no program of its own (sys.executable)", _CANNOT_RECORD)
    folder = os.path.dirname(os.path.abspath(_lockstep.__file__))
    news_out, news_in = os.pipe()
    orders_out, orders_in = os.pipe()
    start = [sys.executable, "-S", "-c", _RECORDER, folder, str(news_in), str(orders_out)]
    with builtins.open(news_out, encoding="utf-8") as news, builtins.open(orders_in, "wb") as orders:
        try:
            recorder = subprocess.Popen([*start, *words], pass_fds=(news_in, orders_out), **process)
        finally:
            os.close(news_in)
            os.close(orders_out)
        last: dict[str, Any] = {}
        try:
            for line in news:
                last = json.loads(line)
                if progress is not None and "progress" in last:
                    progress(*last["progress"])
            recorder.wait()
        except BaseException:
            _end(recorder, news, orders)
            raise
    if "error" in last:
        status, said = last["error"]
        raise Error(said, status)
    if "returncode" not in last:
        status = recorder.returncode
        raise Error(f"the recorder ended with status {status} and no word (a bug in lockstep: please report it)", _BUG)
    return last


def _end(recorder: subprocess.Popen[bytes], news: IO[str], orders: IO[bytes]) -> None:
    """Has the recorder end the program, and waits until the trace is whole; asked a second time, kills both."""
    try:
        orders.close()
        for _ in news:
            pass
        recorder.wait()
    except BaseException:
        recorder.kill()
        recorder.wait()
        raise
