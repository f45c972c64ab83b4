"""Gives each instruction of a program in LLVM IR a line of its own, and tells those that a pass has put in.

    own_instructions.py number PROGRAM.ll >NUMBERED.ll         instruction k of the program is on line k
    own_instructions.py mark NUMBERED.ll PASSED.ll >MARKED.ll  what NUMBERED does not have is on line 1000000
    own_instructions.py share NUMBERED.json MARKED.json        from `replay --by line --json` of both builds

Values must have names (opt -passes=instnamer): an instruction is the program's where it has one of its names in the
same function, or, where it has none, one of its texts. `share` prints the SIMT efficiency of the program's instructions
in percent: in the numbered build, and with the lanes of the marked one. There each of the program's instructions weighs
as much as in the numbered build, since a pass changes how much code an instruction becomes.
"""
import json
import re
import sys

START = re.compile(r"^define .*?@([\w.$]+)\(.*?!dbg (!\d+)")
DEBUG = re.compile(r", !dbg !\d+")
OTHERS, FIRST = 1_000_000, 10_000_000


def key(text):
    """What an instruction is known by; none where a line of text is none."""
    text = DEBUG.sub("", text).strip()
    if not text.startswith(("%", "store", "br", "ret", "call", "switch", "unreachable", "fence", "tail")):
        return None
    named = re.match(r"(%[\w.$-]+) = ", text)
    return named.group(1) if named else re.sub(r" #\d+$", "", text)


def instructions(path):
    """The lines of a file; those of instructions with the function that they are in, its debug information, and key."""
    function = None
    for text in open(path):
        if found := START.match(text):
            function = found.groups()
        elif text.startswith("}"):
            function = None
        known = function and text.startswith("  ") and key(text)
        yield text, function if known else None, known


def placed(text, place):
    """An instruction on a line."""
    text = DEBUG.sub("", text.rstrip("\n"))
    return (text if text.endswith(" [") else f"{text}, !dbg !{place}") + "\n"


def number(path):
    places = []
    for text, function, _ in instructions(path):
        if function:
            text = placed(text, FIRST + len(places))
            places.append(function[1])
        sys.stdout.write(text)
    for line, scope in enumerate(places):
        print(f"!{FIRST + line} = distinct !DILocation(line: {line + 1}, scope: {scope})")


def mark(numbered, passed):
    own, scopes = {}, {}
    for _, function, known in instructions(numbered):
        if function:
            own.setdefault(function[0], set()).add(known)
    for text, function, known in instructions(passed):
        if function and known not in own.get(function[0], set()) and not known.startswith("switch"):
            text = placed(text, 2 * FIRST + scopes.setdefault(function[1], len(scopes)))
        sys.stdout.write(text)
    for scope, at in scopes.items():
        print(f"!{2 * FIRST + at} = distinct !DILocation(line: {OTHERS}, scope: {scope})")


def lines(path):
    """Thread instructions and lost lane-slots of each line."""
    found = {}
    for row in json.load(open(path))["results"][0]["by"]["rows"]:
        if isinstance(line := row.get("line"), int) and line < OTHERS:
            kept, lost = found.get(line, (0, 0))
            found[line] = (kept + row["thread_instructions"], lost + row["lost_slots"])
    return found


def share(numbered, marked):
    plain, other = lines(numbered), lines(marked)
    both = plain.keys() & other.keys()
    kept = sum(plain[line][0] for line in both)
    slots = [sum(plain[line][0] * sum(of[line]) / of[line][0] for line in both) for of in (plain, other)]
    print(f"{100 * kept / slots[0]:.2f} {100 * kept / slots[1]:.2f}")
    missing = sum(plain[line][0] for line in plain.keys() - both)
    if missing > 0.1 * (kept + missing):
        sys.exit(f"{100 * missing / (kept + missing):.1f}% of the program's instructions are not in {marked}")


if __name__ == "__main__":
    verbs = {"number": number, "mark": mark, "share": share}
    if len(sys.argv) < 3 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])
