//! Writes a trace: items gather per thread and become chunks, the index comes last.

mod executions;

use std::io::{self, Write};
use std::path::PathBuf;

pub use executions::{Execution, KnownBlock};

use crate::codec::numbering::Numbering;
use crate::codec::rows::Plans;
use crate::codec::shape::{Shape, Shapes};
use crate::codec::stream_codec::{Spare, StreamBuffer};
use crate::codec::table_codec::TableBuffer;
use crate::file::chunk::ChunkEncoder;
use crate::file::failure::{Failure, note};
use crate::layout::{ChunkHeader, ChunkKind, MAX_INDEX_ENTRIES, MAX_RAW, MAX_THREADS, TARGET_RAW, Version};
use crate::layout::{encode_footer, encode_header};
use crate::{
    Action, Block, BlockId, BlockTable, Error, Event, Finish, Meta, Module, ModuleId, Result, SpEffect, Symbol,
    ThreadId,
};

/// The most bytes of items that wait for their chunks, over all threads. Buffers grow by doubling, so that they take
/// 64 MiB of memory at most.
pub const MAX_BUFFERED: usize = 32 << 20;
/// The most bytes of a single module or symbol.
const MAX_ENTRY: usize = MAX_RAW - (2 << 20);

/// Writes a trace. Its memory is bounded however long the run: the block table and [`MAX_BUFFERED`].
///
/// When writing fails, the call that noticed and every later one that writes give the error, and what was written
/// before can still be read.
///
/// # Panics
/// Methods panic where the caller breaks their contract: an unknown block, lengths that do not fit the block, items of
/// a thread before its [`Event::ThreadStart`].
pub struct TraceWriter<W: Write> {
    out: W,
    name: PathBuf,
    encoder: ChunkEncoder,
    /// The first error of writing. Nothing is written after it: later chunks would not be where the index says.
    failed: Option<Failure>,
    written: u64,
    /// How many bytes streams took in buffers, and in the file.
    written_raw: u64,
    written_streams: u64,
    /// None: they are not kept.
    blocks: Option<BlockTable>,
    shapes: Shapes,
    plans: Plans,
    numbering: Numbering,
    spare: Spare,
    /// How many chunks have a number.
    numbered: u64,
    modules: u32,
    table: TableBuffer,
    streams: Vec<Stream>,
    /// How many threads have a chunk: first chunks come in order of thread number.
    begun: usize,
    buffered: usize,
    instructions: u64,
    index: Index,
}

#[derive(Default)]
struct Stream {
    buffer: StreamBuffer,
    started: bool,
}

#[derive(Default)]
struct Index {
    entries: Vec<u8>,
    /// Where the last index chunk is; 0 when there is none.
    previous: u64,
}

impl<W: Write> TraceWriter<W> {
    /// The most blocks of one [`TraceWriter::plain_blocks`].
    pub const MAX_RUN: usize = 4096;

    /// Starts a trace. `name` is the path used in error messages.
    pub fn new(out: W, name: impl Into<PathBuf>, meta: &Meta) -> Result<Self> {
        let name = name.into();
        let encoder =
            ChunkEncoder::new().map_err(|source| Error::Io { path: name.clone(), action: Action::Compress, source })?;
        let mut writer = TraceWriter {
            out,
            name,
            encoder,
            failed: None,
            written: 0,
            written_raw: 0,
            written_streams: 0,
            blocks: Some(BlockTable::default()),
            shapes: Shapes::default(),
            plans: Plans::default(),
            numbering: Numbering::default(),
            spare: Spare::default(),
            numbered: 0,
            modules: 0,
            table: TableBuffer::default(),
            streams: Vec::new(),
            begun: 0,
            buffered: 0,
            instructions: 0,
            index: Index::default(),
        };
        writer.write(&encode_header(Version::NEWEST))?;
        writer.set_meta(meta)?;
        Ok(writer)
    }

    /// Replaces what is known about the run before it starts.
    pub fn set_meta(&mut self, meta: &Meta) -> Result<()> {
        let json = serde_json::to_vec(meta).expect("strings and numbers can be written as JSON");
        self.check_len("the command line", json.len())?;
        self.global(ChunkKind::Meta, &json)
    }

    /// Adds a module. Modules are numbered from 0 in the order in which they are added.
    pub fn add_module(&mut self, module: &Module) -> Result<ModuleId> {
        let id = ModuleId(self.modules);
        self.check_len("a module's path, build id and mappings", module_len(module))?;
        self.make_room(module_len(module))?;
        self.table.add_module(module);
        self.modules += 1;
        Ok(id)
    }

