//! The calls of OpenMP's runtimes that make tasks, and the bodies that run them. Memory is read at their first
//! instructions, so that each execution can be matched to its creation.
//!
//! With clang, the program gets a task's address when it makes one, and the task's body gets that address. gcc's
//! runtime shows no address when a task is made; but it copies the given data to the task, and the body gets the copy.
//! The bounds of a piece of a taskloop are in what its body gets: with gcc at the start of the data, with clang at a
//! fixed place of the task.

use trace_format::{Chunk, Pc};

use crate::kernel::ptrace::Registers;

/// So many words of a task's data are read at most.
pub const MOST_WORDS: u8 = 6;

/// The words of gcc's data that are the bounds of a taskloop's piece.
const GOMP_BOUNDS: usize = 2;

/// Where `GOMP_taskloop` finds its last argument, the step, by the stack pointer.
const GOMP_STEP: u64 = 40;

/// Where the routine and the bounds of a piece lie in clang's tasks (`kmp_task_t`, and what the compiler puts behind
/// it).
const KMP_ROUTINE: u8 = 8;
const KMP_BOUNDS: u8 = 40;

/// Memory that is read where a function is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// The register of the argument with this number has the address. Where that is 0, the words are.
    pub register: u8,
    /// So many bytes behind it they begin.
    pub offset: u8,
    /// How many there are, of 8 bytes each.
    pub count: u8,
}

impl Words {
    /// In place of an argument's number: the stack pointer.
    pub const STACK: u8 = u8::MAX;
    /// The address that the function returns to.
    pub const RETURN: Words = Words { register: Words::STACK, offset: 0, count: 1 };
    /// The routine of clang's task that the third argument is.
    pub const ROUTINE: Words = Words { register: 2, offset: KMP_ROUTINE, count: 1 };

    /// The address in the register.
    #[must_use]
    pub fn address(self, registers: &Registers) -> u64 {
        match self.register {
            0 => registers.rdi,
            1 => registers.rsi,
            Words::STACK => registers.rsp,
            _ => registers.rdx,
        }
    }
}

/// What a function has to do with tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskCall {
    /// `GOMP_task`, or `GOMP_taskloop`.
    GompCreates {
        /// Whether the body is a taskloop's.
        is_loop: bool,
    },
    /// A body for gcc's runtime.
    GompBody {
        /// The bytes of data that tell its tasks apart, at most 8 times [`MOST_WORDS`].
        size: u8,
        /// The step of a taskloop, 0 where it is not known; none of another task.
        step: Option<i64>,
    },
    /// `__kmpc_omp_task_alloc`.
    KmpCreates,
    /// A body for clang's runtime.
    KmpBody,
    /// `__kmpc_taskloop`, which makes pieces of a task that was made before.
    KmpTaskloop,
}

impl TaskCall {
    /// Whether the register of the argument with this number has to be known, besides the body's.
    #[must_use]
    pub fn names(self, number: u8) -> bool {
        match self {
            TaskCall::GompCreates { .. } => number == 3,
            TaskCall::KmpBody => number == 1,
            TaskCall::GompBody { .. } | TaskCall::KmpCreates | TaskCall::KmpTaskloop => false,
        }
    }

    /// What is read.
    #[must_use]
    pub fn words(self) -> Option<Words> {
        match self {
            TaskCall::GompCreates { .. } => Some(Words { register: 1, offset: 0, count: MOST_WORDS }),
            TaskCall::GompBody { size: 0, .. } | TaskCall::KmpCreates => None,
            TaskCall::GompBody { size, .. } => Some(Words { register: 0, offset: 0, count: size.div_ceil(8) }),
            TaskCall::KmpBody => Some(Words { register: 1, offset: KMP_BOUNDS, count: 3 }),
            TaskCall::KmpTaskloop => Some(Words::ROUTINE),
        }
    }

    /// What tells which creation belongs to which execution.
    #[must_use]
    pub fn key(self, registers: &Registers, words: &[u64]) -> u64 {
        match self {
            TaskCall::GompCreates { is_loop } => checksum(words, data_size(registers.rcx), is_loop),
            TaskCall::GompBody { size, step } => checksum(words, size, step.is_some()),
            TaskCall::KmpBody => registers.rsi,
            TaskCall::KmpCreates | TaskCall::KmpTaskloop => 0,
        }
    }

