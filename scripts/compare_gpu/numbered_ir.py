"""The optimised IR of a kernel, with a number for each basic block: as its only debug locations, and as calls of
record().

The IR is text that clang wrote (LLVM 19, with names kept). Nothing here needs LLVM.
"""

import re
from dataclasses import dataclass, field

#: Above every number of metadata that clang gives in one kernel.
FIRST_NODE = 1_000_000
LABEL = re.compile(r'^("[^"]+"|[-\w.$]+):')
BLOCK_NAME = re.compile(r'label %("[^"]+"|[-\w.$]+)')
DEBUG_LOCATION = re.compile(r", !dbg !(\d+)")
LOOP = re.compile(r", !llvm\.loop !\d+")
LOCATION_LINE = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)")
LANE = re.compile(r"= (?:tail |notail )?call [^@]*i32 @llvm\.nvvm\.read\.ptx\.sreg\.tid\.x\(\)[^,\n]*")
X86_LAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"


class IrError(Exception):
    """What in the IR is not understood."""


@dataclass
class Block:
    """A basic block: its name, instructions as text without debug locations, successors, and lines of source."""

    name: str
    code: list[str] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    def is_phi(self, at: int) -> bool:
        """Whether the line at an index is a phi (they come first)."""
        return " = phi " in self.code[at]

    def ends_instruction(self, at: int) -> bool:
        """Whether the line at an index is the last one of its instruction: a switch has several."""
        return not self.code[at].endswith("[") and not re.match(r"^    ", self.code[at])

    def stores(self) -> int:
        """How many instructions store to memory."""
        return sum(line.startswith("  store ") for line in self.code)

    def terminator(self) -> str:
        """The last instruction as text, of several lines where it is a switch."""
        start = len(self.code) - 1
        while start > 0 and re.match(r"^    |^  \]", self.code[start]):
            start -= 1
        return "\n".join(self.code[start:])


class Kernel:
    """The function `kernel` of a module; everything else of the module is kept as text before and after it."""

    def __init__(self, text: str):
        lines = text.splitlines()
        starts = [at for at, line in enumerate(lines) if line.startswith("define ")]
        if len(starts) != 1 or "@kernel(" not in lines[starts[0]]:
            raise IrError("there are functions beside `kernel`: the optimiser has left a call")
        start = starts[0]
        end = lines.index("}", start)
        self.define = lines[start]
        self.before = lines[:start]
        self.after = lines[end + 1 :]
        self.blocks = self._blocks(lines[start + 1 : end], text)

    @staticmethod
    def _blocks(body: list[str], text: str) -> list[Block]:
        sources = {match[1]: int(match[2]) for match in map(LOCATION_LINE.match, text.splitlines()) if match}
        blocks: list[Block] = []
        for line in body:
            label = LABEL.match(line)
            if label:
                blocks.append(Block(label[1].strip('"')))
                continue
            if not line.strip() or line.lstrip().startswith("#dbg_"):
                continue
            for number in DEBUG_LOCATION.findall(line):
                # Line 0: an instruction that stands for several places.
                source = sources.get(number, 0)
                if source and source not in blocks[-1].lines:
                    blocks[-1].lines.append(source)
            blocks[-1].code.append(LOOP.sub("", DEBUG_LOCATION.sub("", line)))
        numbers = {block.name: number for number, block in enumerate(blocks)}
        for block in blocks:
            block.lines.sort()
            block.successors = []
            for name in BLOCK_NAME.findall(block.terminator()):
                number = numbers[name.strip('"')]
                if number not in block.successors:
                    block.successors.append(number)
        return blocks

    def back_edges(self) -> set[tuple[int, int]]:
        """Edges to a block that is still open in a depth-first walk from the entry."""
        found, state = set(), {}
        stack = [(0, iter(self.blocks[0].successors))]
        state[0] = "open"
        while stack:
            number, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[number] = "done"
                stack.pop()
            elif following not in state:
                state[following] = "open"
                stack.append((following, iter(self.blocks[following].successors)))
            elif state[following] == "open":
                found.add((number, following))
        return found

    def with_block_lines(self, module: str, unrolling: bool = False, emission: str = "DebugDirectivesOnly") -> str:
        """For code generation: the only line of each instruction is its block's number plus 1. Moves that stand for
        a phi belong to the block that they are put into, so a phi has none. Without `unrolling`, no loop is
        unrolled again."""
        latches = {edge[0] for edge in self.back_edges()} if not unrolling else set()
        node = FIRST_NODE
        unit, file, program, kind, no_unroll = range(node, node + 5)
        first_line = node + 10
        first_loop = first_line + len(self.blocks)
        out = [*self.before, f"{self.head()} !dbg !{program} {{"]
        for number, block in enumerate(self.blocks):
            out.append(f'"{block.name}":')
            for at, line in enumerate(block.code):
                if block.is_phi(at) or not block.ends_instruction(at):
                    out.append(line)
                    continue
                loop = f", !llvm.loop !{first_loop + number}" if at == len(block.code) - 1 and number in latches else ""
                out.append(f"{line}{loop}, !dbg !{first_line + number}")
        out.append("}")
        out += [
            line for line in self.after if not re.match(r"^!llvm\.dbg\.cu|^!llvm\.module\.flags|^!llvm\.ident", line)
        ]
        out += [
            f"!llvm.dbg.cu = !{{!{unit}}}",
            f"!llvm.module.flags = !{{!{node + 6}, !{node + 7}}}",
            f'!{node + 6} = !{{i32 2, !"Debug Info Version", i32 3}}',
            f'!{node + 7} = !{{i32 2, !"Dwarf Version", i32 4}}',
            f'!{unit} = distinct !DICompileUnit(language: DW_LANG_C11, file: !{file}, producer: "", isOptimized: true, '
            f"runtimeVersion: 0, emissionKind: {emission})",
            f'!{file} = !DIFile(filename: "{module}", directory: "/")',
            f'!{program} = distinct !DISubprogram(name: "kernel", scope: !{file}, file: !{file}, line: 1, type: !{kind}, '
            f"spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !{unit})",
            f"!{kind} = !DISubroutineType(types: !{{null}})",
            f'!{no_unroll} = !{{!"llvm.loop.unroll.disable"}}',
        ]
        out += [
            f"!{first_line + at} = !DILocation(line: {at + 1}, scope: !{program})" for at in range(len(self.blocks))
        ]
        out += [f"!{first_loop + at} = distinct !{{!{first_loop + at}, !{no_unroll}}}" for at in sorted(latches)]
        return "\n".join(out) + "\n"

    def head(self) -> str:
        """The line that opens the function, without its brace and debug information."""
        return DEBUG_LOCATION.sub("", re.sub(r" !dbg !\d+", "", self.define)).rstrip(" {")


