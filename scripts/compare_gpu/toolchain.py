"""The compilers: clang and llc for IR and x86-64, ptxas and nvdisasm for NVIDIA's machine code."""

import re
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import listing
import numbered_ir

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "workloads" / "gpu-kernels"
CACHE = ROOT / "target" / "compare-gpu"
NVIDIA_PACKAGES = ["nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-nvdisasm==13.5.37"]
LICENCE = (
    "ptxas and nvdisasm are NVIDIA's and come under NVIDIA's licence (the CUDA Toolkit End User License Agreement, "
    "https://docs.nvidia.com/cuda/eula/). With --accept-nvidia-licence this script fetches them from PyPI, into "
    f"{CACHE / 'venv'} and nowhere else; without it, it works from the tables in results/."
)
CLANG = "clang-19"
LLC = "llc-19"
OPT = "opt-19"
OBJDUMP = "llvm-objdump-19"
#: Where Linux loads a position-independent program without randomisation, as `trace` runs it.
LOAD_ADDRESS = 0x555555554000
GPU_FLAGS = ["--target=nvptx64-nvidia-cuda", "-march=sm_90", "-O3", "-g", "-fno-discard-value-names"]
#: Floats are computed as on x86-64: no fused operations that only one side has.
FLOAT_FLAGS = ["-ffp-contract=off"]
HARNESS_FLAGS = ["-DHARNESS", "-O2", f"-I{KERNELS}"]


class ToolError(Exception):
    """A tool that failed, with what it said."""


@dataclass
class Tools:
    """NVIDIA's two."""

    ptxas: Path
    nvdisasm: Path


def run(command: list, **options) -> str:
    """Runs a command; its standard output."""
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)
    if done.returncode != 0:
        raise ToolError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def nvidia_tools(accepted: bool) -> Tools | None:
    """NVIDIA's tools, fetched where their licence is accepted; None else."""
    if not accepted:
        print("Without --accept-nvidia-licence, ptxas's code is read from the tables in results/.", file=sys.stderr)
        return None
    folder = CACHE / "venv"

    def find():
        both = [
            next(folder.glob(f"lib/python*/site-packages/nvidia/*/bin/{name}"), None) for name in ("ptxas", "nvdisasm")
        ]
        return Tools(*both) if all(both) else None

    if find() is None:
        print(LICENCE, file=sys.stderr)
        venv.create(folder, with_pip=True)
        run([folder / "bin" / "pip", "install", "--no-deps", *NVIDIA_PACKAGES])
    found = find()
    if found is None:
        raise ToolError(f"{' '.join(NVIDIA_PACKAGES)} are installed in {folder}, but ptxas or nvdisasm is not there")
    return found


def optimised(name: str, lanes: int, folder: Path) -> numbered_ir.Kernel:
    """The optimised IR of a kernel for NVPTX."""
    raw, path = (folder / f"{name}.{end}" for end in ("optimised.ll", "ll"))
    run([CLANG, *GPU_FLAGS, *FLOAT_FLAGS, f"-DLANES={lanes}u", "-S", "-emit-llvm", KERNELS / f"{name}.c", "-o", raw])
    # Code generation for NVPTX makes comparisons of a switch; here each gets a block of its own.
    run([OPT, "-S", "-passes=lower-switch", raw, "-o", path])
    return numbered_ir.Kernel(path.read_text())


def rows_of_ptxas(name: str, kernel: numbered_ir.Kernel, tools: Tools, folder: Path) -> list[listing.Row]:
    """The control flow that ptxas makes of a kernel."""
    numbered, ptx, cubin = (folder / f"{name}.{end}" for end in ("numbered.ll", "ptx", "cubin"))
    numbered.write_text(kernel.with_block_lines(f"{name}.c"))
    # Divisions of floats by instructions instead of calls with a slow path.
    run(
        [
            LLC,
            "-O3",
            "-mcpu=sm_90",
            "-mattr=+ptx80",
            "-nvptx-prec-divf32=1",
            "-nvptx-prec-sqrtf32=0",
            numbered,
            "-o",
            ptx,
        ]
    )
    run([tools.ptxas, "-lineinfo", "-arch=sm_90", "-O3", ptx, "-o", cubin])
    text = run([tools.nvdisasm, "-g", "-c", cubin])
    (folder / f"{name}.sass").write_text(text)
    return listing.parse(text)


