//! What the registry says about a model.

use parameters::{Parameter, Settings};

use crate::{Family, Heuristic, Program};

/// A line of the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name, as typed.
    pub name: &'static str,
    /// What kind of model it is.
    pub family: Family,
    /// Its rule in one sentence.
    pub rule: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its source file, from the workspace's folder; the file's head explains the model.
    pub file: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether it looks at [`Program::control_flow`].
    pub needs_control_flow: bool,
    /// Whether it runs blocks of warps whose lanes can share fetches; else each warp runs alone.
    pub runs_blocks: bool,
    /// Makes one for a warp, or a block, of so many lanes, with the values of its parameters.
    pub build: fn(settings: &Settings, lanes: usize, program: &Program) -> Box<dyn Heuristic>,
}