    /// Adds a symbol.
    pub fn add_symbol(&mut self, symbol: &Symbol) -> Result<()> {
        self.check_len("a symbol's name", symbol.name.len())?;
        self.make_room(symbol.name.len())?;
        self.table.add_symbol(symbol);
        Ok(())
    }

    /// Adds a block. The caller must add equal blocks only once.
    ///
    /// # Panics
    /// When the block is empty, longer than [`Block::MAX_INSTRUCTIONS`], has an instruction of more than 15 bytes, or
    /// code that is not as long as its instructions, or sums that do not fit (see [`Address`](crate::Address)): one for
    /// each address, values named in order, sources that are there by then.
    pub fn add_block(&mut self, block: Block) -> Result<BlockId> {
        let id = self.add_to_table(&block)?;
        if let Some(blocks) = &mut self.blocks {
            blocks.push(block);
        }
        Ok(id)
    }

    fn add_to_table(&mut self, block: &Block) -> Result<BlockId> {
        assert!(block.instructions.len() <= Block::MAX_INSTRUCTIONS, "a block has at most 4096 instructions");
        assert!(block.instructions.iter().all(|i| i.len <= 15), "an instruction has at most 15 bytes");
        let bytes: usize = block.instructions.iter().map(|i| usize::from(i.len)).sum();
        assert!(block.code.is_empty() || block.code.len() == bytes, "the code is as long as the instructions");
        self.make_room(0)?;
        let values = match block.values_after_each() {
            Ok(values) => values,
            Err(fault) => panic!("the sums of a block's addresses fit it: {fault}"),
        };
        self.shapes.add(block, values).map_err(|what| Error::Limit { path: self.name.clone(), what })?;
        self.table.add_block(block);
        Ok(BlockId(self.shapes.len() as u32 - 1))
    }

    /// Keeps no blocks from now on, so that a block takes some twenty bytes of memory whatever its length. Afterwards
    /// there is no [`TraceWriter::partial`] and no [`TraceWriter::blocks`].
    pub fn forget_blocks(&mut self) {
        self.blocks = None;
    }

    /// The blocks added so far.
    ///
    /// # Panics
    /// When they are not kept.
    #[must_use]
    pub fn blocks(&self) -> &BlockTable {
        self.blocks.as_ref().expect("the blocks are kept")
    }

    /// One execution of a whole block. `sps`: the stack pointer after each instruction of it with
    /// [`SpEffect::Recorded`], in order; `values`: the values that its memory addresses follow from; the addresses
    /// themselves, instruction by instruction, where the block has no sums.
    ///
    /// # Panics
    /// When the block is unknown, the lengths do not fit it, or the thread has not started.
    #[inline]
    pub fn block(&mut self, thread: ThreadId, block: BlockId, sps: &[u64], values: &[u64]) -> Result<()> {
        let shape = *self.shapes.get(block).expect("the block is in the table");
        assert_lengths([shape.sps, shape.values], sps.len(), values.len());
        self.instructions += u64::from(shape.instructions);
        let stream = started(&mut self.streams, thread);
        if shape.sps + shape.values == 0 {
            stream.push_plain(block, &shape);
            self.buffered += 4;
        } else {
            let before = stream.held();
            stream.push_block(block, &shape, sps, values, &self.plans);
            self.buffered += stream.held() - before;
        }
        if stream.is_full() || self.buffered > MAX_BUFFERED {
            return self.relieve(thread);
        }
        Ok(())
    }

    /// One execution each of whole blocks that take no stack pointers or values, by number. They run `instructions` in
    /// all, and move the stack pointer by `sp_change`: the caller has added that up. For engines that write many at
    /// once.
    ///
    /// # Panics
    /// When there are more than [`TraceWriter::MAX_RUN`], a block is unknown, or the thread has not started.
    pub fn plain_blocks(&mut self, thread: ThreadId, blocks: &[u32], instructions: u32, sp_change: i64) -> Result<()> {
        assert!(blocks.len() <= Self::MAX_RUN, "a run of blocks is short");
        // Faster than to look for the highest, and mostly enough.
        let bits = blocks.iter().fold(0, |bits, block| bits | block) as usize;
        let all = self.shapes.len();
        assert!(bits < all || blocks.iter().all(|&block| (block as usize) < all), "the block is in the table");
        if started(&mut self.streams, thread).ids_left() < blocks.len() {
            self.flush_stream(thread.index())?;
        }
        self.instructions += u64::from(instructions);
        let stream = started(&mut self.streams, thread);
        stream.push_run(blocks, instructions, sp_change);
        self.buffered += blocks.len() * 4;
        if stream.has_many() || self.buffered > MAX_BUFFERED {
            return self.relieve(thread);
        }
        Ok(())
    }

