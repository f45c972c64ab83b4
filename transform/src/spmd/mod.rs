//! Divergence analysis of LLVM IR: which values, branches and addresses are the same for all threads, which are affine
//! in the thread's number, which neither.
//!
//! 1. Each function becomes a function that [`divergence`] knows.
//! 2. Thread numbers are found (`sources.rs`): arguments of pthread start routines, OpenMP regions, work-item
//!    intrinsics, `lockstep_tid()`, what the user names.
//! 3. Callees are summed up, callers last: what a call gives for what it passes (`calls.rs`).
//! 4. What call sites pass is met in the parameters, callers first, until nothing changes.
//!
//! Calls of functions that only this module can call, or of a whole program's (one with `main`, unless
//! [`Options::linked_with_others`]), are all known; parameters of other functions may be anything, and so may what
//! functions give that the linker may replace. Source: Sampaio et al., *Divergence analysis with affine constraints*,
//! 2012, for what is done inside of a function; calls are our own.

mod body;
mod calls;
mod claims;
mod library;
mod meets;
mod memory;
mod rows;
mod sources;

pub use divergence::{Analysis, Boolean, Class, Decision, Fact, Mode, Rule, ValueId};
use flowgraph::NodeId;
use rustc_hash::FxHashMap;

use self::body::Body;
pub use self::claims::{Addresses, Claim, Direction, claims};
pub use self::rows::{Row, Subject, of_function, rows};
use crate::flow::Flow;
use crate::llvm::{Block, Function, Instruction, Module, Value};

/// What `lockstep_tid()` of `include/lockstep.h` leaves in the code.
const MARK: &str = "lockstep_tid";

/// What runs the threads: where their numbers and their memory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// A processor's threads.
    Threads,
    /// AMD's GPUs (amdgcn).
    Amd,
    /// NVIDIA's GPUs (nvptx).
    Nvidia,
    /// OpenCL's intermediate language.
    OpenCl,
}

impl Machine {
    /// What a module is compiled for.
    #[must_use]
    pub fn of(module: &Module) -> Machine {
        let target = module.target();
        match target.split('-').next().unwrap_or_default() {
            "amdgcn" => Machine::Amd,
            "nvptx" | "nvptx64" => Machine::Nvidia,
            "spir" | "spir64" | "spirv" | "spirv32" | "spirv64" => Machine::OpenCl,
            _ => Machine::Threads,
        }
    }
}

/// What the user says about a module.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How loads are taken. Default: as threads run on the module's target, so [`Mode::Async`] on processors.
    pub mode: Option<Mode>,
    /// Arguments that are a thread's number: function and number of the argument, from 0. Default: none.
    pub thread_numbers: Vec<(String, usize)>,
    /// Whether code of other modules may call what this one does not hide, also where it has `main`. Who changes code
    /// by what is found must say yes, unless the module is known to be the whole program. Default: no.
    pub linked_with_others: bool,
    /// A rule that is applied wrongly, for tests that have to notice. Default: none.
    pub broken: Option<Rule>,
}

/// What is known about a function.
pub struct FunctionFacts<'m> {
    body: Body<'m>,
    analysis: Analysis,
    is_run_by_threads: bool,
}

impl<'m> FunctionFacts<'m> {
    /// The function.
    #[must_use]
    pub fn function(&self) -> Function<'m> {
        self.body.function
    }

    /// The analysis of its abstract form.
    #[must_use]
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Its control flow; blocks have the numbers that the abstract form's have.
    #[must_use]
    pub fn flow(&self) -> &Flow<'m> {
        &self.body.flow
    }

    /// Whether threads are known to run it: it is a start routine, a region or a kernel, has a thread's number, or is
    /// called by such a function.
    #[must_use]
    pub fn is_run_by_threads(&self) -> bool {
        self.is_run_by_threads
    }

    /// The value of the abstract form that stands for one of the IR; none where nothing uses it.
    #[must_use]
    pub fn id(&self, value: Value<'m>) -> Option<ValueId> {
        self.body.values.get(&value).copied()
    }

    /// The instruction that makes a value of the abstract form.
    #[must_use]
    pub fn instruction(&self, id: ValueId) -> Option<Instruction<'m>> {
        self.body.instructions.get(&id).copied()
    }

    /// What is known about a value where it is made.
    #[must_use]
    pub fn fact(&self, value: Value<'m>) -> Option<Fact> {
        self.id(value).map(|id| self.analysis.fact(id))
    }

    /// Its class where it is made.
    #[must_use]
    pub fn class(&self, value: Value<'m>) -> Option<Class> {
        self.fact(value).map(|fact| fact.class())
    }

    /// The class of what a block's branch decides by; none where there is one way on.
    #[must_use]
    pub fn branch(&self, block: Block<'m>) -> Option<Class> {
        self.body.flow.find(block).and_then(|node: NodeId| self.analysis.branch(node))
    }

    /// The address that a load, a store or an atomic goes to, where it is used.
    #[must_use]
    pub fn address(&self, access: Instruction<'m>) -> Option<Fact> {
        self.id(access.as_value()).and_then(|id| self.analysis.address(id))
    }
}

/// Whether a module has a place where threads get their numbers or start: a look at its calls, without the analysis.
#[must_use]
pub fn has_thread_source(module: &Module) -> bool {
    sources::find(module, Machine::of(module), &Options::default()).is_ok_and(|sources| sources.has_threads())
}

/// What is known about all functions of a module.
pub struct Program<'m> {
    functions: Vec<FunctionFacts<'m>>,
    by_function: FxHashMap<Function<'m>, usize>,
    machine: Machine,
    mode: Mode,
    has_threads: bool,
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
        let has_threads = sources.has_threads();
        let functions = calls::solve(module, machine, mode, options, &sources);
        let by_function = functions.iter().enumerate().map(|(i, f)| (f.function(), i)).collect();
        Ok(Program { functions, by_function, machine, mode, has_threads })
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

    /// Whether a place was found where threads get their numbers or start.
    #[must_use]
    pub fn has_threads(&self) -> bool {
        self.has_threads
    }
}
