//! The calls of OpenMP's runtimes that give a thread iterations of a worksharing loop. The runtime writes the
//! iterations to memory, and the call's arguments are the addresses.
//!
//! `GOMP_loop_*` are gcc's, `__kmpc_*` clang's. gcc makes no call for `schedule(static)` without `ordered`, with chunks
//! or without: each thread works its part out by itself.

use trace_format::{Chunk, Pc};

use crate::kernel::ptrace::Registers;

/// Where the call's caller has put an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the register of the argument with this number: rdi, rsi, rdx, rcx, r8, r9.
    Register(u8),
    /// On the stack, so many bytes behind the stack pointer at the function's first instruction.
    Stack(u8),
}

/// The numbers that the loop counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `int`
    Signed32,
    /// `unsigned`
    Unsigned32,
    /// `long`, or `unsigned long` as it is.
    Bits64,
}

impl Width {
    fn number(self, bits: u64) -> i64 {
        match self {
            Width::Signed32 => i64::from(bits as i32),
            Width::Unsigned32 => i64::from(bits as u32),
            Width::Bits64 => bits.cast_signed(),
        }
    }
}

/// A call that gives a thread iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopCall {
    /// Of what type the numbers are.
    pub width: Width,
    /// Where the address of the first iteration's number is.
    pub lower: Place,
    /// Of the last one's, or of the one behind it.
    pub upper: Place,
    /// Of the distance to the thread's next chunk, or of the step.
    pub third: Option<Place>,
    /// Where the step itself is.
    pub step: Option<Place>,
    /// Whether `upper` is the last one's.
    pub inclusive: bool,
    /// Whether the call tells by its result that there are no more.
    pub may_fail: bool,
}

impl LoopCall {
    /// Whether the number at `upper` is the loop's last one before the call, and the thread's own behind it: then the
    /// thread goes from one chunk to the next by itself.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.inclusive && self.step.is_some()
    }
}

/// What was read when a call returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// What lay at the three addresses.
    pub numbers: [u64; 3],
    /// The step as an argument.
    pub step: u64,
    /// The loop's last iteration, of a static loop: see [`LoopCall::is_static`].
    pub last: u64,
    /// rax.
    pub result: u64,
    /// Whether what the call shares out are sections: see [`LoopCall::SECTIONS`].
    pub are_sections: bool,
}

impl LoopCall {
    /// Where clang's first argument points (`ident_t`), so many bytes further on, a byte has these bits where the
    /// compiler shares out `sections` as if they were iterations.
    pub const KIND_AT: u8 = 5;
    /// See there.
    pub const SECTIONS: u8 = 4;

    /// What is to be known about the call when it returns, in 8 bits.
    #[must_use]
    pub fn form(&self) -> u8 {
        let flags = [self.third.is_some(), self.step.is_some(), self.inclusive, self.may_fail];
        let flags = flags.into_iter().enumerate().map(|(bit, set)| u8::from(set) << bit).sum::<u8>();
        flags | (self.width as u8) << 4
    }

    /// A call with this form. Where its arguments are does not matter any more.
    #[must_use]
    pub fn of_form(form: u8) -> LoopCall {
        let place = Place::Register(0);
        let width = match form >> 4 {
            0 => Width::Signed32,
            1 => Width::Unsigned32,
            _ => Width::Bits64,
        };
        LoopCall {
            width,
            lower: place,
            upper: place,
            third: (form & 1 != 0).then_some(place),
            step: (form & 2 != 0).then_some(place),
            inclusive: form & 4 != 0,
            may_fail: form & 8 != 0,
        }
    }

    /// The iterations that the thread has got, if any. It goes on at `site`.
    #[must_use]
    pub fn chunk(&self, site: Pc, read: &Read) -> Option<Chunk> {
        let [lower, upper, third] = read.numbers.map(|bits| self.width.number(bits));
        // A static loop's step is an argument, a dynamic one's lies in memory.
        let (step, stride) = match (self.step, self.third) {
            (Some(_), Some(_)) => (self.width.number(read.step), third),
            (Some(_), None) => (self.width.number(read.step), 0),
            (None, Some(_)) => (third, 0),
            (None, None) => (0, 0),
        };
        if self.may_fail && read.result as u32 & self.result_mask() == 0 {
            return None;
        }
        if read.are_sections {
            return Some(Chunk::none(site));
        }
        // The runtime works out chunks of equal length, whether the loop ends before or not.
        let last = self.width.number(read.last);
        let ends = |at: i64| if step < 0 { at < last } else { at > last };
        let (upper, stride) = match self.is_static() {
            true if step < 0 => (upper.max(last), stride),
            true => (upper.min(last), stride),
            false => (upper, stride),
        };
        let stride = if self.is_static() && ends(lower.wrapping_add(stride)) { 0 } else { stride };
        let upper = if self.inclusive { upper.wrapping_add(step) } else { upper };
        // A thread beyond the last iteration of a static loop gets a part that is empty.
        let is_empty = if step < 0 { upper >= lower } else { upper <= lower && (step > 0 || upper == lower) };
        (!is_empty).then_some(Chunk { site, lower, upper, step, stride })
    }

