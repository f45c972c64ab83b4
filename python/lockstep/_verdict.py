"""What a replay says about a program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class Remedy:
    """What would help at a place.

    :ivar kind: what is done, in one word: ``even``, ``sort``, ``hoist`` …
    :ivar text: what to do, in a sentence.
    :ivar efficiency: the SIMT efficiency that it would bring, 0 to 1; `known_by` says how sure that is.
    :ivar known_by: how that is known.
    :ivar gain: the gain in words: "that would raise 50.3% to about 100.0%".
    """

    kind: str
    text: str
    efficiency: float
    known_by: str
    gain: str


@dataclass(frozen=True)
class Place:
    """A place in the code at which lanes part, and what that costs.

    :ivar at: its line, ``triangle.c:11``, or what stands for it.
    :ivar function: its function, and those that it was inlined into.
    :ivar sentence: all of it in words.
    :ivar slots: lane-slots lost by lanes that part here: a count.
    :ivar share: of all lost lane-slots, 0 to 1.
    :ivar causes: what they are lost to.
    :ivar remedies: what would help, the first first.
    """

    at: str
    function: str
    sentence: str
    slots: int
    share: float
    causes: str
    remedies: tuple[Remedy, ...]


@dataclass(frozen=True)
class Verdict:
    """How well the lanes run on a machine, what limits them, and what to try first.

    ``str(verdict)`` is what the command `replay` shows first.

    :ivar headline: the first sentence.
    :ivar machine: ``nvidia``, ``amd``, ``intel-gpu`` or ``avx512``.
    :ivar heuristic: the model that stands for it.
    :ivar efficiency: the SIMT efficiency, 0 to 1; None where lockstep does not know it, and `reason` says why.
    :ivar at_most: what it is at most, where no more is known: lanes wait for what lockstep does not order. Else None.
    :ivar reason: why there is no efficiency, as a sentence; None where there is one.
    :ivar range: the least and the most that it is on a GPU for nine of ten programs; None where that was not measured.
    :ivar models: the least and the most that models of the machine say; None where there is no efficiency.
    :ivar coverage: which part of the program's instructions the lanes have, 0 to 1.
    :ivar warnings: what may mislead, and what to do about it.
    :ivar notes: what else is known.
    :ivar places: the places that lose most, the worst first.
    :ivar places_of: what the lanes of `places` are, where those are pieces of work in place of threads; else None.
    :ivar items: pieces of work as lanes (``typed``, ``what``, ``lanes``, ``warp_size``, ``efficiency`` …), where they
        were tried; else None.
    :ivar time: how long an NVIDIA H200 takes (``nanoseconds``, ``bound``, ``sentence`` …), of a trace with addresses;
        else None.
    """

    headline: str
    machine: str
    heuristic: str
    efficiency: Optional[float]
    at_most: Optional[float]
    reason: Optional[str]
    range: Optional[tuple[float, float]]
    models: Optional[tuple[float, float]]
    coverage: float
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    places: tuple[Place, ...]
    places_of: Optional[str]
    items: Optional[dict[str, Any]]
    time: Optional[dict[str, Any]]
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def _repr_markdown_(self) -> str:
        return f"```text\n{self}\n```"


def _remedy(found: dict[str, Any]) -> Remedy:
    return Remedy(found["kind"], found["text"], found["efficiency"], found["known_by"], found["gain"])


def _place(found: dict[str, Any]) -> Place:
    remedies = [found["remedy"]] if found["remedy"] is not None else []
    remedies += found.get("more_remedies", [])
    return Place(
        at=found["at"],
        function=found["in"],
        sentence=found["sentence"],
        slots=found["slots"],
        share=found["share"],
        causes=found["causes"],
        remedies=tuple(map(_remedy, remedies)),
    )


def of(text: str) -> Verdict:
    """The verdict that this JSON holds."""
    found = json.loads(text)
    efficiency, of_gpu = found["efficiency"], found.get("range")
    return Verdict(
        headline=found["headline"],
        machine=found["machine"],
        heuristic=found["heuristic"],
        efficiency=efficiency,
        at_most=found["at_most"],
        reason=found["headline"] if efficiency is None else None,
        range=None if of_gpu is None else (of_gpu["least"], of_gpu["most"]),
        models=None if efficiency is None else (found["least"], found["most"]),
        coverage=found["coverage"]["share"],
        warnings=tuple(found["warnings"]),
        notes=tuple(found["sentences"]),
        places=tuple(map(_place, found["places"])),
        places_of=found["places_of"],
        items=found["items"],
        time=found.get("time"),
        lines=tuple(found["lines"]),
    )
