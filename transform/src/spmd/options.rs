//! What the user says about a module.

use divergence::{Mode, Rule};

use crate::llvm::Module;

/// What `lockstep_tid()` of `include/lockstep.h` leaves in the code.
pub(super) const MARK: &str = "lockstep_tid";

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
    /// Whether lanes are the iterations of the loops that OpenMP shares out, not threads: `tid` is the iteration's
    /// number. Loops must be as the source has them: neither unrolled nor vectorised. Default: no.
    pub iterations: bool,
    /// Whether integers are taken for as wide as they need to be: see [`divergence::Options::no_wrap`]. Default: no.
    pub no_wrap: bool,
    /// Whether code of other modules may call what this one does not hide, also where it has `main`. Who changes code
    /// by what is found must say yes, unless the module is known to be the whole program. Default: no.
    pub linked_with_others: bool,
    /// A rule that is applied wrongly, for tests that have to notice. Default: none.
    pub broken: Option<Rule>,
}
