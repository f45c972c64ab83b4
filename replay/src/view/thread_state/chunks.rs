//! What a runtime gives a thread of a loop.

use trace_format::Chunk;

use super::{ThreadState, push_control};
use crate::{Batch, Control};

impl ThreadState<'_> {
    /// The thread was given iterations: of a taskloop, if it has just begun to run a piece of one.
    pub(super) fn take_chunk(&mut self, chunk: &Chunk, batch: &mut Batch) {
        let is_piece = self.task_body.take_if(|body| *body == chunk.site.0).is_some();
        if let Some(number) = if is_piece { self.taskloops.next() } else { None } {
            let piece = Control::Piece { first: chunk.first(), taskloop: *number };
            match self.extents.is_open() {
                true if self.extents.is_fresh() => self.piece = Some((chunk.iterations(), piece)),
                true => push_piece(batch, chunk.iterations(), piece),
                false => {}
            }
        } else if self.extents.is_open() {
            let stride = u32::try_from(chunk.stride.unsigned_abs()).unwrap_or(0);
            // A team's share of a loop is dealt to its threads once more.
            let iterations = chunk.iterations().filter(|_| !self.plan.distributes.contains(&chunk.site));
            push_piece(batch, iterations, Control::Chunk { first: chunk.first(), stride });
            if stride != 0 && !self.plan.choice.marks.is_empty() {
                let turns = chunk.upper.abs_diff(chunk.lower) / chunk.step.unsigned_abs().max(1);
                push_control(batch, Control::Turns(turns));
            }
        }
    }
}

/// What a thread was given, behind the number of its iterations.
pub(super) fn push_piece(batch: &mut Batch, iterations: Option<u64>, given: Control) {
    if let Some(number) = iterations {
        push_control(batch, Control::Iterations(number));
    }
    push_control(batch, given);
}