def paths_of_lanes(name: str, kernel: numbered_ir.Kernel, lanes: int, folder: Path) -> tuple[list[list[int]], str]:
    """The blocks that each lane enters, and what the program prints."""
    module, program, blocks = (folder / f"{name}.{end}" for end in ("recorded.ll", "recorded", "blocks"))
    module.write_text(numbered_ir.for_x86(numbered_ir.with_records(kernel)))
    harness = folder / f"harness-{name}.o"
    run([CLANG, *HARNESS_FLAGS, f"-DLANES={lanes}u", "-DRECORD", "-c", "-x", "c", KERNELS / "kernel.h", "-o", harness])
    run([CLANG, "-O1", "-Wno-override-module", *FLOAT_FLAGS, module, harness, "-o", program])
    printed = run([program, blocks], timeout=120)
    paths: list[list[int]] = [[]]
    data = blocks.read_bytes()
    for low, high in zip(data[::2], data[1::2]):
        number = low | high << 8
        if number == 0xFFFF:
            paths.append([])
        else:
            paths[-1].append(number)
    return paths[:-1], printed.strip()


def exact_build(name: str, kernel: numbered_ir.Kernel, lanes: int, folder: Path, output: Path) -> list[int]:
    """A program for x86-64 with the very blocks of the IR: no pass runs on it, and code is generated block by
    block. Returns the number of instructions of each block."""
    module, code, harness = folder / f"{name}.exact.ll", folder / f"{name}.exact.s", folder / f"threads-{name}.o"
    text = numbered_ir.for_x86(kernel.with_block_lines(f"{name}.c", emission="LineTablesOnly"))
    module.write_text(numbered_ir.without_selected_conditions(text))
    run([LLC, "-O0", "-relocation-model=pic", module, "-o", code])
    run([CLANG, *HARNESS_FLAGS, f"-DLANES={lanes}u", "-c", "-x", "c", KERNELS / "kernel.h", "-o", harness])
    run([CLANG, code, harness, "-o", output, "-lpthread"])
    return instructions_by_block(code.read_text(), [block.name for block in kernel.blocks])


def instructions_by_block(assembly: str, names: list[str]) -> list[int]:
    """Instructions of each block in the function `kernel` of llc's assembly, whose labels name the blocks in
    comments."""
    counts = [0] * len(names)
    for block, count in blocks_in_order(assembly, names):
        counts[block] += count
    return counts


def block_starts(program: Path, assembly: Path, names: list[str]) -> dict[int, int]:
    """The first address of each block in a program of exact_build(), as the kernel loads it without randomisation: the
    instructions of llc's assembly are those of the function, in order."""
    listed = run([OBJDUMP, "-d", "--no-show-raw-insn", "--disassemble-symbols=kernel", program])
    addresses = [int(match[1], 16) for match in re.finditer(r"^\s+([0-9a-f]+):\s+[a-z]", listed, flags=re.M)]
    counts, order, starts = blocks_in_order(assembly.read_text(), names), 0, {}
    for block, count in counts:
        if count:
            starts.setdefault(block, LOAD_ADDRESS + addresses[order])
        order += count
    return {address: block for block, address in starts.items()}


def blocks_in_order(assembly: str, names: list[str]) -> list[tuple[int, int]]:
    """Each labelled stretch in the function `kernel` of llc's assembly: the block that its comment names, its
    instructions."""
    numbers = {name: number for number, name in enumerate(names)}
    found: list[tuple[int, int]] = []
    inside = False
    for text in assembly.splitlines():
        label = re.match(r'^(?:\.LBB\d+_\d+:|# %bb\.\d+:)\s*# %(?:"([^"]+)"|(\S+))', text)
        if label:
            inside = True
            found.append((numbers[label[1] or label[2]], 0))
        elif text.startswith(".Lfunc_end"):
            inside = False
        elif inside and re.match(r"^\t[a-z]", text):
            found[-1] = (found[-1][0], found[-1][1] + 1)
    return found


def x86_build(name: str, compiler: str, flags: list[str], lanes: int, output: Path) -> None:
    """An ordinary program of a kernel."""
    source = KERNELS / f"{name}.c"
    run([*compiler.split(), *flags, "-g", *FLOAT_FLAGS, f"-DLANES={lanes}u", source, "-o", output, "-lpthread"])
