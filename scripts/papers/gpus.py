"""What GPUs' compilers make of a module: AMD's Vega (gfx900) by LLVM, NVIDIA's sm_90 by LLVM and ptxas."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from papers import ROOT, run, work

TARGETS = {
    "sm_90": ["--target=nvptx64-nvidia-cuda", "-march=sm_90"],
    "gfx900": ["--target=amdgcn-amd-amdhsa", "-mcpu=gfx900"],
}


class Code(NamedTuple):
    """Machine code: its instructions as text, registers of a thread, those of all its lanes together, bytes spilled."""

    instructions: list[str]
    registers: int
    scalar_registers: int | str
    spilled_bytes: int


def nvidia_tools(accepted: bool):
    """NVIDIA's tools where their licence is accepted, as scripts/compare_gpu fetches them; none else."""
    sys.path.insert(0, str(ROOT / "scripts/compare_gpu"))
    import toolchain

    return toolchain.nvidia_tools(True) if accepted else None


def bitcode(target: str, source: str, flags: list, to: Path) -> None:
    """A program's module for a target."""
    words = ["-nogpulib", "-ffreestanding", "-std=gnu11", "-O3", "-w", "-Iworkloads/include", *flags]
    run("clang-19", *TARGETS[target], *words, "-emit-llvm", "-c", source, "-o", to)


def ptx(module: Path, flags: list = ()) -> Path:
    """NVIDIA's assembly of a module."""
    run("llc-19", "-O3", "-mcpu=sm_90", "-mattr=+ptx80", *flags, module, "-o", work() / "a.ptx")
    return work() / "a.ptx"


def sm_90(assembly: Path, tools) -> Code:
    """Machine code for NVIDIA's H100."""
    cubin = work() / "a.cubin"
    said = run(tools.ptxas, "-v", "-arch=sm_90", "-O3", assembly, "-o", cubin, stderr=subprocess.STDOUT)
    number = lambda pattern: int(re.search(pattern, said)[1])
    listing = run(tools.nvdisasm, "-c", cubin)
    code = re.findall(r"^\s+/\*[0-9a-f]+\*/\s+(.*);", listing, flags=re.M)
    code = [text for text in code if not text.startswith("NOP")]
    return Code(code, number(r"Used (\d+) registers"), "", number(r"(\d+) bytes spill stores"))


def gfx900(module: Path, flags: list = ()) -> Code:
    """Machine code for AMD's Vega."""
    assembly, code = work() / "a.s", work() / "a.o"
    for kind, to in (("asm", assembly), ("obj", code)):
        run("llc-19", "-O3", "-mcpu=gfx900", *flags, f"-filetype={kind}", module, "-o", to)
    note = lambda name: int(re.search(rf"^ *\.{name}: *(\d+)$", assembly.read_text(), flags=re.M)[1])
    listing = run("llvm-objdump-19", "-d", "--no-show-raw-insn", code)
    instructions = re.findall(r"^\t(\S.*)", listing, flags=re.M)
    return Code(instructions, note("vgpr_count"), note("sgpr_count"), note("private_segment_fixed_size"))
