//! How blocks end: whose code that is, and what they call.

use trace_format::{Block, Instruction, Kind, LibraryCode, Pc, Trace};

/// What the survey of threads asks of a block.
pub(in crate::view) struct OfBlock {
    /// How many instructions it has.
    pub length: u32,
    /// Whether it is of a library whose functions are known; none where it is the loader's.
    pub of_library: Option<bool>,
    /// Its last call, if that is the program's own.
    pub calls: Option<Pc>,
}

impl OfBlock {
    /// Those of a trace, by number.
    pub fn all(trace: &Trace) -> Vec<OfBlock> {
        let libraries = LibraryCode::new(trace.modules(), trace.symbols());
        let of_library = |pc| if libraries.has_loader(pc) { None } else { Some(libraries.has(pc)) };
        let is_call = |one: &&Instruction| matches!(one.kind, Kind::Call | Kind::IndirectCall);
        let one = |(_, block): (_, &Block)| {
            let of_library = block.instructions.last().and_then(|last| of_library(last.pc));
            let call = block.instructions.iter().rfind(is_call).map(|call| call.pc);
            let calls = call.filter(|pc| !libraries.has_loader(*pc) && !libraries.has(*pc));
            OfBlock { length: block.instructions.len() as u32, of_library, calls }
        };
        trace.blocks().iter().map(one).collect()
    }
}
