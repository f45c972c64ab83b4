//! What keeps a GPU busy: three parts that work at once, for as many warps as there are. Where it is full of them, the
//! part that takes longest tells the time, and what the others save gains none.
//!
//! | part of a multiprocessor | NVIDIA's H200, in a nanosecond | AMD's, in a clock |
//! |---|---|---|
//! | schedulers | 6 instructions of a warp of 32 lanes | 1, of 64 lanes |
//! | first-level cache and shared memory | 6 x 32 bytes | 64 bytes |
//! | stores to global memory, which go through that cache | 32 bytes | 64 bytes |
//!
//! The H200's are those by which `replay` says its time (`replay/src/metrics/gpu_time.rs`, and where they are from).
//! AMD's are from its documents, and were not compared with a GPU.
//!
//! Worked number: a store of 4 bytes a lane is one instruction of a warp on NVIDIA's, and takes the time in which 4 x 6
//! = 24 could be issued. So three of them with 20 other instructions take as long as 72.
//!
//! *Limitation*: lanes are taken to access what lies side by side, and to find in the first-level cache what they load.
//! An address whose origin is not seen is taken for one of global memory.

use std::ops::{AddAssign, Mul, Sub};

use super::gpu::ONE;
use crate::llvm::{Instruction, Opcode, Value};
use crate::spmd::Machine;

/// How long parts of a GPU take, each in tenths of the time in which it issues an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Busy {
    issue: i64,
    cache: i64,
    stores: i64,
}

/// Address spaces of LLVM's GPUs: what the lanes of a block share, and what each has for itself.
const OF_GROUP: u32 = 3;
const OF_LANE: u32 = 5;

/// No access is taken to have more.
const MOST_BYTES: i64 = 1 << 10;

/// How far an address is followed to where it comes from.
const DEPTH: u32 = 16;

impl Busy {
    /// What an access of memory takes, beside being issued; nothing for other instructions.
    pub(crate) fn of(access: Instruction<'_>, machine: Machine) -> Busy {
        let Some(bytes) = access.access_size() else { return Busy::default() };
        let stores = access.opcode() != Opcode::LLVMLoad && accesses_global(access);
        // Of each lane a byte: what the cache answers while one instruction is issued, on both.
        let cache = i64::from(ONE) * i64::try_from(bytes).unwrap_or(i64::MAX).min(MOST_BYTES);
        let through = if machine == Machine::Nvidia { 6 * cache } else { cache };
        if stores { Busy { stores: through, ..Busy::default() } } else { Busy { cache, ..Busy::default() } }
    }

    /// The same of what takes so long to issue.
    pub(crate) fn issuing(self, issue: i64) -> Busy {
        Busy { issue, ..self }
    }

    /// How long all takes.
    pub(crate) fn time(self) -> i64 {
        self.issue.max(self.cache).max(self.stores)
    }

    fn each(self, other: Busy, of: fn(i64, i64) -> i64) -> Busy {
        let [issue, cache, stores] =
            [(self.issue, other.issue), (self.cache, other.cache), (self.stores, other.stores)].map(|(a, b)| of(a, b));
        Busy { issue, cache, stores }
    }
}

impl AddAssign for Busy {
    fn add_assign(&mut self, other: Busy) {
        *self = self.each(other, i64::saturating_add);
    }
}

impl Sub for Busy {
    type Output = Busy;

    fn sub(self, other: Busy) -> Busy {
        self.each(other, i64::saturating_sub)
    }
}

impl Mul<i64> for Busy {
    type Output = Busy;

    fn mul(self, times: i64) -> Busy {
        self.each(Busy { issue: times, cache: times, stores: times }, i64::saturating_mul)
    }
}

/// Whether it accesses memory, and that may be global memory: neither a block's shared memory nor a lane's own.
pub(crate) fn accesses_global(i: Instruction<'_>) -> bool {
    i.access_size().is_some() && is_global(address(i), DEPTH)
}

/// The address of an access.
pub(crate) fn address(access: Instruction<'_>) -> Value<'_> {
    access.operand(u32::from(access.opcode() == Opcode::LLVMStore))
}

/// Whether an address may be one of global memory.
fn is_global(address: Value<'_>, depth: u32) -> bool {
    let is_elsewhere = |of: Value<'_>| matches!(of.type_of().address_space(), OF_GROUP | OF_LANE);
    if is_elsewhere(address) || address.global_variable().is_some_and(is_elsewhere) {
        return false;
    }
    let Some(made) = address.as_instruction().filter(|_| depth > 0) else { return true };
    let follow = |operand: u32| is_global(made.operand(operand), depth - 1);
    match made.opcode() {
        Opcode::LLVMAlloca => false,
        Opcode::LLVMGetElementPtr | Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast => follow(0),
        Opcode::LLVMSelect => follow(1) || follow(2),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::Module;

    /// What the accesses of a function with this body keep a GPU busy with, and 20 instructions.
    fn busy(target: &str, body: &str) -> i64 {
        let text = format!(
            "target triple = \"{target}\"\n@shared = internal addrspace(3) global [64 x i32] undef\n\
             define void @f(ptr %p, ptr addrspace(3) %q, i1 %c, i64 %i) {{\n{body}\nret void\n}}\n"
        );
        let module = Module::parse(text.as_bytes(), "f.ll").unwrap();
        let function = module.functions()[0];
        let mut all = Busy::default();
        for i in function.entry().instructions() {
            all += Busy::of(i, Machine::of(&module));
        }
        all.issuing(200).time()
    }

    const STORES: &str = "store i32 1, ptr %p\nstore i32 2, ptr %p\nstore i32 3, ptr %p";

    #[test]
    fn what_goes_through_the_cache_takes_longest() {
        assert_eq!(busy("nvptx64-nvidia-cuda", STORES), 720);
        assert_eq!(busy("amdgcn-amd-amdhsa", STORES), 200);
        let loads = "%a = load i64, ptr %p\n%b = load i64, ptr %p\n%d = load i64, ptr %p";
        assert_eq!(busy("nvptx64-nvidia-cuda", loads), 240);
    }

    #[test]
    fn shared_memory_and_a_lanes_own_are_not_global() {
        let cast = "%p1 = addrspacecast ptr addrspace(3) %q to ptr\n%p2 = getelementptr i32, ptr %p1, i64 %i";
        let of_block = "%p1 = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @shared to ptr), i64 %i";
        let own = "%p1 = alloca [4 x i32]\n%p2 = getelementptr i32, ptr %p1, i64 %i";
        for (made, address) in [(cast, "%p2"), (of_block, "%p1"), (own, "%p2")] {
            let either = format!("{made}\n%e = select i1 %c, ptr {address}, ptr {address}\n");
            let stores = STORES.replace("%p", "%e");
            assert_eq!(busy("nvptx64-nvidia-cuda", &(either + &stores)), 200, "{made}");
            let either = format!("{made}\n%e = select i1 %c, ptr {address}, ptr %p\n");
            assert_eq!(busy("nvptx64-nvidia-cuda", &(either + &stores)), 720, "{made}");
        }
    }
}
