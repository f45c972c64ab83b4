//! What the survey of threads asks of blocks: whose code they are, what they call, and whether they may be waiting.

use trace_format::{Block, BlockId, Instruction, Kind, LibraryCode, Pc, Trace};

use crate::view::waits::own_locks::Acts;
use crate::waiting::{Code, may_wait};

/// What the survey of threads asks of a block.
pub(in crate::view) struct OfBlock {
    /// How many instructions it has.
    pub length: u32,
    /// Whether it is of a library whose functions are known; none where it is the loader's.
    pub of_library: Option<bool>,
    /// Its last call, if that is the program's own.
    pub calls: Option<Pc>,
    /// It writes elsewhere than to the stack, or may.
    pub stores: bool,
    /// It can be a part of a loop that waits.
    pub may_wait: bool,
}

impl OfBlock {
    /// Those of a trace, by number.
    pub fn all(trace: &Trace, code: Option<&Code>, acts: &Acts) -> Vec<OfBlock> {
        let libraries = LibraryCode::new(trace.modules(), trace.symbols());
        let of_library = |pc| if libraries.has_loader(pc) { None } else { Some(libraries.has(pc)) };
        let is_call = |one: &&Instruction| matches!(one.kind, Kind::Call | Kind::IndirectCall);
        let one = |(id, block): (BlockId, &Block)| {
            let of_library = block.instructions.last().and_then(|last| of_library(last.pc));
            let call = block.instructions.iter().rfind(is_call).map(|call| call.pc);
            let calls = call.filter(|pc| !libraries.has_loader(*pc) && !libraries.has(*pc));
            let all: Option<Vec<_>> = acts.listing(id).collect();
            OfBlock {
                length: block.instructions.len() as u32,
                of_library,
                calls,
                stores: !all.is_some_and(|all| may_wait(&all)),
                may_wait: code.is_some_and(|code| code.can_block_wait(id)),
            }
        };
        trace.blocks().iter().map(one).collect()
    }
}
