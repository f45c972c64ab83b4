"""A warp that runs PTX: a translator to C, which shares nothing with lockstep.

Each lane has its registers; code between branches and votes is run lane after lane. Lanes go on in groups:

- A branch whose lanes disagree makes two groups; they meet at its immediate post-dominator, as ptxas would have them.
- `vote.sync` and `bar.warp.sync` hold a lane until all that its mask names have come, whichever group they are in.
- At the head of a loop where ptxas puts YIELD (docs/fidelity.md) nobody is waited for elsewhere: others run until they
  come there, too, and go on together with those that are there.
- Which group goes on is the one at the lowest block, or with a seed any: where lanes wait for ever, it says so.

Every instruction counts for the warp once for each group that comes by, as many as an H200 was counted to have for it
(results/2026-11-27-silicon/costs.tsv); what ptxas takes out (copies of registers, jumps) counts nothing, and neither
does what it adds (its own barriers).
"""

import re
from pathlib import Path

#: GPU instructions of an operation, by how its name begins; of all others one.
WEIGHTS = [
    (r"mov\.(u|s|b|f)\d+ %\w+, %\w+$", 0), (r"mov\.pred", 0), (r"bra\.uni", 0), (r"(div|rcp|sqrt)\.rn\.f64", 14), (r"div\.rn\.f32", 10),
    (r"(div|rem)\.u64", 79), (r"(div|rem)\.s64", 95), (r"(div|rem)\.u32", 18), (r"(div|rem)\.s32", 25),
    (r"mul\.lo\.[su]64|mad\.lo\.[su]64", 3), (r"mul\.hi\.[su]64", 6),
    (r"(add|sub|and|or|xor|not|shl|shr|selp|setp|neg|min|max)\S*\.[sub]64|selp\.f64", 2), (r"ld\.param", 0), (r"cvta", 0),
]  # fmt: skip
#: Operations for which ptxas calls a function, if only where operands are rare.
CALLS = r"(div|rcp|sqrt)\.rn\.f|(div|rem)\.[su]64|call"
C_TYPES = {"pred": "uint8_t", "b8": "uint8_t", "u8": "uint8_t", "s8": "int8_t", "f32": "float", "f64": "double"} | {
    f"{sign}{bits}": f"{'' if sign == 's' else 'u'}int{bits}_t" for sign in "bus" for bits in (16, 32, 64)
}
BINARY = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
#: Comparisons; those that end with u hold where a number is none, too.
COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


class Unknown(Exception):
    """PTX that is not understood."""


class Block:
    """Instructions that run in a row, and where they lead."""

    def __init__(self, number: int):
        self.number, self.code, self.end, self.next, self.weight = number, [], "", [], 0


