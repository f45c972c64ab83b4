//! Bytes that no program ran.

use std::cell::RefCell;

use crate::known::explained;
use crate::opinion::differences;
use crate::{ByCapstone, ByIced, Difference};

thread_local! {
    /// Both decoders: making one costs more than an instruction.
    static DECODERS: RefCell<(ByIced, ByCapstone)> = RefCell::default();
}

/// The differences between the decoders about the instruction that these bytes begin with, except those that the table
/// explains.
///
/// Without a trace there is nothing recorded, so the kind and the change of the stack pointer are what the tracer would
/// record.
#[must_use]
pub fn unexplained(pc: u64, bytes: &[u8]) -> Vec<Difference> {
    let bytes = &bytes[..bytes.len().min(15)];
    let recorded = tracer::instruction(trace_format::Pc(pc), bytes);
    let (iced, capstone) = DECODERS
        .with_borrow_mut(|(iced, capstone)| (iced.opinion(pc, bytes, recorded.as_ref()), capstone.opinion(pc, bytes)));
    let all = differences(iced.as_ref(), capstone.as_ref()).into_iter();
    let unexplained = all.filter(|aspect| explained(aspect, iced.as_ref(), capstone.as_ref(), bytes).is_none());
    unexplained.map(|aspect| Difference::new(pc, bytes, iced.as_ref().or(capstone.as_ref()), aspect)).collect()
}