    /// What the body is to the trace that a call with these registers hands over; `word` reads memory, where it can be
    /// read.
    #[must_use]
    pub fn body(self, registers: &Registers, word: impl Fn(u64) -> Option<u64>) -> Option<TaskCall> {
        match self {
            TaskCall::GompCreates { is_loop } => {
                // The first call's counts for all: a loop of the source has one step, but for few.
                let step = || word(registers.rsp.wrapping_add(GOMP_STEP)).unwrap_or(0).cast_signed();
                Some(TaskCall::GompBody { size: data_size(registers.rcx), step: is_loop.then(step) })
            }
            TaskCall::KmpCreates => Some(TaskCall::KmpBody),
            TaskCall::GompBody { .. } | TaskCall::KmpBody | TaskCall::KmpTaskloop => None,
        }
    }

    /// The iterations of a piece of a taskloop, whose body begins at `site`. `is_taskloop`: whether clang's body was
    /// seen to be one's.
    #[must_use]
    pub fn piece(self, site: Pc, words: &[u64], is_taskloop: bool) -> Option<Chunk> {
        let signed = |number: usize| words.get(number).copied().unwrap_or(0).cast_signed();
        match self {
            TaskCall::GompBody { step: Some(step), .. } => {
                Some(Chunk { site, lower: signed(0), upper: signed(1), step, stride: 0 })
            }
            // clang's last iteration is a part of the piece.
            TaskCall::KmpBody if is_taskloop => {
                let step = signed(2);
                Some(Chunk { site, lower: signed(0), upper: signed(1).wrapping_add(step), step, stride: 0 })
            }
            _ => None,
        }
    }
}

fn data_size(bytes: u64) -> u8 {
    bytes.min(8 * u64::from(MOST_WORDS)) as u8
}

/// A checksum of 32 bits of the first so many bytes, never 0. The bounds of a piece are none of what all pieces have.
fn checksum(words: &[u64], size: u8, is_loop: bool) -> u64 {
    let own = |(number, word): (usize, &u64)| match usize::from(size).saturating_sub(8 * number) {
        0 => 0,
        bytes @ 1..8 => word & ((1 << (8 * bytes)) - 1),
        _ => *word,
    };
    let skipped = if is_loop { GOMP_BOUNDS } else { 0 };
    let words = words.iter().enumerate().take(usize::from(size).div_ceil(8)).skip(skipped).map(own);
    words.fold(1u64, |sum, word| ((sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(29)) >> 32 | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ptrace;

    fn registers(rsi: u64, rcx: u64) -> Registers {
        Registers { rsi, rcx, ..ptrace::no_registers() }
    }

    #[test]
    fn a_copy_of_the_data_has_the_key_of_the_data() {
        let made = TaskCall::GompCreates { is_loop: false };
        for size in [0, 1, 7, 8, 12, 47, 48, 1000] {
            let at = registers(0, size);
            let Some(body @ TaskCall::GompBody { .. }) = made.body(&at, |_| None) else { panic!("it has a body") };
            let words = [!0, 1, 2, 3, 4, 5];
            // What lies behind the data differs.
            let count = body.words().map_or(0, |words| usize::from(words.count));
            let mut copied = words;
            if size % 8 != 0 && size < 48 {
                copied[size as usize / 8] ^= 1 << 63;
            }
            assert_eq!(made.key(&at, &words), body.key(&at, &copied[..count]), "{size}");
            if size > 0 {
                copied[0] ^= 1;
                assert_ne!(made.key(&at, &words), body.key(&at, &copied[..count]), "{size}");
            }
        }
    }

    #[test]
    fn pieces_have_their_bounds_and_the_key_of_their_loop() {
        let made = TaskCall::GompCreates { is_loop: true };
        let at = registers(0, 24);
        let body = made.body(&at, |at| (at == GOMP_STEP).then_some(5)).unwrap();
        assert_eq!(made.key(&at, &[0, 0, 9, 8, 7, 6]), body.key(&at, &[30, 40, 9]));
        let piece = |body: TaskCall, words: &[u64]| body.piece(Pc(5), words, true).map(|c| (c.lower, c.upper, c.step));
        assert_eq!(piece(body, &[30, 40, 9]), Some((30, 40, 5)));
        assert_eq!(piece(TaskCall::KmpBody, &[30, 39, 1]), Some((30, 40, 1)));
        assert_eq!(TaskCall::KmpBody.piece(Pc(5), &[30, 39, 1], false), None);
        assert_eq!(piece(TaskCall::GompBody { size: 24, step: None }, &[30, 40, 9]), None);
        assert_eq!(TaskCall::KmpBody.key(&registers(0x7000, 0), &[]), 0x7000, "the task's address");
    }
}