class Kernel:
    """An entry of a PTX file, all inlined."""

    def __init__(self, text: str, name: str):
        body = re.search(rf"\.entry {name}\((.*?)\)\s*[^{{]*\{{(.*?)\n\}}", text, re.S)
        if not body:
            raise Unknown(f"no entry {name}")
        self.parameters = re.findall(r"\.param \.(\w+) (\w+)", body[1])
        self.text = text
        self.registers: dict[str, str] = {}
        self.local = 0
        self.blocks: list[Block] = []
        # The half of a register is taken by way of one that lives nowhere else.
        halves = r"\{\s*\.reg \.b\d+ tmp;\s*mov\.(b\d+)\s+\{tmp, (%\w+)\}, (%\w+);\s*\}"
        self._read(re.sub(r"//.*", "", re.sub(halves, r"high.\1 \2, \3;", body[2])))
        self._link()

    def _read(self, body: str) -> None:
        labels: dict[str, int] = {}
        block = self._begin()
        for line in (line.strip() for line in re.sub(r"\{|\}", "", body).splitlines()):
            # Labels of a debugger's.
            if not line or re.match(r"\$L__(tmp|func)", line):
                continue
            if line.startswith(".reg"):
                kind, prefix, count = re.match(r"\.reg \.(\w+)\s+(%\w+?)(?:<(\d+)>)?;", line).groups()
                for name in [prefix] if count is None else [f"{prefix}{i}" for i in range(int(count))]:
                    self.registers[name] = C_TYPES[kind]
            elif line.startswith(".local"):
                self.local = int(re.search(r"\[(\d+)\]", line)[1])
            elif line.startswith("."):
                continue
            elif label := re.match(r"(\$\w+):", line):
                if block.code or block.end:
                    block = self._begin()
                labels[label[1]] = block.number
            else:
                # A vote or a jump has a block of its own.
                ends = re.match(r"(@!?%p\d+ )?(bra|ret|vote|bar\.warp|activemask)", line)
                if block.end or ends and block.code and "bra" not in line and "ret" not in line:
                    block = self._begin()
                line = re.sub(r"\s+", " ", line.rstrip(";"))
                if ends:
                    block.end = line
                else:
                    block.code.append(line)
        self.labels = labels

    def _begin(self) -> Block:
        self.blocks.append(Block(len(self.blocks)))
        return self.blocks[-1]

    def _link(self) -> None:
        for block in self.blocks:
            for line in [*block.code, block.end]:
                found = next((weight for pattern, weight in WEIGHTS if re.match(pattern, line)), 1)
                block.weight += found if line else 0
            after = [block.number + 1] if block.number + 1 < len(self.blocks) else []
            jump = re.match(r"(@!?%p\d+ )?bra(?:\.uni)? (\S+)", block.end)
            if jump:
                block.next = [self.labels[jump[2]], *(after if jump[1] else [])]
            elif not block.end.startswith("ret"):
                block.next = after

    def meets(self) -> list[int]:
        """By block its immediate post-dominator; -1 for the end."""
        count, end = len(self.blocks), len(self.blocks)
        behind = [set(range(count + 1)) for _ in self.blocks] + [{end}]
        changed = True
        while changed:
            changed = False
            for block in reversed(self.blocks):
                new = set.intersection(*(behind[to] for to in block.next or [end])) | {block.number}
                changed |= new != behind[block.number]
                behind[block.number] = new
        nearest = lambda at: max((node for node in behind[at] - {at}), key=lambda node: len(behind[node]))
        return [-1 if nearest(block.number) == end else nearest(block.number) for block in self.blocks]

    def yields(self) -> list[int]:
        """By block whether it is the head of a loop with YIELD: with an atomic operation of its own, and a call in the loop
        or behind it before another turn of a loop around it."""
        everywhere, come = set(range(len(self.blocks))), [set() for _ in self.blocks]
        for block in self.blocks:
            for to in block.next:
                come[to].add(block.number)
        above = [{0}, *(everywhere for _ in self.blocks[1:])]
        while (new := [{0}] + [{at} | set.intersection(*(above[of] for of in come[at]), everywhere) for at in range(1, len(above))]) != above:
            above = new
        loops: dict[int, set[int]] = {}
        for block in self.blocks:
            for head in (to for to in block.next if to in above[block.number]):
                inside, left = loops.setdefault(head, {head}), [block.number]
                while left:
                    if (at := left.pop()) not in inside:
                        inside.add(at)
                        left += come[at]
        has = lambda at, what: any(re.match(rf"(@!?%p\d+ )?({what})", line) for line in self.blocks[at].code)

        def calls(loop: set[int]) -> bool:
            seen, left = set(loop), list(loop)
            while left:
                at = left.pop()
                onward = {to for to in self.blocks[at].next if to not in above[at]} - seen
                seen |= onward
                left += onward
            return any(has(at, CALLS) for at in seen)

        is_own = lambda head, at: not any(loop < loops[head] and at in loop for loop in loops.values())
        found = {head for head, loop in loops.items() if any(has(at, "atom|red") and is_own(head, at) for at in loop) and calls(loop)}
        return [int(block.number in found) for block in self.blocks]

    # C.

    def operand(self, text: str, kind: str) -> str:
        """An operand as a value of a type."""
        to = C_TYPES[kind]
        if text in self.registers:
            held = self.registers[text]
            name = f"{c_name(text)}[l]"
            if "float" in (held, to) or "double" in (held, to):
                return name if held == to else f"as_{to.removesuffix('_t')}({name})"
            return f"({to}){name}"
        if number := re.fullmatch(r"0d([0-9A-F]{16})", text):
            return f"as_double(0x{number[1]}ULL)"
        if number := re.fullmatch(r"0f([0-9A-F]{8})", text):
            return f"as_float(0x{number[1]}U)"
        if re.fullmatch(r"-?\d+", text):
            return f"({to})({text}LL)" if text != "-9223372036854775808" else "INT64_MIN"
        return f"({to})(uintptr_t)local[l]" if text.startswith("__local_depot") else f"({to})(uintptr_t)&{c_name(text)}"

    def address(self, text: str) -> str:
        base, offset = re.fullmatch(r"\[(.+?)(?:\+(-?\d+))?\]", text).groups()
        return f"({self.operand(base, 'u64')} + ({offset or 0}))"

    def put(self, to: str, value: str) -> str:
        held = self.registers[to]
        return f"{c_name(to)}[l] = {value};" if held in ("float", "double") else f"{c_name(to)}[l] = ({held})({value});"

    def statement(self, line: str) -> str:
        """An instruction, for one lane."""
        if guard := re.match(r"@(!?)(%p\d+) (.*)", line):
            return f"if ({guard[1]}{c_name(guard[2])}[l]) {{ {self.statement(guard[3])} }}"
        name, _, rest = line.partition(" ")
        words = name.split(".")
        operands = [word.strip() for word in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,]+", rest)]
        operation, kind = words[0], words[-1]
        value = lambda at, of=kind: self.operand(operands[at], of)
        floating = kind.startswith("f")
        if operation == "ld" and words[1] == "param":
            return self.put(operands[0], "first[l]")
        if operation == "ld":
            return self.put(operands[0], f"*({C_TYPES[kind]} *){self.address(operands[1])}")
        if operation == "st":
            return f"*({C_TYPES[kind]} *){self.address(operands[0])} = {value(1)};"
        if operation == "atom" and words[2:3] == ["add"]:
            at = f"*({C_TYPES[kind]} *){self.address(operands[1])}"
            return f"{C_TYPES[kind]} old = {at}; {at} = old + {value(2)}; {self.put(operands[0], 'old')}"
        if operation in ("mov", "cvta"):
            # Bits may move between registers of integers and of numbers.
            held = {"double": "f64", "float": "f32"}.get(self.registers[operands[0]], kind)
            return self.put(operands[0], value(1, held))
        if operation == "high":
            return self.put(operands[0], f"{value(1)} >> {int(kind[1:]) // 2}")
        if operation == "cvt":
            to, of = words[-2], words[-1]
            return self.put(operands[0], f"({C_TYPES[to]}){self.operand(operands[1], of)}")
        if operation == "setp":
            how = words[1]
            if floating and how.endswith("u"):
                return self.put(operands[0], f"!({value(1)} {COMPARED[inverse(how[:-1])]} {value(2)})")
            return self.put(operands[0], f"{value(1)} {COMPARED[how]} {value(2)}")
        if operation == "selp":
            return self.put(operands[0], f"{c_name(operands[3])}[l] ? {value(1)} : {value(2)}")
        if operation == "mul" and words[1] in ("wide", "hi"):
            wide = "__int128" if kind == "s64" else "unsigned __int128" if kind == "u64" else "int64_t" if kind[0] == "s" else "uint64_t"
            product = f"({wide}){value(1)} * ({wide}){value(2)}"
            return self.put(operands[0], product if words[1] == "wide" else f"({product}) >> {kind[1:]}")
        if operation in ("mul", "mad", "fma"):
            if operation == "fma":
                return self.put(operands[0], f"fma{'' if kind == 'f64' else 'f'}({value(1)}, {value(2)}, {value(3)})")
            product = f"{value(1)} * {value(2)}" if floating else f"(uint64_t){value(1)} * (uint64_t){value(2)}"
            return self.put(operands[0], product + (f" + {value(3)}" if operation == "mad" else ""))
        if operation in BINARY and (floating or kind == "pred" or operation in ("and", "or", "xor")):
            return self.put(operands[0], f"{value(1)} {BINARY[operation]} {value(2)}")
        if operation in BINARY:
            return self.put(operands[0], f"(uint64_t){value(1)} {BINARY[operation]} (uint64_t){value(2)}")
        if operation == "not":
            return self.put(operands[0], f"!{value(1)}" if kind == "pred" else f"~{value(1)}")
        if operation == "neg":
            return self.put(operands[0], f"-{value(1)}")
        if operation in ("div", "rem"):
            return self.put(operands[0], f"{value(1)} {'/' if operation == 'div' else '%'} {value(2)}")
        if operation == "rcp":
            return self.put(operands[0], f"1 / {value(1)}")
        if operation in ("sqrt", "abs") and floating:
            return self.put(operands[0], f"{'sqrt' if operation == 'sqrt' else 'fabs'}({value(1)})")
        if operation in ("min", "max"):
            less = "<" if operation == "min" else ">"
            return self.put(operands[0], f"{value(1)} {less} {value(2)} ? {value(1)} : {value(2)}")
        if operation in ("shl", "shr"):
            by, bits = self.operand(operands[2], "u32"), int(kind[1:])
            over = f"{value(1)} < 0 ? -1 : 0" if kind[0] == "s" else "0"
            return self.put(operands[0], f"{by} >= {bits} ? ({over}) : {value(1)} {'<<' if operation == 'shl' else '>>'} {by}")
        if operation == "bfe":
            start, length = self.operand(operands[2], "u32"), self.operand(operands[3], "u32")
            return self.put(operands[0], f"{value(1)} >> {start} & ((1ULL << {length}) - 1)")
        if operation == "popc":
            return self.put(operands[0], f"__builtin_popcountll({value(1)})")
        if name == "shf.l.wrap.b32":
            by = f"({self.operand(operands[3], 'u32')} & 31)"
            both = f"((uint64_t){value(2)} << 32 | {value(1)})"
            return self.put(operands[0], f"({both} << {by}) >> 32")
        raise Unknown(line)

    def block(self, block: Block) -> str:
        """A block as a case: it sets `next` by lane, or has the lanes wait."""
        lines = [f"case {block.number}: weight = {block.weight};"]
        if block.code:
            code = " ".join(f"{{ {self.statement(line)} }}" for line in block.code)
            lines.append(f"    LANES {{ {code} }}")
        end = block.end
        if end.startswith("ret"):
            lines.append("    leave(mask, region); return;")
        elif jump := re.match(r"@(!?)(%p\d+) bra", end):
            lines.append(f"    taken = 0; LANES if ({jump[1]}{c_name(jump[2])}[l]) taken |= 1u << l;")
            lines.append(f"    yes = {block.next[0]}; no = {block.next[1]}; break;")
        elif end.startswith("activemask"):
            lines.append(f"    LANES {{ {self.put(end.split()[1].rstrip(','), 'mask')} }}")
            lines.append(f"    taken = mask; yes = {block.next[0]}; break;")
        elif vote := re.match(r"vote\.sync\.(any|ballot)\.\w+ (%\w+), (!?)(%\w+), (%\w+|-?\d+)", end):
            how, to, sign, asked, who = vote.groups()
            answer = self.put(to, "ballot != 0" if how == "any" else "ballot")
            lines.append(f"    LANES {{ asks[l] = {self.operand(who, 'u32')}; holds[l] = {sign}{c_name(asked)}[l]; }}")
            lines.append(f"    vote(mask, region, {block.number}); return;")
            lines.append(f"case {len(self.blocks) + block.number}: LANES {{ uint32_t ballot = answers[l]; {answer} }}")
            lines.append(f"    weight = 0; taken = mask; yes = {block.next[0]}; break;")
        elif end.startswith("bar.warp.sync"):
            who = self.operand(end.split()[1], "u32")
            lines.append(f"    LANES {{ asks[l] = {who}; holds[l] = 1; }} vote(mask, region, {block.number}); return;")
            lines.append(f"case {len(self.blocks) + block.number}: weight = 0; taken = mask; yes = {block.next[0]}; break;")
        else:
            lines.append(f"    taken = mask; yes = {block.next[0]}; break;")
        return "\n".join(lines)

    def data(self) -> str:
        """What only PTX names: constants of the compiler's."""
        found = re.findall(r"\.global \.align (\d+) \.b8 ([\w$]*\$[\w$]*)\[(\d+)\](?: = \{(.*?)\})?;", self.text)
        return "".join(
            f"static unsigned char {c_name(name)}[{size}] __attribute__((aligned({align}))) = {{{data or 0}}};\n"
            for align, name, size, data in found
        )

    def to_c(self, source: Path) -> str:
        """A program: what is in `source`, whose kernel is this one."""
        registers = "".join(f"static {kind} {c_name(name)}[32];\n" for name, kind in self.registers.items())
        machine = (Path(__file__).parent / "warp.c").read_text(encoding="utf-8")
        fills = {
            "SOURCE": f'"{source}"', "REGISTERS": registers, "DATA": self.data(), "LOCAL": str(max(self.local, 1)),
            "BLOCKS": str(len(self.blocks)), "MEETS": ", ".join(map(str, self.meets())),
            "YIELDS": ", ".join(map(str, self.yields())),
            "CODE": "\n".join(map(self.block, self.blocks)),
        }  # fmt: skip
        return re.sub(r"/\* (\w+) \*/", lambda fill: fills.get(fill[1], fill[0]), machine)


def c_name(name: str) -> str:
    return name.replace("%", "r_").replace("$", "_S_").replace(".", "_") if name[0] == "%" or "$" in name else name


def inverse(how: str) -> str:
    return {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[how]
