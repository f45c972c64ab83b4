//! Bytes that no program ran.

use crate::known::explained;
use crate::opinion::differences;
use crate::{ByCapstone, ByIced, Difference};

thread_local! {
    /// Making one costs more than an instruction.
    static CAPSTONE: ByCapstone = ByCapstone::default();
}

/// The differences between the decoders about the instruction that these bytes begin with, except those that the table
/// explains.
#[must_use]
pub fn unexplained(pc: u64, bytes: &[u8]) -> Vec<Difference> {
    let bytes = &bytes[..bytes.len().min(15)];
    let (iced, capstone) = (ByIced.opinion(pc, bytes, None), CAPSTONE.with(|capstone| capstone.opinion(pc, bytes)));
    let all = differences(iced.as_ref(), capstone.as_ref()).into_iter();
    let unexplained = all.filter(|aspect| explained(aspect, iced.as_ref(), capstone.as_ref(), bytes).is_none());
    unexplained.map(|aspect| Difference::new(pc, bytes, iced.as_ref().or(capstone.as_ref()), aspect)).collect()
}
