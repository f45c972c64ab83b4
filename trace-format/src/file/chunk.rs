//! One chunk in and out: compression, checksum, and the checks before memory is set aside.

use std::io;

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use crate::codec::stream_codec::Counts;
use crate::file::source::Source;
use crate::layout::{CHUNK_HEADER_LEN, ChunkHeader, ChunkKind, FLAG_COMPRESSED, MAX_RATIO, NO_THREAD};
use crate::{Action, Error, Result, ThreadId};

/// The level of zstd for all chunks but those of [`VALUES_COMPRESSION_LEVEL`].
pub const COMPRESSION_LEVEL: i32 = 3;
/// The level for values of memory addresses, where they are more than a third of a chunk: whatever does not repeat in
/// these is mostly random. The radix sort of `workloads` makes 46 MB of them for 2 million keys; levels 3, 1 and -1
/// give 37.3, 37.8 and 41.9 MB, in 340, 120 and 18 ms.
pub const VALUES_COMPRESSION_LEVEL: i32 = -1;

/// Payloads of [`COMPRESSION_LEVEL`] up to this length are short: setting up the tables that zstd takes for them, of
/// half a MiB, costs more than the compression. With tables of 2^[`SHORT_TABLES`] entries, the block table of `true`
/// (158 kB) becomes 1% longer.
const SHORT: usize = 256 << 10;
/// The logarithm of the entries of zstd's tables for short payloads.
const SHORT_TABLES: u32 = 14;

/// Makes chunks.
pub struct ChunkEncoder {
    compressor: Compressor<'static>,
    level: i32,
    /// Whether its tables are those for short payloads.
    short: bool,
    frame: Vec<u8>,
    compressed: Vec<u8>,
    chunk: Vec<u8>,
}

impl ChunkEncoder {
    /// An encoder, unless zstd has no memory.
    pub fn new() -> io::Result<ChunkEncoder> {
        let compressor = Compressor::new(COMPRESSION_LEVEL)?;
        let (frame, compressed, chunk) = (Vec::new(), Vec::new(), Vec::new());
        Ok(ChunkEncoder { compressor, level: COMPRESSION_LEVEL, short: false, frame, compressed, chunk })
    }

    /// The bytes of a stream chunk, and its header. From byte `values_at` on, the payload has values of memory
    /// addresses: they are a frame of their own.
    pub fn stream(
        &mut self,
        thread: ThreadId,
        counts: Counts,
        payload: &[u8],
        values_at: usize,
    ) -> io::Result<(&[u8], ChunkHeader)> {
        let (others, values) = payload.split_at(values_at);
        self.compressed.clear();
        let is_much = values.len() > payload.len() / 3;
        let level = if is_much { VALUES_COMPRESSION_LEVEL } else { COMPRESSION_LEVEL };
        for (part, level) in [(others, COMPRESSION_LEVEL), (values, level)] {
            if !part.is_empty() {
                self.compress(part, level)?;
            }
        }
        Ok(self.chunk(ChunkKind::Stream, thread.0, counts, payload))
    }

    /// The bytes of a chunk that belongs to no thread, and its header.
    pub fn global(&mut self, kind: ChunkKind, payload: &[u8]) -> io::Result<(&[u8], ChunkHeader)> {
        self.compressed.clear();
        self.compress(payload, COMPRESSION_LEVEL)?;
        Ok(self.chunk(kind, NO_THREAD, Counts::default(), payload))
    }

    /// Appends a frame to what is compressed.
    fn compress(&mut self, part: &[u8], level: i32) -> io::Result<()> {
        if self.level != level {
            self.compressor.set_compression_level(level)?;
            self.level = level;
        }
        let short = level == COMPRESSION_LEVEL && part.len() <= SHORT;
        if self.short != short {
            // Zero: as the level says.
            let log = if short { SHORT_TABLES } else { 0 };
            self.compressor.set_parameter(CParameter::HashLog(log))?;
            self.compressor.set_parameter(CParameter::ChainLog(log))?;
            self.short = short;
        }
        self.frame.clear();
        self.frame.reserve(zstd::zstd_safe::compress_bound(part.len()));
        self.compressor.compress_to_buffer(part, &mut self.frame)?;
        self.compressed.extend_from_slice(&self.frame);
        Ok(())
    }