    /// One execution of a block's first `executed` instructions (1 to its length minus 1), as in
    /// [`TraceWriter::block`].
    ///
    /// # Panics
    /// Like [`TraceWriter::block`], and when `executed` is out of its range.
    pub fn partial(
        &mut self,
        thread: ThreadId,
        block: BlockId,
        executed: u32,
        sps: &[u64],
        values: &[u64],
    ) -> Result<()> {
        let shape: Shape = *self.shapes.get(block).expect("the block is in the table");
        assert!(
            0 < executed && executed < shape.instructions,
            "a part of a block has 1 to its length minus 1 instructions"
        );
        let (sp_count, value_count) = self.shapes.partial(&shape, executed);
        assert_lengths([sp_count, value_count], sps.len(), values.len());
        self.instructions += u64::from(executed);
        let mut recorded = sps.iter();
        let mut sp = started(&mut self.streams, thread).sp();
        for instruction in &self.blocks()[block].instructions[..executed as usize] {
            sp = match instruction.sp {
                SpEffect::Add(change) => sp.wrapping_add(i64::from(change) as u64),
                SpEffect::Recorded => *recorded.next().expect("the length was checked"),
            };
        }
        let stream = started(&mut self.streams, thread);
        let before = stream.held();
        stream.push_partial(block, executed, sp, sps, values);
        self.buffered += stream.held() - before;
        if stream.is_full() || self.buffered > MAX_BUFFERED {
            return self.relieve(thread);
        }
        Ok(())
    }

    /// An event of a thread. The first one is [`Event::ThreadStart`].
    ///
    /// # Panics
    /// When the thread has not started, or starts twice, or the event is [`Event::Partial`], for which there is
    /// [`TraceWriter::partial`], or names a module that was not added.
    #[inline]
    pub fn event(&mut self, thread: ThreadId, event: Event) -> Result<()> {
        match event {
            Event::ThreadStart { .. } => self.start(thread)?,
            Event::Partial { .. } => panic!("parts of blocks are written by `partial`"),
            Event::ModuleLoaded(module) | Event::ModuleUnloaded(module) => {
                assert!(module.0 < self.modules, "the module is in the table");
            }
            _ => {}
        }
        let stream = started(&mut self.streams, thread);
        self.buffered += stream.push_event(&event);
        if stream.is_full() || self.buffered > MAX_BUFFERED {
            return self.relieve(thread);
        }
        Ok(())
    }

    fn start(&mut self, thread: ThreadId) -> Result<()> {
        if thread.0 >= MAX_THREADS {
            let what = format!("it can hold {MAX_THREADS} threads");
            return Err(Error::Limit { path: self.name.clone(), what });
        }
        if self.streams.len() <= thread.index() {
            self.streams.resize_with(thread.index() + 1, Stream::default);
        }
        let stream = &mut self.streams[thread.index()];
        assert!(!stream.started, "a thread starts once");
        stream.started = true;
        Ok(())
    }

    /// How many instructions the items so far run, over all threads.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// How many bytes have been written so far; what waits in buffers is not counted.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// About how many bytes the trace has: those written, and what waits in buffers as if it shrank like what was
    /// written before.
    #[must_use]
    pub fn bytes_expected(&self) -> u64 {
        let waiting = self.buffered as f64;
        let shrinks = if self.written_raw == 0 { 1.0 } else { self.written_streams as f64 / self.written_raw as f64 };
        self.written + (waiting * shrinks.min(1.0)) as u64
    }

    /// Makes chunks of all that waits in buffers and flushes the output.
    pub fn flush(&mut self) -> Result<()> {
        self.flush_table()?;
        for thread in 0..self.streams.len() {
            if thread >= self.begun || !self.streams[thread].buffer.is_empty() {
                self.flush_stream(thread)?;
            }
        }
        let flushed = self.out.flush();
        self.note(Action::Write, flushed)
    }

    /// Writes what waits in buffers, the end of the run and the index, and gives the output back.
    pub fn finish(mut self, finish: &Finish) -> Result<W> {
        self.flush()?;
        let json = serde_json::to_vec(finish).expect("strings and numbers can be written as JSON");
        self.check_len("the reason why the recording stopped", json.len())?;
        self.global(ChunkKind::Finish, &json)?;
        self.write_index()?;
        self.write(&encode_footer(self.index.previous))?;
        let flushed = self.out.flush();
        self.note(Action::Write, flushed)?;
        Ok(self.out)
    }