    /// The bits of the result that count: `bool` has 8.
    fn result_mask(&self) -> u32 {
        if self.inclusive { u32::MAX } else { 0xff }
    }
}

/// A call that a thread has made, and that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Which.
    pub call: LoopCall,
    /// The stack pointer at its first instruction.
    pub sp: u64,
    /// Where the numbers will be.
    pub addresses: [u64; 3],
    /// The step as an argument.
    pub step: u64,
    /// The loop's last iteration: see [`Read::last`].
    pub last: u64,
    /// See [`Read::are_sections`].
    pub are_sections: bool,
}

impl Open {
    /// A thread stands at the function's first instruction with these registers; `word` reads its memory.
    pub fn at(call: LoopCall, registers: &Registers, mut word: impl FnMut(u64) -> u64) -> Open {
        let mut value = |place| argument(place, registers, &mut word);
        let addresses = [value(call.lower), value(call.upper), call.third.map_or(0, &mut value)];
        let step = call.step.map_or(0, &mut value);
        let last = if call.is_static() { word(addresses[1]) } else { 0 };
        let kind = if call.is_static() { word(registers.rdi.wrapping_add(LoopCall::KIND_AT.into())) } else { 0 };
        let are_sections = kind & u64::from(LoopCall::SECTIONS) != 0;
        Open { call, sp: registers.rsp, addresses, step, last, are_sections }
    }
}

/// The value of an argument at the function's first instruction; `word` reads the stack.
fn argument(place: Place, registers: &Registers, word: impl FnOnce(u64) -> u64) -> u64 {
    let r = registers;
    match place {
        Place::Register(number) => [r.rdi, r.rsi, r.rdx, r.rcx, r.r8, r.r9][usize::from(number)],
        Place::Stack(offset) => word(r.rsp.wrapping_add(offset.into())),
    }
}