    /// The chunk of a payload that is compressed, where that pays.
    fn chunk(&mut self, kind: ChunkKind, thread: u32, counts: Counts, payload: &[u8]) -> (&[u8], ChunkHeader) {
        let gain = self.compressed.len() < payload.len();
        let compress = gain && (kind == ChunkKind::Stream || payload.len() <= self.compressed.len() * MAX_RATIO);
        let (flags, stored) = if compress { (FLAG_COMPRESSED, &self.compressed[..]) } else { (0, payload) };
        let header = ChunkHeader {
            kind: kind as u8,
            flags,
            thread,
            raw: payload.len() as u32,
            stored: stored.len() as u32,
            blocks: counts.blocks,
            events: counts.events,
            instructions: counts.instructions,
        };
        let head = header.encode();
        self.chunk.clear();
        self.chunk.extend(head);
        self.chunk.extend(checksum(&head, stored).to_le_bytes());
        self.chunk.extend_from_slice(stored);
        (&self.chunk, header)
    }
}

fn checksum(head: &[u8], stored: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(stored);
    hasher.finalize()
}

/// Reads chunks, one at a time, into memory that it keeps.
pub struct ChunkDecoder {
    decompressor: Option<Decompressor<'static>>,
    stored: Vec<u8>,
    raw: Vec<u8>,
}

impl ChunkDecoder {
    /// A decoder that holds no memory yet.
    pub fn new() -> ChunkDecoder {
        ChunkDecoder { decompressor: None, stored: Vec::new(), raw: Vec::new() }
    }

    /// Reads the chunk at `offset`, which must end at `end` of the file or before, and checks its header and checksum.
    /// Its payload is not decompressed.
    pub fn fetch(&mut self, source: &Source, offset: u64, end: u64) -> Result<ChunkHeader> {
        let left = end.saturating_sub(offset);
        if left < CHUNK_HEADER_LEN as u64 {
            return Err(
                source.damaged(offset, format!("the file ends inside a chunk's header, {left} bytes after its start"))
            );
        }
        let mut head = [0; CHUNK_HEADER_LEN];
        source.read_at(offset, &mut head)?;
        let (entry, crc) = head.split_at(ChunkHeader::ENTRY_LEN);
        let entry: &[u8; ChunkHeader::ENTRY_LEN] = entry.try_into().expect("split at this length");
        let header = ChunkHeader::decode(entry).map_err(|fault| source.damaged(offset, fault))?;
        if header.chunk_len() > left {
            let fault = format!("the file ends inside a chunk: it has {} bytes, {left} are left", header.chunk_len());
            return Err(source.damaged(offset, fault));
        }
        self.stored.resize(header.stored as usize, 0);
        source.read_at(offset + CHUNK_HEADER_LEN as u64, &mut self.stored)?;
        if checksum(entry, &self.stored).to_le_bytes() != crc {
            return Err(source.damaged(offset, "the chunk's checksum does not match its bytes".into()));
        }
        Ok(header)
    }

    /// Reads the chunk at `offset` like [`ChunkDecoder::fetch`] and decompresses its payload.
    pub fn read(&mut self, source: &Source, offset: u64, end: u64) -> Result<ChunkHeader> {
        let header = self.fetch(source, offset, end)?;
        if header.flags & FLAG_COMPRESSED == 0 {
            std::mem::swap(&mut self.stored, &mut self.raw);
            return Ok(header);
        }
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().map_err(|e| source.io(Action::Decompress, e))?),
        };
        self.raw.clear();
        self.raw.reserve_exact(header.raw as usize);
        // The buffer may have room for more than `raw` bytes: the length is checked afterwards.
        let len = decompressor
            .decompress_to_buffer(&self.stored, &mut self.raw)
            .map_err(|e| source.damaged(offset, format!("the chunk cannot be decompressed: {e}")))?;
        if len != header.raw as usize {
            return Err(source.damaged(offset, format!("the chunk has {len} bytes decompressed, not {}", header.raw)));
        }
        Ok(header)
    }

    /// The payload of the chunk read last.
    pub fn payload(&self) -> &[u8] {
        &self.raw
    }
}

impl Source {
    /// An error for a fault of the file at `offset`.
    pub fn damaged(&self, offset: u64, fault: String) -> Error {
        Error::Damaged { path: self.path().to_owned(), offset, fault }
    }

    /// An error of the system.
    pub fn io(&self, action: Action, source: io::Error) -> Error {
        Error::Io { path: self.path().to_owned(), action, source }
    }
}
