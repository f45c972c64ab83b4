//! `spill`: a register allocator that knows which values threads share.
//!
//! ```text
//! before                  after, where `a` and `b` are spilled, and b is affine: 4·tid + something unknown
//!   a = load p              a = load p
//!                           store a, slot.a         (the thread's own memory)
//!   b = p + 4 * tid         b = p + 4 * tid
//!                           t = b - 4 * tid
//!                           store t, slot.b         (memory of the warp)
//!   ...                     ...
//!                           a' = load slot.a
//!                           t' = load slot.b
//!                           b' = t' + 4 * tid
//!   store a, b              store a', b'
//! ```
//!
//! A GPU gives a thread few registers. Values that do not fit go to local memory, a part of the slow global memory.
//! Values that all threads of a warp have in common can go to fast shared memory instead, once for all, or be computed
//! again. The spill code is explicit and runs, so that a trace of the program shows what it costs.
//!
//! # Steps
//! 1. [`intervals`]: from where to where each value is needed. [`scan`]: which are spilled, with K registers.
//! 2. [`rows`]: figure 6 of the paper, which says what to do with each. Row i: a constant is used directly. Row ii: a
//!    uniform value goes to shared memory. Row iii: an affine value with known coefficients is computed again from the
//!    thread's number. Row iv: for one with an unknown base, the base goes to shared memory. All others: local memory.
//! 3. [`chains`]: the memory that a warp's deepest chain of calls shares, times the number of warps, must fit into the
//!    capacity, or nothing is rewritten. Recursive functions have no bound, and get no shared memory.
//! 4. [`rewrite`]: stores and loads, volatile, so that code generation keeps them. The pass should be the last.
//!
//! Figure 6 as printed stores v in row iv; t = v - c·tid must be stored, since the threads of a warp share the slot.
//!
//! # Allocators
//! `linear` knows local memory only. `div` takes row ii where the boolean analysis says uniform, `rem` rows i and iii,
//! `aff` all. All spill by the same rule. `div` and `aff` have one register less in functions in which they share
//! memory: it holds the address of the warp's memory. Where that makes local accesses no fewer, each counted ten times
//! for each loop around it, they share none. Truth values (a GPU's predicates) and the thread's number (a special
//! register) take none; a reload goes to a register that isn't counted, under every allocator.
//!
//! # Why the meaning is kept
//! Each thread has its own copy of what its warp shares, [`DISTANCE`] below its frame, in memory that a constructor
//! maps ([`runtime`]), or in the frame itself where that is impossible: so even a value that was wrongly called uniform
//! is restored correctly. A replay treats the lanes' copies as
//! one place. With `check=yes` each shared store is followed by a read from an address made from the value
//! ([`CHECKED`]): so a replay sees whether lanes that stored together stored the same.
//!
//! # Limitation
//! Structures in registers stay there. Functions with `setjmp`, calls that must be jumps, coroutines, handlers of
//! exceptions with frames of their own, or `asm goto` are left unchanged. The pass is for Linux on x86-64, and leaves
//! modules for other machines. Stacks are to lie in the last 4 TiB of the address space, as Linux puts them on x86-64
//! with up to 30 random bits: frames on stacks that a program lays out elsewhere share nothing, and neither do
//! functions that are built with `-fsanitize=thread` or `memory`, whose shadow lies where the copies would. A replay
//! counts what is kept there as local. Chains of calls are those within a module; callbacks from library functions are
//! not followed. Symbolic strides (`n·tid`) are not rewritten.
//!
//! Source: Sampaio, Martins, Collange, Pereira, *Divergence analysis with affine constraints*, 2012, section 4, figure
//! 6, and section 5 for the four allocators.

mod chains;
mod intervals;
mod rewrite;
mod rows;
mod runtime;
mod scan;

use parameters::{Parameter, Settings, Values};

use self::intervals::Interval;
use self::rows::{Row, Rows, Thread};
use crate::llvm::{Function, Module, Value};
use crate::pass::{Pass, Run};
use crate::spmd::{Mode, Options, Program};
use crate::{Reason, Remark};

