//! Opens a trace and answers what it holds. [`ThreadStream`] reads the items themselves.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use crate::codec::shape::Shapes;
use crate::codec::table_codec;
use crate::file::chunk::ChunkDecoder;
use crate::file::contents::{self, Place};
use crate::file::source::Source;
use crate::file::stop::Stop;
use crate::layout::{ChunkKind, HEADER_LEN, MAGIC, Version};
use crate::{
    Action, Architecture, BlockTable, Error, Finish, Meta, Module, Pc, Result, Symbol, ThreadId, ThreadStream,
    read_text,
};

/// A trace. It can be shared between threads, and copies of it are cheap.
///
/// The block table, the modules and the symbols are in memory: for each byte of the file at most some 400 bytes, for
/// real traces a few. Streams are read chunk by chunk.
#[derive(Clone)]
pub struct Trace(pub(crate) Arc<Inner>, Stop);

/// What a trace holds of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSummary {
    /// The thread.
    pub id: ThreadId,
    /// How many instructions it ran.
    pub instructions: u64,
    /// How many whole blocks it ran.
    pub blocks: u64,
    /// How many events it has; each execution of a part of a block counts as one.
    pub events: u64,
    /// How many chunks it has.
    pub chunks: u64,
    /// How many bytes its chunks take in the file.
    pub bytes: u64,
}

pub(crate) struct Inner {
    pub(crate) source: Source,
    pub(crate) version: Version,
    pub(crate) shapes: Shapes,
    pub(crate) modules: Vec<Module>,
    /// The chunks of every thread.
    pub(crate) streams: Vec<Vec<Place>>,
    /// Where the last chunk ends.
    pub(crate) end: u64,
    meta: Meta,
    finish: Option<Finish>,
    recovered: Option<String>,
    pub(crate) blocks: BlockTable,
    symbols: Vec<Symbol>,
    /// For each symbol the largest end (pc + size) of it and those before it.
    reach: Vec<u64>,
    threads: Vec<ThreadSummary>,
    instructions: u64,
}

impl Trace {
    /// Opens a trace: a binary one or a text one, gzipped or not, told apart by content.
    ///
    /// A text trace and a gzipped one are held in memory; so is what comes from a pipe.
    pub fn open(path: &Path) -> Result<Trace> {
        let name = path.to_owned();
        let io = |action, source| Error::Io { path: name.clone(), action, source };
        let file = File::open(path).map_err(|e| io(Action::Open, e))?;
        let metadata = file.metadata().map_err(|e| io(Action::Open, e))?;
        let len = metadata.len();
        let mut input = BufReader::new(file);
        if metadata.is_file() {
            let start = input.fill_buf().map_err(|e| io(Action::Read, e))?;
            if is_trace(start) {
                return Trace::load(Source::file(name, input.into_inner(), len));
            }
        }
        convert(input, name, len)
    }

    /// A trace in memory, of any form that [`Trace::open`] takes. `name` stands for the path in error messages.
    pub fn from_bytes(bytes: Vec<u8>, name: impl Into<PathBuf>) -> Result<Trace> {
        if is_trace(&bytes) {
            return Trace::load(Source::memory(name.into(), bytes));
        }
        convert(&bytes[..], name.into(), bytes.len() as u64)
    }

    fn load(source: Source) -> Result<Trace> {
        let version = contents::check_header(&source)?;
        let contents = contents::contents(&source)?;
        let mut inner = Inner {
            source,
            version,
            shapes: Shapes::default(),
            modules: Vec::new(),
            streams: Vec::new(),
            end: contents.end,
            meta: Meta::default(),
            finish: None,
            recovered: contents.recovered,
            blocks: BlockTable::default(),
            symbols: Vec::new(),
            reach: Vec::new(),
            threads: Vec::new(),
            instructions: 0,
        };
        inner.load_chunks(&contents.chunks)?;
        if version == Version::V2 && inner.shapes.have_rows() {
            return Err(Error::Version {
                path: inner.source.path().to_owned(),
                found: version as u32,
                supported: Version::NEWEST as u32,
                way_out: "version 2 writes memory addresses in another way; record the program again with this \
                     lockstep",
            });
        }
        inner.sort_symbols();
        Ok(Trace(Arc::new(inner), Stop::default()))
    }

    /// What is known about the run before it starts.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// What is known about the run at its end; none if the writer died before.
    #[must_use]
    pub fn finish(&self) -> Option<&Finish> {
        self.0.finish.as_ref()
    }

