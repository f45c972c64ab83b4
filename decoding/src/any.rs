//! Bytes that no program ran.

use std::cell::RefCell;

use crate::known::explained;
use crate::opinion::differences;
use crate::{Difference, First, Second};

thread_local! {
    /// Both decoders: making one costs more than an instruction.
    static DECODERS: RefCell<(First, Second)> = RefCell::default();
}

/// What the decoders say differently of the instruction that these bytes begin with and the table does not explain.
///
/// Without a trace there is nothing recorded, so the kind and the change of the stack pointer are what the tracer would
/// record.
#[must_use]
pub fn unexplained(pc: u64, bytes: &[u8]) -> Vec<Difference> {
    let bytes = &bytes[..bytes.len().min(15)];
    let recorded = tracer::instruction(trace_format::Pc(pc), bytes);
    let (first, second) = DECODERS
        .with_borrow_mut(|(first, second)| (first.opinion(pc, bytes, recorded.as_ref()), second.opinion(pc, bytes)));
    let all = differences(first.as_ref(), second.as_ref()).into_iter();
    let unexplained = all.filter(|aspect| explained(aspect, first.as_ref(), second.as_ref(), bytes).is_none());
    unexplained.map(|aspect| Difference::new(pc, bytes, first.as_ref().or(second.as_ref()), aspect)).collect()
}