def for_x86(text: str) -> str:
    """A module for NVPTX as one for x86-64: the lane is the last parameter of `kernel`."""
    text = re.sub(r"^target datalayout = .*$", f'target datalayout = "{X86_LAYOUT}"', text, flags=re.M)
    text = re.sub(r"^target triple = .*$", 'target triple = "x86_64-unknown-linux-gnu"', text, flags=re.M)
    text = re.sub(r'"target-(?:cpu|features)"="[^"]*" ?', "", text)
    text = LANE.sub("= add i32 %lane.of.thread, 0", text)
    text = re.sub(r"^(define .*)\bptx_kernel ", r"\1", text, flags=re.M)
    text = re.sub(
        r"^(define [^(]*@kernel\(.*?)\)( local_unnamed_addr| unnamed_addr)?( #\d+)?",
        r"\1, i32 %lane.of.thread)",
        text,
        flags=re.M,
    )
    # The intrinsic itself and its annotations mean nothing there.
    text = re.sub(r"^declare .*@llvm\.nvvm\..*$", "", text, flags=re.M)
    left = re.search(r"@llvm\.nvvm\.[\w.]+", text)
    if left:
        raise IrError(f"{left[0]} has no like on x86-64")
    return text


def without_selected_conditions(text: str) -> str:
    """The module with `and` and `or` in place of selections between conditions, of which code generation without
    optimisation would make branches."""
    text = re.sub(r"= select i1 ([^,]+), i1 ([^,]+), i1 false", r"= and i1 \1, \2", text)
    return re.sub(r"= select i1 ([^,]+), i1 true, i1 ([^,\n]+)", r"= or i1 \1, \2", text)


def with_records(kernel: Kernel) -> str:
    """The module with a call of record() at the start of each block, behind its phis; without debug locations."""
    out = [*kernel.before, f"{kernel.head()} {{"]
    for number, block in enumerate(kernel.blocks):
        out.append(f'"{block.name}":')
        phis = sum(block.is_phi(at) for at in range(len(block.code)))
        out += block.code[:phis]
        out.append(f"  call void @record(i32 {number})")
        out += block.code[phis:]
    out.append("}")
    out.append("declare void @record(i32)")
    out += [line for line in kernel.after if not re.match(r"^!llvm\.dbg\.cu|^!llvm\.ident", line)]
    return "\n".join(out) + "\n"