    /// When the index was missing or bad and the chunks were found by going through the file: a sentence that says so,
    /// and what was lost.
    #[must_use]
    pub fn recovered(&self) -> Option<&str> {
        self.0.recovered.as_deref()
    }

    /// The block table.
    #[must_use]
    pub fn blocks(&self) -> &BlockTable {
        &self.0.blocks
    }

    /// The modules, by number.
    #[must_use]
    pub fn modules(&self) -> &[Module] {
        &self.0.modules
    }

    /// The symbols, by address.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol] {
        &self.0.symbols
    }

    /// The module in which the address lies; the one loaded last, if there were several.
    #[must_use]
    pub fn module_of(&self, pc: Pc) -> Option<&Module> {
        self.0.modules.iter().rev().find(|module| module.contains(pc))
    }

    /// The symbol in which the address lies: of those that contain it the one that starts last. A symbol of unknown
    /// size reaches to the next one or to the end of its module.
    #[must_use]
    pub fn symbol_of(&self, pc: Pc) -> Option<&Symbol> {
        let symbols = &self.0.symbols;
        let below = symbols.partition_point(|symbol| symbol.pc <= pc);
        let nearest = symbols[..below].last()?;
        if nearest.size == 0 {
            let module = self.module_of(pc).map(std::ptr::from_ref);
            if nearest.pc == pc || module == self.module_of(nearest.pc).map(std::ptr::from_ref) {
                return Some(nearest);
            }
        }
        let reaches = (0..below).rev().take_while(|&i| self.0.reach[i] > pc.0);
        reaches.map(|i| &symbols[i]).find(|symbol| pc.0 - symbol.pc.0 < symbol.size)
    }

    /// The threads, by number: the entry at `i` is that of thread `i`.
    #[must_use]
    pub fn threads(&self) -> &[ThreadSummary] {
        &self.0.threads
    }

    /// How many instructions all threads ran together.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.0.instructions
    }

    /// The items of a thread, from its start; none if there is no such thread. Streams are independent of each other;
    /// each takes the memory of one chunk, a megabyte or two and 32 MiB at most.
    #[must_use]
    pub fn stream(&self, thread: ThreadId) -> ThreadStream {
        ThreadStream::new(Arc::clone(&self.0), self.1.clone(), thread)
    }

    /// The same trace, for work that this handle ends.
    #[must_use]
    pub fn with_stop(&self, stop: &Stop) -> Trace {
        Trace(Arc::clone(&self.0), stop.clone())
    }

    /// The handle that ends work on this trace; by default nobody asks it to.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        &self.1
    }

    /// The file's path, or the name given for it.
    #[must_use]
    pub fn name(&self) -> &Path {
        self.0.source.path()
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = self.threads().len();
        f.debug_struct("Trace").field("name", &self.name()).field("threads", &threads).finish_non_exhaustive()
    }
}

impl Inner {
    fn load_chunks(&mut self, chunks: &[Place]) -> Result<()> {
        let mut decoder = ChunkDecoder::new();
        let mut has_meta = false;
        for place in chunks {
            match ChunkKind::from_code(place.header.kind) {
                Some(ChunkKind::Stream) => self.add_stream(place)?,
                Some(ChunkKind::Meta) => {
                    self.meta = self.json(&mut decoder, place)?;
                    if let Architecture::Other(found) = &self.meta.architecture {
                        let (path, found) = (self.source.path().to_owned(), found.clone());
                        return Err(Error::Architecture { path, found });
                    }
                    has_meta = true;
                }
                Some(ChunkKind::Finish) => self.finish = Some(self.json(&mut decoder, place)?),
                Some(ChunkKind::Table) => self.add_table(&mut decoder, place)?,
                // Index chunks are not listed, and unknown kinds may be skipped: their headers were checked.
                Some(ChunkKind::Index) | None => {}
            }
        }
        if !has_meta {
            let why = self.recovered.as_ref().map_or(String::new(), |why| format!(": {why}"));
            return Err(self.source.damaged(HEADER_LEN as u64, format!("it has nothing to read{why}")));
        }
        Ok(())
    }

    fn add_stream(&mut self, place: &Place) -> Result<()> {
        let header = place.header;
        let thread = header.thread as usize;
        if thread > self.threads.len() {
            let fault = format!("a chunk of thread {thread} stands before the first of thread {}", self.threads.len());
            return Err(self.source.damaged(place.offset, fault));
        }
        if thread == self.threads.len() {
            let id = ThreadId(header.thread);
            self.threads.push(ThreadSummary { id, instructions: 0, blocks: 0, events: 0, chunks: 0, bytes: 0 });
            self.streams.push(Vec::new());
        }
        let summary = &mut self.threads[thread];
        summary.instructions += u64::from(header.instructions);
        summary.blocks += u64::from(header.blocks);
        summary.events += u64::from(header.events);
        summary.chunks += 1;
        summary.bytes += header.chunk_len();
        self.instructions += u64::from(header.instructions);
        self.streams[thread].push(*place);
        Ok(())
    }

