//! The file's outer layout: header, chunks, footer, and the limits that hold for each.
//!
//! ```text
//! header   magic 8 | version u32 | flags u32                                    16 bytes
//! chunk    mark 2 | kind u8 | flags u8 | thread u32 | raw u32 | stored u32 |
//!          blocks u32 | events u32 | instructions u32 | crc32 u32               32 bytes, then the payload
//! ...
//! footer   offset of the last index chunk u64 | crc32 u32 | magic 8             20 bytes
//! ```
//! All integers are little-endian. `docs/trace-format.md` has the full description.

use crate::vocabulary::block::Block;

/// The first bytes of a trace: a byte that is not ASCII (no text file starts so), the name, and a line feed
/// (changed by whatever rewrites line ends).
pub const MAGIC: [u8; 8] = *b"\x89LSTEP\x1a\n";
/// The last bytes of a finished trace.
pub const FOOTER_MAGIC: [u8; 8] = *b"\x89LSEND\x1a\n";
/// The first bytes of every chunk.
pub const CHUNK_MARK: [u8; 2] = *b"CK";

/// The size of the file's header in bytes.
pub const HEADER_LEN: usize = 16;
/// The size of a chunk's header in bytes.
pub const CHUNK_HEADER_LEN: usize = 32;
/// The size of the footer in bytes.
pub const FOOTER_LEN: usize = 20;

/// The most bytes a chunk may have once decompressed. The writer closes chunks at [`TARGET_RAW`]; the largest single
/// item on top of that is a block of 4096 instructions with 255 addresses and a stack pointer each, 10 bytes apiece.
pub const MAX_RAW: usize = 16 << 20;
/// The writer closes a chunk when it has this many bytes before compression.
pub const TARGET_RAW: usize = 1 << 20;
const _: () = assert!(TARGET_RAW + Block::MAX_INSTRUCTIONS * 256 * 10 + 4096 < MAX_RAW);
/// The most items (blocks and events) in one chunk.
pub const MAX_ITEMS: usize = 1 << 16;
/// The most threads: thread numbers are below it.
pub const MAX_THREADS: u32 = 1 << 20;
/// Chunks that stay in memory once read (all but streams) may not shrink more than this under compression, so that
/// the memory of a reader follows from the size of the file. The writer stores them as they are where they would.
/// (Real block tables shrink two- to fourfold.)
pub const MAX_RATIO: usize = 16;
/// The most entries of one index chunk.
pub const MAX_INDEX_ENTRIES: usize = 1 << 16;
/// The code in the column of block numbers that says "the next event stands here".
pub const ESCAPE: u32 = u32::MAX;
/// The thread number in the header of a chunk that belongs to no thread.
pub const NO_THREAD: u32 = u32::MAX;

/// The versions of the format; each says what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Version {
    /// The first.
    V1 = 1,
    /// Memory addresses may be sums of fewer values: the bit [`SUMS`] of an instruction's kind.
    V2 = 2,
    /// Values of such sums are predicted where possible: rows.
    V3 = 3,
    /// The items of a stream chunk may be a byte each ([`NUMBERED`](crate::NUMBERED)), and objects of events are
    /// differences.
    V4 = 4,
}

impl Version {
    /// All of them, in order.
    pub const ALL: [Version; 4] = [Version::V1, Version::V2, Version::V3, Version::V4];

    /// The version that this program writes, the newest that it reads.
    pub const NEWEST: Version = Version::ALL[Version::ALL.len() - 1];

    /// What events say that newer versions have and this one has not, for those who convert a trace to it.
    #[must_use]
    pub fn lacks(self) -> &'static str {
        match self {
            Version::V1 | Version::V2 | Version::V3 => {
                "which iterations of a loop, which task or which team a thread was given"
            }
            Version::V4 => "nothing",
        }
    }

    /// The version with this number, if this program knows it.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Version> {
        Version::ALL.into_iter().find(|&version| version as u32 == number)
    }
}

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChunkKind {
    /// What is known about the run before it starts: a JSON object. A later one replaces an earlier one.
    Meta = 1,
    /// Modules, symbols and blocks, in addition to those of the table chunks before it.
    Table = 2,
    /// Items of one thread.
    Stream = 3,
    /// What is known about the run at its end: a JSON object.
    Finish = 4,
    /// Where the chunks since the index chunk before it are.
    Index = 5,
}

impl ChunkKind {
    /// Every kind, in the order of its code in the file.
    pub const ALL: [ChunkKind; 5] =
        [ChunkKind::Meta, ChunkKind::Table, ChunkKind::Stream, ChunkKind::Finish, ChunkKind::Index];

    /// The kind with this code in the file, if this version has one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<ChunkKind> {
        ChunkKind::ALL.into_iter().find(|&kind| kind as u8 == code)
    }

    /// Its name in messages and in docs/trace-format.md.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ChunkKind::Meta => "meta",
            ChunkKind::Table => "table",
            ChunkKind::Stream => "stream",
            ChunkKind::Finish => "finish",
            ChunkKind::Index => "index",
        }
    }
}

/// The size of a stream chunk's payload before its columns, in bytes.
pub const STREAM_HEAD_LEN: usize = 48;
/// The bit of an instruction's kind in a table chunk that says that the stream holds the stack pointer after it.
pub const RECORDED_SP: u8 = 0x80;
/// The bit of an instruction's kind in a table chunk that says that each of its memory addresses is given as a sum.
pub const SUMS: u8 = 0x40;

