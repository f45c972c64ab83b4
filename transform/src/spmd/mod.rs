//! Divergence analysis of LLVM IR: which values, branches and addresses are the same for all threads, which are affine
//! in the thread's number, which neither.
//!
//! 1. Each function becomes a function that [`divergence`] knows.
//! 2. Thread numbers are found (`sources.rs`): arguments of pthread start routines, OpenMP regions, work-item
//!    intrinsics, `lockstep_tid()`, what the user names. Where lanes are iterations, counters of the loops that OpenMP
//!    shares out (`iterations.rs`).
//! 3. Callees are summed up, callers last: what a call returns for what it passes (`calls.rs`).
//! 4. What call sites pass is combined in the parameters, callers first, until nothing changes.
//!
//! All calls are known of functions that only this module can call, and of a whole program's functions (one with
//! `main`, unless [`Options::linked_with_others`]). Parameters of other functions may be anything, and so may results
//! of functions that the linker may replace. Source: Sampaio et al., *Divergence analysis with affine constraints*,
//! 2012, for what is done inside of a function; calls are our own.

mod body;
mod calls;
mod claims;
mod facts;
mod iterations;
mod library;
mod meets;
mod memory;
mod options;
mod rows;
mod sources;
mod warps;

use std::cell::OnceCell;

pub use divergence::{Analysis, Boolean, Class, Decision, Fact, Mode, Rule, ValueId};
use rustc_hash::FxHashMap;

pub use self::claims::{Addresses, Claim, Direction, claims};
pub use self::facts::FunctionFacts;
pub use self::options::{Machine, Options};
pub use self::rows::{Row, Subject, of_function, rows};
use crate::llvm::{Function, Module};

/// Whether a module has a place where threads get their numbers or start: a look at its calls, without the analysis.
#[must_use]
pub(crate) fn has_thread_source(module: &Module) -> bool {
    sources::find(module, Machine::of(module), &Options::default()).is_ok_and(|sources| sources.has_threads())
}

/// What is known about all functions of a module.
pub struct Program<'m> {
    functions: Vec<FunctionFacts<'m>>,
    by_function: FxHashMap<Function<'m>, usize>,
    machine: Machine,
    mode: Mode,
    has_threads: bool,
    warps: OnceCell<warps::Warps<'m>>,
}

impl<'m> Program<'m> {
    /// Analyses a module.
    ///
    /// # Errors
    /// [`crate::Error::NoArgument`] where [`Options::thread_numbers`] names what is not there.
    pub fn of(module: &'m Module, options: &Options) -> crate::Result<Program<'m>> {
        let machine = Machine::of(module);
        let mode = options.mode.unwrap_or(if machine == Machine::Threads { Mode::Async } else { Mode::Simt });
        let sources = sources::find(module, machine, options)?;
        let has_threads = if options.iterations { sources.has_iterations() } else { sources.has_threads() };
        let functions = calls::solve(module, machine, mode, options, &sources);
        let by_function = functions.iter().enumerate().map(|(i, f)| (f.function(), i)).collect();
        Ok(Program { functions, by_function, machine, mode, has_threads, warps: OnceCell::new() })
    }

    /// All functions with a body, in order.
    #[must_use]
    pub fn functions(&self) -> &[FunctionFacts<'m>] {
        &self.functions
    }

    /// What is known about one.
    #[must_use]
    pub fn function(&self, function: Function<'m>) -> Option<&FunctionFacts<'m>> {
        self.by_function.get(&function).map(|&i| &self.functions[i])
    }

    /// What runs the threads.
    #[must_use]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// How loads were taken.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether a place was found where threads get their numbers or start; where lanes are iterations, whether loops
    /// were found whose iterations they are.
    #[must_use]
    pub fn has_threads(&self) -> bool {
        self.has_threads
    }
}