    fn json<T: serde::de::DeserializeOwned>(&self, decoder: &mut ChunkDecoder, place: &Place) -> Result<T> {
        decoder.read(&self.source, place.offset, self.end)?;
        serde_json::from_slice(decoder.payload())
            .map_err(|e| self.source.damaged(place.offset, format!("the chunk's JSON cannot be read: {e}")))
    }

    fn add_table(&mut self, decoder: &mut ChunkDecoder, place: &Place) -> Result<()> {
        decoder.read(&self.source, place.offset, self.end)?;
        let damaged = |fault| self.source.damaged(place.offset, fault);
        let table = table_codec::table(decoder.payload()).map_err(damaged)?;
        self.modules.extend(table.modules);
        self.symbols.extend(table.symbols);
        for block in table.blocks {
            self.shapes.push(&block).map_err(damaged)?;
            self.blocks.push(block);
        }
        Ok(())
    }

    fn sort_symbols(&mut self) {
        self.symbols.sort_by(|a, b| (a.pc, a.size, &a.name).cmp(&(b.pc, b.size, &b.name)));
        let mut reach = 0;
        self.reach = (self.symbols.iter())
            .map(|symbol| {
                reach = symbol.pc.0.saturating_add(symbol.size).max(reach);
                reach
            })
            .collect();
    }
}

/// Whether a file that starts so is a binary trace, perhaps cut off inside the magic.
fn is_trace(start: &[u8]) -> bool {
    let len = start.len().min(MAGIC.len());
    len > 0 && start[..len] == MAGIC[..len]
}

/// The most that a gzipped binary trace may grow when it is unpacked: its chunks are compressed already.
const GZIP_RATIO: u64 = 32;

/// Reads what is not a plain binary file: `len` bytes, or 0 where that is not known.
fn convert(mut input: impl BufRead, name: PathBuf, len: u64) -> Result<Trace> {
    let io = |e| Error::Io { path: name.clone(), action: Action::Read, source: e };
    let start = input.fill_buf().map_err(io)?;
    if start.starts_with(&[0x1f, 0x8b]) {
        let mut inside = BufReader::new(MultiGzDecoder::new(input));
        let most = len.max(1 << 20).saturating_mul(GZIP_RATIO);
        return from_plain(&mut inside, name, most);
    }
    from_plain(&mut input, name, u64::MAX)
}

/// Reads a trace of at most `most` bytes, if it is a binary one, or of any size, if it is text.
fn from_plain(input: &mut impl BufRead, name: PathBuf, most: u64) -> Result<Trace> {
    let io = |e| Error::Io { path: name.clone(), action: Action::Read, source: e };
    let start = input.fill_buf().map_err(io)?;
    if is_trace(start) {
        let mut bytes = Vec::new();
        input.take(most).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 == most {
            let reason = format!("it is gzipped and unpacks to more than {most} bytes; unpack it with gunzip first");
            return Err(Error::Foreign { path: name, reason });
        }
        return Trace::load(Source::memory(name, bytes));
    }
    if let Some(what) = foreign(start) {
        return Err(Error::Foreign { path: name, reason: what.to_owned() });
    }
    let bytes = read_text(input, &name)?;
    Trace::load(Source::memory(name, bytes))
}

/// What a file is that starts so, if it is neither a trace nor text.
fn foreign(start: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 5] = [
        (b"\x7fELF", "it is a program; record it first: trace PROGRAM"),
        (b"\x28\xb5\x2f\xfd", "it is a zstd file; unpack it with unzstd first"),
        (b"\xfd7zXZ", "it is an xz file; unpack it with unxz first"),
        (b"BZh", "it is a bzip2 file; unpack it with bunzip2 first"),
        (b"PK\x03\x04", "it is a zip file; unpack it with unzip first"),
    ];
    if start.is_empty() {
        return Some("it is empty; record a program first: trace PROGRAM");
    }
    if let Some((_, what)) = known.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Some(what);
    }
    let line = start.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or(b"#");
    if line.starts_with(b"#") || line.starts_with(b"thread") {
        return None;
    }
    Some(
        "it starts neither as a binary trace nor as a text one (a comment, or `thread 0`); record a program: trace PROGRAM",
    )
}