    /// Makes chunks where a buffer is full.
    #[cold]
    fn relieve(&mut self, thread: ThreadId) -> Result<()> {
        let buffer = &self.streams[thread.index()].buffer;
        if buffer.is_full() || buffer.has_many() {
            self.flush_stream(thread.index())?;
        }
        if self.buffered > MAX_BUFFERED {
            // Half of the memory at once: else, with many threads, each item would start a search for the largest
            // buffer.
            let mut by_size: Vec<usize> = (0..self.streams.len()).collect();
            by_size.sort_by_key(|&thread| std::cmp::Reverse(self.streams[thread].buffer.held()));
            for thread in by_size {
                if self.buffered <= MAX_BUFFERED / 2 || self.streams[thread].buffer.is_empty() {
                    break;
                }
                self.flush_stream(thread)?;
            }
        }
        Ok(())
    }

    fn flush_stream(&mut self, thread: usize) -> Result<()> {
        self.flush_table()?;
        while self.begun < thread {
            self.begun += 1;
            self.write_stream(self.begun - 1)?;
        }
        self.begun = self.begun.max(thread + 1);
        self.write_stream(thread)
    }

    fn write_stream(&mut self, thread: usize) -> Result<()> {
        let stream = &mut self.streams[thread].buffer;
        let held = stream.held();
        self.buffered -= held;
        let before = self.written;
        let counts = stream.take(&mut self.plans, &mut self.numbering, &mut self.spare);
        let payload = std::mem::take(&mut self.spare.payload);
        let values_at = self.spare.values_at;
        let written = self.chunk(|encoder| encoder.stream(ThreadId(thread as u32), counts, &payload, values_at));
        self.spare.payload = payload;
        written?;
        self.written_raw += held as u64;
        self.written_streams += self.written - before;
        Ok(())
    }

    /// Makes a table chunk where the next entry, of about `len` bytes, would make it too large.
    fn make_room(&mut self, len: usize) -> Result<()> {
        if self.table.len() + len > TARGET_RAW { self.flush_table() } else { Ok(()) }
    }

    fn flush_table(&mut self) -> Result<()> {
        if self.table.is_empty() {
            return Ok(());
        }
        let payload = self.table.take();
        self.global(ChunkKind::Table, &payload)
    }

    fn check_len(&self, entry: &str, len: usize) -> Result<()> {
        if len <= MAX_ENTRY {
            return Ok(());
        }
        let what = format!("{entry} has {len} bytes, and the most is {MAX_ENTRY}");
        Err(Error::Limit { path: self.name.clone(), what })
    }

    fn global(&mut self, kind: ChunkKind, payload: &[u8]) -> Result<()> {
        self.chunk(|encoder| encoder.global(kind, payload))
    }

    fn write_index(&mut self) -> Result<()> {
        let mut payload = self.index.previous.to_le_bytes().to_vec();
        payload.append(&mut self.index.entries);
        let offset = self.written;
        self.global(ChunkKind::Index, &payload)?;
        self.index.entries.clear();
        self.index.previous = offset;
        Ok(())
    }

    fn chunk(&mut self, encode: impl FnOnce(&mut ChunkEncoder) -> io::Result<(&[u8], ChunkHeader)>) -> Result<()> {
        self.check_failed()?;
        let (bytes, header) = match encode(&mut self.encoder) {
            Ok(chunk) => chunk,
            Err(e) => return note(&mut self.failed, &self.name, Action::Compress, Err(e)),
        };
        let written = self.out.write_all(bytes);
        self.written += bytes.len() as u64;
        note(&mut self.failed, &self.name, Action::Write, written)?;
        self.index.entries.extend(header.encode());
        if header.kind != ChunkKind::Index as u8
            && self.index.entries.len() == MAX_INDEX_ENTRIES * ChunkHeader::ENTRY_LEN
        {
            return self.write_index();
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_failed()?;
        let written = self.out.write_all(bytes);
        self.written += bytes.len() as u64;
        self.note(Action::Write, written)
    }

    fn check_failed(&self) -> Result<()> {
        self.failed.as_ref().map_or(Ok(()), |failure| Err(failure.error(&self.name)))
    }

    fn note(&mut self, action: Action, done: io::Result<()>) -> Result<()> {
        note(&mut self.failed, &self.name, action, done)
    }
}

#[inline]
fn started(streams: &mut [Stream], thread: ThreadId) -> &mut StreamBuffer {
    let stream = streams.get_mut(thread.index()).filter(|stream| stream.started);
    &mut stream.expect("a thread's first item is its start").buffer
}

#[inline]
fn assert_lengths(expected: [u32; 2], sps: usize, values: usize) {
    assert!(
        sps == expected[0] as usize && values == expected[1] as usize,
        "the block takes {} stack pointers and {} values of addresses, but {} and {} are given",
        expected[0],
        expected[1],
        sps,
        values
    );
}

/// The most bytes that a module takes in the table.
fn module_len(module: &Module) -> usize {
    let id = module.build_id.as_ref().map_or(0, Vec::len);
    module.path.len() + id + module.mappings.len() * 31 + 64
}