/// How a spilled value may come back.
pub(crate) struct Allocator {
    name: &'static str,
    /// Uniform values are those of the boolean analysis, and go to shared memory.
    decides_by_boolean: bool,
    /// Rows i and iii.
    rematerialises: bool,
    /// Rows ii and iv.
    shares: bool,
}

/// All allocators, in the order in which they are listed.
const ALLOCATORS: [Allocator; 4] = [
    Allocator { name: "linear", decides_by_boolean: false, rematerialises: false, shares: false },
    Allocator { name: "div", decides_by_boolean: true, rematerialises: false, shares: true },
    Allocator { name: "rem", decides_by_boolean: false, rematerialises: true, shares: false },
    Allocator { name: "aff", decides_by_boolean: false, rematerialises: true, shares: true },
];

const NAMES: [&str; 4] = [ALLOCATORS[0].name, ALLOCATORS[1].name, ALLOCATORS[2].name, ALLOCATORS[3].name];

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "registers",
        values: Values::Number(2, 1024),
        default: 9,
        help: "the registers of a thread, each for a value of any width",
    },
    Parameter {
        name: "allocator",
        values: Values::OneOf(&NAMES),
        default: 3,
        help: "where spilled values go: local memory (linear), shared memory where uniform (div), nowhere where they can be computed (rem), or all of these (aff)",
    },
    Parameter {
        name: "loads",
        values: Values::OneOf(&["async", "simt"]),
        default: 0,
        help: "how the analysis treats loads: as a processor's threads run (async), or as if all lanes of a warp \
             load together (simt)",
    },
    Parameter {
        name: "shared",
        values: Values::Number(0, 1 << 30),
        default: 48 << 10,
        help: "the bytes of shared memory for spilled values, divided among the warps",
    },
    Parameter {
        name: "warps",
        values: Values::Number(1, 1 << 16),
        default: 48,
        help: "among how many warps it is \
         divided",
    },
    Parameter {
        name: "check",
        values: Values::YesNo,
        default: 0,
        help: "also read from an address made of each value that goes to shared memory, so that a replay can compare \
             the values",
    },
];

/// So far below a frame is the thread's copy of what its warp shares. Stacks lie in 0x7c00_0000_0000 to
/// 0x8000_0000_0000, so the copies in 0x3c00_0000_0000 to 0x4000_0000_0000: replay's memory model knows that range.
pub(crate) const DISTANCE: u64 = 0x4000_0000_0000;

/// Where the 2^20 bytes begin whose addresses tell what was stored: just below the copies.
pub(crate) const CHECKED: u64 = 0x3bff_fff0_0000;

/// What is done to a function.
struct Plan<'m> {
    function: Function<'m>,
    registers: usize,
    spilled: Vec<(Value<'m>, Row)>,
    /// Values that would be spilled if they could.
    fixed: usize,
    thread: Option<Thread<'m>>,
}

/// The pass.
pub(crate) const ENTRY: Pass = Pass {
    name: "spill",
    summary: "allocates registers by linear scan and makes the spill code explicit, to local memory or, where threads agree, to a warp's shared memory",
    source: "Sampaio, Martins, Collange, Pereira, 2012",
    parameters: PARAMETERS,
    structures: false,
    run: Run::Module(run),
};

/// Allocates registers in all functions that may be optimised.
fn run(module: &mut Module, settings: &Settings) -> Vec<Remark> {
    let target = module.target();
    if !is_known(&target) {
        let (pass, function) = ("spill", module.source_name());
        let (subject, reason) = ("the registers".to_owned(), Reason::OtherTarget(target));
        return vec![Remark { pass, function, subject, places: Vec::new(), reason, gain: None }];
    }
    let (remarks, shares) = over(module, settings);
    if shares {
        module.link(&runtime::code()).expect("the code that maps memory goes with any module");
    }
    remarks
}

/// Whether the code that maps memory, and where stacks lie, are right for a target: Linux on x86-64 with addresses of
/// 64 bits. A module without a target is for the machine at hand.
fn is_known(target: &str) -> bool {
    target.is_empty() || target.starts_with("x86_64") && target.contains("linux") && !target.ends_with("x32")
}

