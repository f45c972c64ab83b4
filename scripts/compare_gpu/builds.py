"""Builds for x86-64, traced and replayed by lockstep."""

import json
import os
from pathlib import Path

import toolchain

ROOT = toolchain.ROOT
#: Name and compiler with its flags.
BUILDS = {
    **{f"gcc -O{level}": ("gcc", [f"-O{level}"]) for level in (1, 2, 3)},
    **{f"clang -O{level}": ("clang-19", [f"-O{level}"]) for level in (1, 2, 3)},
}
#: The build whose blocks are those of the reference.
EXACT = "blocks of the GPU build"
SHAPED = "shaped -O3"
MODELS = [
    "minpc",
    "minsp-pc",
    "ipdom:placement=binary",
    "ipdom:placement=structured",
    "barrier:meet=anywhere,placement=binary",
    "barrier:meet=anywhere,placement=structured",
    "barrier:meet=barriers,placement=binary",
    "barrier:meet=barriers,placement=structured",
    "dual-path:placement=binary",
    "dual-path:placement=structured",
    "multi-path:placement=binary",
    "multi-path:placement=structured",
    "tf-stack",
    "oracle",
]


def lockstep(name: str) -> Path:
    """A binary of lockstep: of the folder that LOCKSTEP_BIN names, or of the release build."""
    path = Path(os.environ.get("LOCKSTEP_BIN") or ROOT / "target" / "release") / name
    if not path.exists():
        raise toolchain.ToolError(f"{path} is missing: build it with cargo build --release -p cli, or set LOCKSTEP_BIN")
    return path


def trace(program: Path, output: Path) -> str:
    """Traces a program; what it prints."""
    return toolchain.run([lockstep("trace"), "-o", output, program], timeout=300).strip()


def replay(trace_file: Path, lanes: int, models: list[str]) -> dict[str, dict]:
    """What `replay --json` says of each model, by the name that was asked for; models that deadlock are left out."""
    command = [lockstep("replay"), "--json", "--region", "kernel", "-W", lanes, "--heuristic", ",".join(models), trace_file]
    results = json.loads(toolchain.run(command, timeout=600))["results"]
    return {model: result for model, result in zip(models, results, strict=True) if result["status"] == "ok"}