/// The chunk's payload is a zstd frame; without it the payload stands as it is.
pub const FLAG_COMPRESSED: u8 = 1;
/// A reader that does not know the chunk's kind may skip it.
pub const FLAG_SKIPPABLE: u8 = 2;

/// The header of a chunk, without its mark and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// The code of its kind: see [`ChunkKind`].
    pub kind: u8,
    /// [`FLAG_COMPRESSED`], [`FLAG_SKIPPABLE`].
    pub flags: u8,
    /// The thread whose items it holds, or [`NO_THREAD`].
    pub thread: u32,
    /// The size of its payload once decompressed, in bytes.
    pub raw: u32,
    /// The size of its payload in the file, in bytes.
    pub stored: u32,
    /// How many whole blocks its items run.
    pub blocks: u32,
    /// How many of its items are events, partial blocks included.
    pub events: u32,
    /// How many instructions its items run, those of partial blocks included.
    pub instructions: u32,
}

impl ChunkHeader {
    /// The size of the header's part that the index repeats: all but the checksum.
    pub const ENTRY_LEN: usize = CHUNK_HEADER_LEN - 4;

    /// The header's bytes without the checksum.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::ENTRY_LEN] {
        let mut bytes = [0; Self::ENTRY_LEN];
        bytes[..2].copy_from_slice(&CHUNK_MARK);
        bytes[2] = self.kind;
        bytes[3] = self.flags;
        let words = [self.thread, self.raw, self.stored, self.blocks, self.events, self.instructions];
        for (place, word) in bytes[4..28].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Reads a header and checks all that can be checked without its payload; the fault otherwise.
    pub fn decode(bytes: &[u8; Self::ENTRY_LEN]) -> Result<ChunkHeader, String> {
        if bytes[..2] != CHUNK_MARK {
            return Err("no chunk starts here".into());
        }
        let word = |i: usize| u32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
        let header = ChunkHeader {
            kind: bytes[2],
            flags: bytes[3],
            thread: word(4),
            raw: word(8),
            stored: word(12),
            blocks: word(16),
            events: word(20),
            instructions: word(24),
        };
        header.check()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), String> {
        let ChunkHeader { kind, flags, thread, raw, stored, blocks, events, instructions } = *self;
        if flags & !(FLAG_COMPRESSED | FLAG_SKIPPABLE) != 0 {
            return Err(format!("the chunk has flags {flags:#x}, unknown to this version"));
        }
        if raw as usize > MAX_RAW || stored as usize > MAX_RAW {
            return Err(format!("a chunk of {raw} bytes ({stored} stored) is over the limit of {MAX_RAW}"));
        }
        if flags & FLAG_COMPRESSED == 0 && raw != stored {
            return Err(format!("a chunk stored as it is has {raw} bytes, but {stored} in the file"));
        }
        match ChunkKind::from_code(kind) {
            Some(ChunkKind::Stream) => {
                if thread >= MAX_THREADS {
                    return Err(format!("thread number {thread} is over the limit of {}", MAX_THREADS - 1));
                }
                if u64::from(blocks) + u64::from(events) > MAX_ITEMS as u64 {
                    return Err(format!("{blocks} blocks and {events} events are over the limit of {MAX_ITEMS} items"));
                }
                Ok(())
            }
            Some(known) => {
                if (thread, blocks, events, instructions) != (NO_THREAD, 0, 0, 0) {
                    return Err(format!("a {} chunk belongs to no thread and has no items", known.name()));
                }
                if raw as usize > (stored as usize).saturating_mul(MAX_RATIO) {
                    return Err(format!("a {} chunk may not shrink from {raw} to {stored} bytes", known.name()));
                }
                Ok(())
            }
            None if flags & FLAG_SKIPPABLE != 0 => Ok(()),
            None => Err(format!("chunk kind {kind} is unknown to this version and must not be skipped")),
        }
    }

    /// The size of the whole chunk in the file, in bytes.
    #[must_use]
    pub fn chunk_len(&self) -> u64 {
        CHUNK_HEADER_LEN as u64 + u64::from(self.stored)
    }
}

/// The header of a file of this version.
#[must_use]
pub fn encode_header(version: Version) -> [u8; HEADER_LEN] {
    let mut bytes = [0; HEADER_LEN];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&(version as u32).to_le_bytes());
    bytes
}

/// The footer that points to the last index chunk.
#[must_use]
pub fn encode_footer(index: u64) -> [u8; FOOTER_LEN] {
    let mut bytes = [0; FOOTER_LEN];
    bytes[..8].copy_from_slice(&index.to_le_bytes());
    bytes[8..12].copy_from_slice(&crc32fast::hash(&index.to_le_bytes()).to_le_bytes());
    bytes[12..].copy_from_slice(&FOOTER_MAGIC);
    bytes
}

/// The offset of the last index chunk, if this is a whole footer.
#[must_use]
pub fn decode_footer(bytes: &[u8; FOOTER_LEN]) -> Option<u64> {
    let mut offset = [0; 8];
    offset.copy_from_slice(&bytes[..8]);
    let whole = bytes[12..] == FOOTER_MAGIC && bytes[8..12] == crc32fast::hash(&offset).to_le_bytes();
    whole.then(|| u64::from_le_bytes(offset))
}
