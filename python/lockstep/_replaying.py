"""Traces, and replays of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Optional, Union

from . import _lockstep, _verdict
from ._errors import Error
from ._lockstep import Table
from ._verdict import Verdict

_Path = Union[str, "os.PathLike[str]"]
# The exit status of options that are wrong.
_USAGE = 2


@dataclass(frozen=True)
class Replay:
    """What a replay found.

    :ivar rows: a row for each model (under each rule for locks): the columns of ``replay --csv``, which
        docs/metrics.md defines, as does ``rows.definitions``. What has no value is null: all numbers of a model that
        deadlocks (`status` says why), and what was not measured.
    :ivar lanes: a row for each lane: ``locks``, ``lane``, ``thread``, ``generation`` and ``thread_instructions``, a count.
    :ivar verdict: on the machine; None for models that were named, and where the machine's model has no figure: then
        the ``status`` of its row says why.
    :ivar view: what was replayed and what was left out, as a sentence.
    :ivar notes: what the command would say besides.
    """

    rows: Table
    lanes: Table
    verdict: Optional[Verdict]
    view: str
    notes: tuple[str, ...]
    _lost: Optional[Table] = field(repr=False)

    @property
    def lost(self) -> Table:
        """Lost lane-slots: a row for each line, or what `by` names, of each model, those with the largest loss first.

        Each slot is counted in ``parted_slots``, where the lane left the active ones, and in ``lost_slots``, where
        instructions were fetched without it. Either sums to the ``lost_slots`` of the model's row.

        :raises Error: where it was not asked for.
        """
        if self._lost is None:
            raise Error("lost lane-slots were not counted: replay with by='line', or another of by", _USAGE)
        return self._lost


class Trace:
    """A recorded run, open for replays."""

    def __init__(self, path: _Path) -> None:
        self._trace = _lockstep.Trace(os.fspath(path))

    @property
    def path(self) -> str:
        """Its file."""
        return os.fspath(self._trace.path)

    @property
    def command(self) -> list[str]:
        """The program that was recorded, and its arguments."""
        return self._trace.command

    @property
    def threads(self) -> int:
        """How many threads were recorded."""
        return self._trace.threads

    @property
    def instructions(self) -> int:
        """How many instructions they ran together."""
        return self._trace.instructions

    @property
    def has_addresses(self) -> bool:
        """Whether the addresses of memory operands were recorded."""
        return self._trace.has_addresses

    @property
    def recovered(self) -> Optional[str]:
        """What part of the file was lost, as a sentence; None of a whole one."""
        return self._trace.recovered

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"lockstep.open({self.path!r})"

    def replay(
        self,
        heuristic: Union[str, Sequence[str], None] = None,
        *,
        machine: Optional[str] = None,
        by: Optional[str] = None,
        measures: Sequence[str] = (),
        region: Optional[str] = None,
        lanes: Optional[str] = None,
        loop: Optional[str] = None,
        code: Optional[str] = None,
        locks: Optional[str] = None,
        spin: Optional[str] = None,
        warp_size: Optional[int] = None,
        warps_per_block: Optional[int] = None,
        group: Optional[str] = None,
        predict: Sequence[str] = (),
        workers: Optional[int] = None,
        progress: Optional[Callable[[int, int], object]] = None,
    ) -> Replay:
        """Runs the threads together, as a GPU would: how well they run, what limits them, and what to try.

        Other Python threads run meanwhile, and Ctrl-C ends it. Arguments are the options of the command `replay`, whose
        help says more about each.

        :param heuristic: reconvergence models by name, with parameters (``"ipdom:placement=nak"``), one or several, or
            ``"all"``; :func:`heuristics` lists them. Default: those of the machine.
        :param machine: ``"nvidia"`` (the default), ``"amd"``, ``"intel-gpu"`` or ``"avx512"``.
        :param by: what lost lane-slots are counted by: ``"line"``, ``"function"``, ``"branch"``, ``"cause"`` or
            ``"path"``. Default: they are not, which takes less time where models are named.
        :param measures: what else is counted, by the names that :func:`measures` lists, with a number where they take
            one: ``["memory", "fetch-units=2"]``.
        :param region: the part of the run: ``"auto"``, ``"all"``, ``"markers"`` or a function's name.
        :param lanes: what is a lane: ``"threads"``, ``"calls"``, ``"tasks"``, ``"iterations"`` or ``"marks"``.
        :param loop: the loop whose iterations are lanes: ``"solve.c:120"`` or an address.
        :param code: ``"all"``, ``"main"`` or ``"whole"``.
        :param locks: the rule for locks: ``"serialize"``, ``"simt"``, ``"drop"`` or ``"ignore"``; several with commas.
        :param spin: which spin loops are left out as waiting: ``"auto"``, ``"keep"``, or a line.
        :param warp_size: lanes in a warp, 1 to 256.
        :param warps_per_block: warps in a block, for models whose warps share fetches.
        :param group: which lanes share a warp: ``"consecutive"``, ``"round-robin"``, ``"similarity"`` …
        :param predict: places at which lanes are collected before they go on: ``["file.c:42"]``.
        :param workers: threads that work. Default: one per core; results do not depend on it.
        :param progress: called with how many replays of the models are done, and how many there are: one for each model
            and warp. The verdict takes further ones behind them. What it raises ends the replay.
        :raises Error: where the trace cannot be read or cannot give that.
        """
        named = {
            "machine": machine,
            "by": by,
            "region": region,
            "lanes": lanes,
            "loop": loop,
            "code": code,
            "locks": locks,
            "spin": spin,
            "warp-size": warp_size,
            "warps-per-block": warps_per_block,
            "group": group,
        }
        models = [heuristic] if isinstance(heuristic, str) else heuristic or ()
        options = [f"--{name}={value}" for name, value in named.items() if value is not None]
        options += [f"--heuristic={model}" for model in models]
        options += [f"--predict={place}" for place in ([predict] if isinstance(predict, str) else predict)]
        options += map(_measure, [measures] if isinstance(measures, str) else measures)
        found = self._trace.replay(options, workers, progress)
        return Replay(
            rows=found.rows,
            lanes=found.lanes,
            verdict=None if found.verdict is None else _verdict.of(found.verdict),
            view=found.view,
            notes=tuple(found.notes),
            _lost=found.lost,
        )


def _measure(asked: str) -> str:
    """The option that asks for a measure."""
    known = measures()
    if asked.split("=")[0] not in known:
        raise Error(f"no measure is called {asked}: there are {', '.join(known)}", _USAGE)
    return f"--{asked}"


def open(path: _Path) -> Trace:
    """Opens a trace: what :func:`trace` or the command `trace` wrote, or a text trace, gzipped or not.

    :raises Error: where it is none, or damaged.
    """
    return Trace(path)


def replay(
    trace: Union[_Path, Trace],
    heuristic: Union[str, Sequence[str], None] = None,
    *,
    machine: Optional[str] = None,
    by: Optional[str] = None,
    measures: Sequence[str] = (),
    region: Optional[str] = None,
    lanes: Optional[str] = None,
    loop: Optional[str] = None,
    code: Optional[str] = None,
    locks: Optional[str] = None,
    spin: Optional[str] = None,
    warp_size: Optional[int] = None,
    warps_per_block: Optional[int] = None,
    group: Optional[str] = None,
    predict: Sequence[str] = (),
    workers: Optional[int] = None,
    progress: Optional[Callable[[int, int], object]] = None,
) -> Replay:
    """Replays a trace, or what is in this file: see :meth:`Trace.replay`."""
    opened = trace if isinstance(trace, Trace) else Trace(trace)
    return opened.replay(
        heuristic,
        machine=machine,
        by=by,
        measures=measures,
        region=region,
        lanes=lanes,
        loop=loop,
        code=code,
        locks=locks,
        spin=spin,
        warp_size=warp_size,
        warps_per_block=warps_per_block,
        group=group,
        predict=predict,
        workers=workers,
        progress=progress,
    )


@dataclass(frozen=True)
class Heuristic:
    """A reconvergence model.

    :ivar name: what `replay` takes.
    :ivar family: what it is related to.
    :ivar rule: its rule, in a sentence.
    :ivar source: where it comes from.
    :ivar parameters: by name, each with ``default``, ``values`` and ``help``, as texts.
    """

    name: str
    family: str
    rule: str
    source: str
    parameters: dict[str, dict[str, str]]


def heuristics() -> list[Heuristic]:
    """The reconvergence models, in the order of docs/heuristics.md."""
    listed = json.loads(_lockstep.heuristics())["heuristics"]
    return [
        Heuristic(
            one["name"],
            one["family"],
            one["rule"],
            one["source"],
            {
                parameter["name"]: {key: parameter[key] for key in ("default", "values", "help")}
                for parameter in one["parameters"]
            },
        )
        for one in listed
    ]


def measures() -> dict[str, str]:
    """What `replay` counts besides where that is asked for, by name: what it is."""
    return dict(_lockstep.measures())
