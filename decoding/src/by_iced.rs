//! What iced-x86 says, through the crate `machine`: what lockstep believes.

use machine::{Memory, Segment, Table, x86_64};
use trace_format::{Instruction, Pc};

use crate::opinion::{Access, Operand, Opinion};

/// The decoder that the tracer and the view believe.
#[derive(Debug, Default)]
pub struct ByIced;

impl ByIced {
    /// Decodes the instruction at `pc` that these bytes begin with; none if they are not an instruction. `recorded` is
    /// what the trace says about it: its kind and change of the stack pointer replace those that follow from the bytes.
    #[must_use]
    pub fn opinion(&self, pc: u64, code: &[u8], recorded: Option<&Instruction>) -> Option<Opinion> {
        let table = Table::first(Pc(pc), code);
        let decoded = table.all().get(0)?;
        let mut memory: Vec<Operand> = decoded.named_memory().iter().map(operand).collect();
        memory.sort();
        Some(Opinion {
            mnemonic: decoded.mnemonic(),
            len: decoded.length(),
            kind: recorded.map_or_else(|| decoded.kind(), |recorded| recorded.kind),
            target: decoded.target().map(|target| target.0),
            memory,
            sp: recorded.map_or_else(|| decoded.sp(), |recorded| recorded.sp),
            extensions: decoded.extensions(),
        })
    }
}

fn operand(memory: &Memory) -> Operand {
    let segment = memory.segment.map(|segment| if segment == Segment::Fs { "fs" } else { "gs" }.to_owned());
    Operand {
        segment,
        base: memory.base.map(x86_64::name),
        index: memory.index.map(|index| (x86_64::name(index), u32::from(memory.scale))),
        displacement: memory.displacement,
        size: u32::from(memory.size),
        access: Access { reads: memory.access.reads, writes: memory.access.writes },
    }
}