/// What a function of this name is.
#[must_use]
pub fn by_name(name: &str) -> Option<LoopCall> {
    use Place::{Register, Stack};
    let gomp = |lower, upper, step| LoopCall {
        width: Width::Bits64,
        lower,
        upper,
        third: None,
        step,
        inclusive: false,
        may_fail: true,
    };
    if let Some(rest) = name.strip_prefix("GOMP_loop_") {
        // The functions of `unsigned long long` have the direction in front: all arguments are one further on.
        let (ull, rest) = rest.strip_prefix("ull_").map_or((false, rest), |rest| (true, rest));
        // Those take an array of trip counts in place of bounds and step, and count from 0.
        if let Some(kind) = rest.strip_prefix("doacross_").and_then(|rest| rest.strip_suffix("start")) {
            let first = match kind {
                "runtime_" => 2,
                "" => 4,
                _ => 3,
            };
            return Some(gomp(Register(first), Register(first + 1), None));
        }
        if rest == "start" || rest == "ordered_start" {
            let [first, step] = if ull { [Stack(8), Register(3)] } else { [Register(5), Register(2)] };
            return Some(gomp(first, if ull { Stack(16) } else { Stack(8) }, Some(step)));
        }
        let (kind, verb) = rest.rsplit_once('_')?;
        let kind = kind.strip_prefix("ordered_").unwrap_or(kind);
        let kind = kind.strip_prefix("maybe_").unwrap_or(kind);
        let kind = kind.strip_prefix("nonmonotonic_").unwrap_or(kind);
        return match (verb, kind, ull) {
            ("next", "static" | "dynamic" | "guided" | "runtime", _) => Some(gomp(Register(0), Register(1), None)),
            ("start", "runtime", false) => Some(gomp(Register(3), Register(4), Some(Register(2)))),
            ("start", "runtime", true) => Some(gomp(Register(4), Register(5), Some(Register(3)))),
            ("start", "static" | "dynamic" | "guided", false) => {
                Some(gomp(Register(4), Register(5), Some(Register(2))))
            }
            ("start", "static" | "dynamic" | "guided", true) => Some(gomp(Register(5), Stack(8), Some(Register(3)))),
            _ => None,
        };
    }
    let width = |suffix: &str| match suffix {
        "4" => Some(Width::Signed32),
        "4u" => Some(Width::Unsigned32),
        "8" | "8u" => Some(Width::Bits64),
        _ => None,
    };
    if let Some(suffix) = name.strip_prefix("__kmpc_for_static_init_") {
        return Some(LoopCall {
            width: width(suffix)?,
            lower: Register(4),
            upper: Register(5),
            third: Some(Stack(8)),
            step: Some(Stack(16)),
            inclusive: true,
            may_fail: false,
        });
    }
    // One argument more than above: the upper bound of the whole team stands before the stride.
    if let Some(suffix) = name.strip_prefix("__kmpc_dist_for_static_init_") {
        return Some(LoopCall {
            width: width(suffix)?,
            lower: Register(4),
            upper: Register(5),
            third: Some(Stack(16)),
            step: Some(Stack(24)),
            inclusive: true,
            may_fail: false,
        });
    }
    let suffix = name.strip_prefix("__kmpc_dispatch_next_")?;
    Some(LoopCall {
        width: width(suffix)?,
        lower: Register(3),
        upper: Register(4),
        third: Some(Register(5)),
        step: None,
        inclusive: true,
        may_fail: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &str, numbers: [i64; 3], step: i64, result: u64) -> Option<Chunk> {
        let (step, last) = (step.cast_unsigned(), 199);
        let read = Read { numbers: numbers.map(i64::cast_unsigned), step, last, result, are_sections: false };
        LoopCall::of_form(by_name(name).unwrap().form()).chunk(Pc(1), &read)
    }

    #[test]
    fn chunks_are_read_as_each_runtime_gives_them() {
        let expected = |lower, upper, step, stride| Some(Chunk { site: Pc(1), lower, upper, step, stride });
        assert_eq!(chunk("GOMP_loop_dynamic_next", [3, 7, 99], 99, 1), expected(3, 7, 0, 0));
        assert_eq!(chunk("GOMP_loop_nonmonotonic_dynamic_next", [7, 3, 0], 0, 0xff01), expected(7, 3, 0, 0));
        assert_eq!(chunk("GOMP_loop_dynamic_next", [3, 7, 0], 0, 0xff00), None, "the upper bits say nothing");
        assert_eq!(chunk("GOMP_loop_guided_start", [10, 4, 0], -2, 1), expected(10, 4, -2, 0));
        assert_eq!(chunk("__kmpc_for_static_init_4", [0, 24, 100], 1, 0), expected(0, 25, 1, 100));
        let garbage = 0x7777_0000_0000;
        assert_eq!(
            chunk("__kmpc_for_static_init_4", [garbage, garbage + 1, garbage], garbage + 1, 0),
            expected(0, 2, 1, 0)
        );
        assert_eq!(chunk("__kmpc_for_static_init_4", [196, 203, 32], 1, 0), expected(196, 200, 1, 0), "the loop ends");
        assert_eq!(chunk("__kmpc_for_static_init_8u", [208, 215, 32], 1, 0), None, "it has ended before");
        assert_eq!(chunk("__kmpc_for_static_init_8", [208, 200, -8], -1, 0), expected(208, 199, -1, -8));
        assert_eq!(chunk("__kmpc_for_static_init_8", [100, 99, 100], 1, 0), None, "more threads than iterations");
        assert_eq!(chunk("__kmpc_dispatch_next_8u", [4, 5, 1], 0, 1), expected(4, 6, 1, 0));
        assert_eq!(chunk("__kmpc_dispatch_next_4", [4, 5, 1], 0, 0), None);
    }

    #[test]
    fn names_of_all_schedules_are_known() {
        for name in ["static", "dynamic", "guided", "runtime", "nonmonotonic_dynamic", "maybe_nonmonotonic_runtime"] {
            for kind in ["", "ull_"] {
                assert!(by_name(&format!("GOMP_loop_{kind}{name}_start")).is_some(), "{kind}{name}");
                assert!(by_name(&format!("GOMP_loop_{kind}{name}_next")).is_some(), "{kind}{name}");
            }
        }
        let runtime = by_name("GOMP_loop_runtime_start").unwrap();
        assert_eq!((runtime.lower, runtime.upper), (Place::Register(3), Place::Register(4)), "it has no chunk size");
        let first = |name: &str| by_name(name).map(|call| call.lower);
        assert_eq!(first("GOMP_loop_doacross_static_start"), Some(Place::Register(3)));
        assert_eq!(first("GOMP_loop_ull_doacross_runtime_start"), Some(Place::Register(2)));
        for name in ["GOMP_loop_end", "GOMP_loop_end_nowait", "__kmpc_dispatch_fini_4"] {
            assert_eq!(by_name(name), None, "{name}");
        }
    }

    #[test]
    fn sections_are_no_iterations() {
        let call = by_name("__kmpc_for_static_init_4").unwrap();
        let read = Read { numbers: [0, 1, 2], step: 1, last: 1, are_sections: true, ..Read::default() };
        let chunk = call.chunk(Pc(1), &read).unwrap();
        assert!(chunk.is_no_loops() && chunk.iterations().is_none());
        let registers = Registers { rdi: 0x100, ..crate::kernel::ptrace::no_registers() };
        let kinds = |kind: u64| Open::at(call, &registers, |at| if at == 0x105 { kind } else { 0 }).are_sections;
        assert_eq!([2, 4, 0x0704].map(kinds), [false, true, true]);
    }
}
