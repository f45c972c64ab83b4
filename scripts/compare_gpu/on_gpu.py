#!/usr/bin/env python3
"""Runs kernels of workloads/gpu-kernels on an NVIDIA GPU, one warp each, one after another: run it under Nsight Compute.

    scripts/compare_gpu/on_gpu.py FOLDER

FOLDER has NAME.cubin of each kernel (scripts/compare-gpu leaves them in target/compare-gpu/work). Prints a line a kernel:
its name, and the checksum of its results, which is what the program for the processor prints. It needs nothing but the
driver.
"""

import ctypes
import sys
from pathlib import Path

import kernels

IN_WORDS, MEM_WORDS = 4096, 1024


def hashed(x: int) -> int:
    """kernel.h's hash()."""
    x ^= x >> 16
    x = x * 0x7FEB352D & 0xFFFFFFFF
    x ^= x >> 15
    x = x * 0x846CA68B & 0xFFFFFFFF
    return x ^ x >> 16


class Driver:
    """What is called of the driver's library; an error ends the script."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            sys.exit(f"on_gpu.py: {error}: it needs an NVIDIA GPU and its driver")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *words) -> None:
        error = getattr(self.library, name)(*words)
        if error:
            sys.exit(f"{name}: error {error} of the driver")

    def memory(self, words: ctypes.Array) -> ctypes.c_uint64:
        """A copy of words in the GPU's memory."""
        at = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(ctypes.sizeof(words)))
        self.call("cuMemcpyHtoD_v2", at, words, ctypes.c_size_t(ctypes.sizeof(words)))
        return at

    def run(self, cubin: bytes, lanes: int) -> list[int]:
        """The words that a kernel leaves in `out`."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"kernel")
        filled = (ctypes.c_uint32 * IN_WORDS)(*(hashed(i + 1) for i in range(IN_WORDS)))
        out = (ctypes.c_uint32 * lanes)()
        memories = [self.memory(filled), self.memory((ctypes.c_uint32 * (lanes * MEM_WORDS))()), self.memory(out)]
        arguments = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.byref(at), ctypes.c_void_p) for at in memories))
        self.call("cuLaunchKernel", function, 1, 1, 1, lanes, 1, 1, 0, None, arguments, None)
        self.call("cuCtxSynchronize")
        self.call("cuMemcpyDtoH_v2", out, memories[2], ctypes.c_size_t(ctypes.sizeof(out)))
        return list(out)


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(len(sys.argv) != 2)
    driver = Driver()
    for kernel in kernels.listed():
        file = Path(sys.argv[1]) / f"{kernel.name}.cubin"
        if file.exists():
            checksum = 0
            for word in driver.run(file.read_bytes() + b"\0", kernel.lanes):
                checksum = (checksum * 31 + word) & 0xFFFFFFFF
            print(kernel.name, checksum, flush=True)


if __name__ == "__main__":
    main()
