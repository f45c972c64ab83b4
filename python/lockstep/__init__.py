"""Would the threads of a program run well in lockstep, as a GPU warp or a SIMD unit runs them?

    import lockstep

    lockstep.trace(["./triangle"], out="trace.bin")       # record every instruction of every thread
    found = lockstep.replay("trace.bin", by="line")       # run the threads together, as a GPU would
    print(found.verdict)                                  # what the command `replay` shows first
    found.rows, found.lost, found.lanes                   # tables

Tables are Arrow tables: ``pandas.DataFrame.from_arrow``, ``polars.DataFrame``, ``pyarrow.table`` and duckdb's SQL take
them without a copy. What cannot be done is an :class:`Error` with the words of the command.
"""

from ._errors import Error
from ._lockstep import Table
from ._recording import Recording, trace
from ._replaying import Heuristic, Replay, Trace, heuristics, measures, open, replay
from ._verdict import Place, Remedy, Verdict

__all__ = [
    "Error",
    "Heuristic",
    "Place",
    "Recording",
    "Remedy",
    "Replay",
    "Table",
    "Trace",
    "Verdict",
    "heuristics",
    "measures",
    "open",
    "replay",
    "trace",
]
