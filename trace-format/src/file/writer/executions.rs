//! Executions of blocks, many at once.

use std::cell::Cell;
use std::io::Write;

use super::{MAX_BUFFERED, TraceWriter, started};
use crate::codec::rows::Plans;
use crate::codec::shape::Shapes;
use crate::codec::stream_codec::StreamBuffer;
use crate::{Block, BlockId, Result, ThreadId};

/// An execution of a whole block without recorded stack pointers, for [`TraceWriter::executions`].
pub struct Execution<'v> {
    /// The block.
    pub block: BlockId,
    /// The lower and the upper half of each of its values. A block with values has sums.
    pub values: &'v [[u32; 2]],
    /// Room for what the writer knows of the block: one for each block, and always the same.
    pub known: &'v Cell<KnownBlock>,
}

/// What the writer knows of a block in the chunk that it wrote last.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownBlock {
    /// The number of that chunk; 0 for none.
    chunk: u64,
    track: u32,
    values: u32,
    instructions: u32,
    sp_change: i64,
}

/// Looks a block up, for its first execution in a chunk.
#[cold]
fn place_of(shapes: &Shapes, plans: &Plans, block: BlockId, stream: &mut StreamBuffer) -> KnownBlock {
    let shape = shapes.get(block).expect("the block is in the table");
    assert!(shape.sps == 0 && (shape.values == 0 || shape.start.is_some()), "the block has values of sums only");
    KnownBlock {
        chunk: stream.number,
        track: if shape.values > 0 { stream.rows.enter(block, shape, plans) } else { 0 },
        values: shape.values,
        instructions: shape.instructions,
        sp_change: shape.sp_change,
    }
}

impl<W: Write> TraceWriter<W> {
    /// The same as [`TraceWriter::add_block`], for a caller that keeps the block.
    ///
    /// # Panics
    /// See there.
    pub fn add_block_like(&mut self, block: &Block) -> Result<BlockId> {
        let id = self.add_to_table(block)?;
        if let Some(blocks) = &mut self.blocks {
            blocks.push(block.clone());
        }
        Ok(id)
    }

    /// Executions of whole blocks, one after another: `next` gives them until it gives none. For engines that write
    /// many at once.
    ///
    /// # Panics
    /// Like [`TraceWriter::block`].
    #[inline]
    pub fn executions<'v>(&mut self, thread: ThreadId, mut next: impl FnMut() -> Option<Execution<'v>>) -> Result<()> {
        let mut full = true;
        while full {
            let stream = started(&mut self.streams, thread);
            if stream.number == 0 {
                self.numbered += 1;
                stream.number = self.numbered;
            }
            let (before, number) = (stream.held(), stream.number);
            let (mut instructions, mut sp_change) = (0, 0);
            full = stream.is_full();
            while !full {
                let Some(Execution { block, values, known }) = next() else { break };
                let mut place = known.get();
                if place.chunk != number {
                    place = place_of(&self.shapes, &self.plans, block, stream);
                    known.set(place);
                }
                assert!(values.len() == place.values as usize, "an execution has the values that its block takes");
                instructions += place.instructions;
                sp_change += place.sp_change;
                stream.push_id(block);
                if !values.is_empty() {
                    stream.rows.push_at(place.track, values);
                }
                full = stream.has_many();
            }
            stream.ran(instructions, sp_change);
            self.instructions += u64::from(instructions);
            self.buffered += stream.held() - before;
            if full || self.buffered > MAX_BUFFERED {
                self.relieve(thread)?;
            }
        }
        Ok(())
    }
}
