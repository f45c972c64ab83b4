"""What goes wrong."""

from __future__ import annotations


class Error(Exception):
    """What could not be done, why, and what to do instead: the words that the command prints.

    :ivar words: the sentence.
    :ivar status: the exit status that the command would have, as `lockstep --help` lists them: 2 wrong options,
        3 an unreadable trace, 4 a request that this trace cannot meet, 5 an unwritable file, 70 a bug in lockstep,
        125 to 127 a program that cannot be recorded, executed or found.
    """

    words: str
    status: int

    def __init__(self, words: str, status: int) -> None:
        super().__init__(words, status)
        self.words = words
        self.status = status

    def __str__(self) -> str:
        return self.words
