//! Finds the chunks of a file: by its index, or, where that is missing or bad, by going through them.

use crate::codec::bytes::Cursor;
use crate::file::chunk::ChunkDecoder;
use crate::file::source::Source;
use crate::layout::{ChunkHeader, ChunkKind, FOOTER_LEN, HEADER_LEN, MAGIC, MAX_INDEX_ENTRIES, Version, decode_footer};
use crate::{Error, Result};

/// A chunk and where it starts in the file.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its first byte.
    pub offset: u64,
    /// What its header says.
    pub header: ChunkHeader,
}

/// The chunks of a file, in order. They follow one another without gaps from the header on.
#[derive(Debug)]
pub struct Contents {
    /// All but the index chunks.
    pub chunks: Vec<Place>,
    /// Where the readable part of the file ends.
    pub end: u64,
    /// Where the chunks were found without the index: a sentence that says why, and what was lost.
    pub recovered: Option<String>,
}

/// Checks the header of the file, and returns the version it has.
pub fn check_header(source: &Source) -> Result<Version> {
    let mut header = [0; HEADER_LEN];
    let len = source.len();
    if len < HEADER_LEN as u64 {
        return Err(source.damaged(len, format!("the file ends inside its header of {HEADER_LEN} bytes")));
    }
    source.read_at(0, &mut header)?;
    if header[..8] != MAGIC {
        return Err(source.damaged(0, "the first bytes are not those of a trace".into()));
    }
    let word = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
    let version = word(8);
    let Some(known) = Version::from_number(version) else {
        let supported = Version::NEWEST as u32;
        let way_out = if version > supported {
            "read it with a newer lockstep, or record the program again with this one"
        } else {
            "record the program again with this lockstep"
        };
        return Err(Error::Version { path: source.path().to_owned(), found: version, supported, way_out });
    };
    if word(12) != 0 {
        return Err(source.damaged(12, format!("the file has flags {:#x}, unknown to this version", word(12))));
    }
    Ok(known)
}

/// Finds the chunks.
pub fn contents(source: &Source) -> Result<Contents> {
    match by_index(source) {
        Ok(contents) => Ok(contents),
        Err(Error::Damaged { offset, fault, .. }) => by_scan(source, offset, &fault),
        Err(error) => Err(error),
    }
}

/// Follows the footer to the last index chunk, and from each to the one before it.
fn by_index(source: &Source) -> Result<Contents> {
    let mut footer = [0; FOOTER_LEN];
    let Some(footer_at) = source.len().checked_sub(FOOTER_LEN as u64).filter(|&at| at >= HEADER_LEN as u64) else {
        return Err(source.damaged(source.len(), "it has no footer".into()));
    };
    source.read_at(footer_at, &mut footer)?;
    let mut at = decode_footer(&footer).ok_or_else(|| source.damaged(footer_at, "it has no footer".into()))?;
    let mut decoder = ChunkDecoder::new();
    let mut end = footer_at;
    let mut parts = Vec::new();
    loop {
        if at < HEADER_LEN as u64 || at >= end {
            return Err(source.damaged(end, format!("the index cannot be at byte {at}")));
        }
        let header = decoder.read(source, at, end)?;
        if header.kind != ChunkKind::Index as u8 {
            return Err(source.damaged(at, "the chunk here is not the index".into()));
        }
        let next = Place { offset: at, header };
        let (previous, entries) = index(decoder.payload()).map_err(|fault| source.damaged(at, fault))?;
        parts.push((next, entries));
        if previous == 0 {
            break;
        }
        // The index chunks before lie at smaller offsets, so the search ends.
        (at, end) = (previous, at);
    }
    parts.reverse();
    let mut chunks = Vec::new();
    let mut offset = HEADER_LEN as u64;
    for (place, entries) in parts {
        for header in entries {
            chunks.push(Place { offset, header });
            offset = offset.saturating_add(header.chunk_len());
        }
        if offset != place.offset {
            return Err(source.damaged(place.offset, "the index does not tell where all chunks are".into()));
        }
        offset += place.header.chunk_len();
    }
    if offset != footer_at {
        return Err(source.damaged(footer_at, "the index does not end where the footer starts".into()));
    }
    Ok(Contents { chunks, end: footer_at, recovered: None })
}

/// Reads the payload of an index chunk: where the index chunk before it is (0: there is none), and its entries.
fn index(payload: &[u8]) -> Result<(u64, Vec<ChunkHeader>), String> {
    let mut cursor = Cursor::new(payload);
    let previous = cursor.long()?;
    let count = cursor.remaining() / ChunkHeader::ENTRY_LEN;
    if count > MAX_INDEX_ENTRIES {
        return Err(format!("the index chunk has {count} entries; the most is {MAX_INDEX_ENTRIES}"));
    }
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let bytes = cursor.take(ChunkHeader::ENTRY_LEN)?;
        entries.push(ChunkHeader::decode(bytes.try_into().expect("taken at this length"))?);
    }
    cursor.end()?;
    Ok((previous, entries))
}

/// Goes through the chunks from the start up to the last whole one.
fn by_scan(source: &Source, fault_at: u64, fault: &str) -> Result<Contents> {
    let mut decoder = ChunkDecoder::new();
    let mut chunks = Vec::new();
    let mut offset = HEADER_LEN as u64;
    let len = source.len();
    let stopped = loop {
        if offset == len || is_footer(source, offset)? {
            break None;
        }
        match decoder.fetch(source, offset, len) {
            Ok(header) => {
                if header.kind != ChunkKind::Index as u8 {
                    chunks.push(Place { offset, header });
                }
                offset += header.chunk_len();
            }
            Err(Error::Damaged { fault, .. }) => break Some(fault),
            Err(error) => return Err(error),
        }
    };
    let read = match chunks.len() {
        1 => "1 whole chunk is read".to_owned(),
        whole => format!("{whole} whole chunks are read"),
    };
    let lost = match stopped {
        None => "nothing else is missing".to_owned(),
        Some(stop) => format!("from byte {offset} on {} bytes are lost ({stop})", len - offset),
    };
    let recovered = format!("the trace was not finished or is damaged (byte {fault_at}: {fault}); its {read}, {lost}");
    Ok(Contents { chunks, end: offset, recovered: Some(recovered) })
}

fn is_footer(source: &Source, offset: u64) -> Result<bool> {
    if source.len() - offset != FOOTER_LEN as u64 {
        return Ok(false);
    }
    let mut footer = [0; FOOTER_LEN];
    source.read_at(offset, &mut footer)?;
    Ok(decode_footer(&footer).is_some())
}