/// As [`run`], without the code that maps memory; and whether that is needed.
fn over(module: &Module, settings: &Settings) -> (Vec<Remark>, bool) {
    let allocator = &ALLOCATORS[settings.choice("allocator")];
    let registers = settings.number("registers") as usize;
    let mode = if settings.choice("loads") == 0 { Mode::Async } else { Mode::Simt };
    let mut remarks = Vec::new();
    let mut remark = |function: String, subject: &str, reason: Reason| {
        remarks.push(Remark {
            pass: "spill",
            function,
            subject: subject.to_owned(),
            places: Vec::new(),
            reason,
            gain: None,
        });
    };
    let Ok(program) =
        Program::of(module, &Options { mode: Some(mode), linked_with_others: true, ..Options::default() })
    else {
        return (remarks, false);
    };
    let recursive = chains::recursive(module);
    let mut plans: Vec<Plan<'_>> = Vec::new();
    let mut rows: Vec<Rows<'_, '_>> = Vec::new();
    for function in module.functions_to_optimise() {
        let Some(facts) = program.function(function) else { continue };
        let mut known = Rows::of(facts, allocator, mode);
        known.shares &= !recursive.contains(&function);
        if known.shares && rows::is_shadowed(function) {
            known.shares = false;
            remark(
                function.name(),
                "memory that a warp shares",
                Reason::NotSpilled(
                    "a sanitizer's shadow lies where it would be; values stay in each thread's own memory",
                ),
            );
        }
        let plan = plan(&mut known, registers, facts.is_run_by_threads());
        if plan.spilled.is_empty() {
            continue;
        }
        if let Some(reason) = rows::reason_to_leave(function) {
            remark(function.name(), "the registers", reason);
            continue;
        }
        plans.push(plan);
        rows.push(known);
    }
    // Beyond the capacity nothing is rewritten.
    let bytes = chains::deepest(module, &plans);
    let capacity = settings.number("shared") as u64 / settings.number("warps") as u64;
    if bytes > capacity {
        remark(module.source_name(), "memory that a warp shares", Reason::SharedMemoryFull { bytes, capacity });
        plans.iter_mut().flat_map(|plan| &mut plan.spilled).for_each(|(_, row)| *row = Row::Local);
    }
    for (plan, known) in plans.iter().zip(&rows) {
        let spills = rewrite::apply(plan, known.facts.flow(), settings.is_yes("check"));
        remark(plan.function.name(), "the registers", Reason::Spilled(spills));
    }
    let shares = plans.iter().flat_map(|plan| &plan.spilled).any(|(_, row)| row.is_shared());
    (remarks, shares)
}

/// What is spilled in a function, and where to. Memory that the warp shares costs the register that holds its address:
/// it is used where less goes to local memory then, each access counted by the loops around it.
fn plan<'m>(rows: &mut Rows<'m, '_>, registers: usize, by_threads: bool) -> Plan<'m> {
    let intervals = intervals::of(rows.facts.flow(), rows.thread.map(|thread| thread.value));
    if !rows.allocator.shares || !by_threads {
        return planned(rows, &intervals, registers);
    }
    let shares = std::mem::replace(&mut rows.shares, false);
    let without = planned(rows, &intervals, registers);
    rows.shares = shares;
    let with = planned(rows, &intervals, registers - 1);
    let local = |plan: &Plan<'m>| rows.accesses(plan.spilled.iter().filter(|(_, row)| *row == Row::Local));
    if local(&with) < local(&without) { with } else { without }
}

/// The same with so many registers.
fn planned<'m>(rows: &Rows<'m, '_>, intervals: &[Interval<'m>], registers: usize) -> Plan<'m> {
    let spilled = scan::spilled(intervals, registers);
    let fixed = intervals.iter().filter(|interval| !interval.can_spill).count();
    let values = intervals.iter().zip(spilled).filter(|(_, spilled)| *spilled).map(|(interval, _)| interval.value);
    let spilled = values.map(|value| (value, rows.row(value))).collect();
    Plan { function: rows.facts.function(), registers, spilled, fixed, thread: rows.thread }
}
