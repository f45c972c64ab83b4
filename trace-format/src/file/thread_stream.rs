//! Reads the items of one thread, chunk by chunk.

use std::sync::Arc;

use crate::codec::stream_codec::{Counts, Entry, StreamChunk};
use crate::file::chunk::ChunkDecoder;
use crate::file::reader::Inner;
use crate::file::stop::Stop;
use crate::{BlockId, Error, Event, Result, ThreadId};

/// One item of a thread's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A whole block ran.
    Block {
        /// The block.
        block: BlockId,
        /// The stack pointer after each of its instructions with [`SpEffect::Recorded`](crate::SpEffect::Recorded).
        sps: &'a [u64],
        /// Its memory addresses, instruction by instruction.
        memory: &'a [u64],
    },
    /// The first instructions of a block ran.
    Partial {
        /// The block.
        block: BlockId,
        /// How many of its instructions ran: 1 to its length minus 1.
        executed: u32,
        /// As for a whole block.
        sps: &'a [u64],
        /// As for a whole block.
        memory: &'a [u64],
    },
    /// Something else happened; never [`Event::Partial`].
    Event(Event),
}

/// The items of one thread, from its start. Made by [`Trace::stream`](crate::Trace::stream).
pub struct ThreadStream {
    trace: Arc<Inner>,
    stop: Stop,
    thread: ThreadId,
    next_chunk: usize,
    /// Where the current chunk starts in the file.
    offset: u64,
    chunk: StreamChunk,
    decoder: ChunkDecoder,
    started: bool,
    /// The fault that ended the stream, and where.
    fault: Option<(u64, String)>,
}

impl ThreadStream {
    pub(crate) fn new(trace: Arc<Inner>, stop: Stop, thread: ThreadId) -> ThreadStream {
        ThreadStream {
            trace,
            stop,
            thread,
            next_chunk: 0,
            offset: 0,
            chunk: StreamChunk::default(),
            decoder: ChunkDecoder::new(),
            started: false,
            fault: None,
        }
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// The next item; none at the end. After a damaged chunk every further call gives the same error.
    ///
    /// The slices of an item are valid until the next call.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>> {
        while self.chunk.is_done() {
            if !self.load_chunk()? {
                return Ok(None);
            }
        }
        match self.chunk.next(&self.trace.shapes) {
            Entry::Plain(block) => Ok(Some(Item::Block { block, sps: &[], memory: &[] })),
            entry => self.recorded(entry),
        }
    }

    fn recorded(&mut self, entry: Entry) -> Result<Option<Item<'_>>> {
        let (block, executed, counts) = match entry {
            Entry::Plain(block) => (block, usize::MAX, [0, 0]),
            Entry::Block(block, sps, values) => (block, usize::MAX, [sps, values]),
            Entry::Partial(block, executed, sps, values) => (block, executed as usize, [sps, values]),
            Entry::Event(event) => return Ok(Some(Item::Event(event))),
        };
        let (content, shape) = (&self.trace.blocks[block], self.trace.shapes.get(block));
        let shape = shape.expect("each block has a shape");
        let executed = executed.min(content.instructions.len());
        if let Err(fault) = self.chunk.decode(self.decoder.payload(), counts, content, shape, executed) {
            return Err(self.fail(self.offset, fault));
        }
        let (sps, memory) = self.chunk.values(&self.trace.blocks[block]);
        Ok(Some(match entry {
            Entry::Plain(block) | Entry::Block(block, ..) => Item::Block { block, sps, memory },
            Entry::Partial(block, executed, ..) => Item::Partial { block, executed, sps, memory },
            Entry::Event(event) => Item::Event(event),
        }))
    }

    /// Reads the next chunk; whether there is one.
    #[cold]
    fn load_chunk(&mut self) -> Result<bool> {
        self.stop.check()?;
        let source = &self.trace.source;
        if let Some((offset, fault)) = &self.fault {
            return Err(source.damaged(*offset, fault.clone()));
        }
        let Some(place) = self.trace.streams.get(self.thread.index()).and_then(|chunks| chunks.get(self.next_chunk))
        else {
            return Ok(false);
        };
        let header = self.decoder.read(source, place.offset, self.trace.end)?;
        let counts = Counts { blocks: header.blocks, events: header.events, instructions: header.instructions };
        let loaded = if header == place.header {
            let modules = self.trace.modules.len();
            let (payload, version) = (self.decoder.payload(), self.trace.version);
            self.chunk.load(payload, version, counts, &self.trace.shapes, modules, !self.started)
        } else {
            Err("the chunk's header is not as the index gives it".to_owned())
        };
        let offset = place.offset;
        if let Err(fault) = loaded {
            return Err(self.fail(offset, fault));
        }
        self.offset = offset;
        self.next_chunk += 1;
        self.started |= header.blocks + header.events > 0;
        Ok(true)
    }

    /// Ends the stream: no item of the chunk is given out after its fault.
    fn fail(&mut self, offset: u64, fault: String) -> Error {
        self.chunk = StreamChunk::default();
        let error = self.trace.source.damaged(offset, fault.clone());
        self.fault = Some((offset, fault));
        error
    }
}
