//! Chunks made by hand.

use trace_format::Meta;
use trace_format::layout::{
    CHUNK_HEADER_LEN, ChunkHeader, ChunkKind, FLAG_COMPRESSED, NO_THREAD, encode_footer, encode_header,
};

use crate::reader_check::{chunks, seal};

/// A chunk with this payload, not compressed.
pub fn chunk(header: ChunkHeader, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u32;
    let header = ChunkHeader { flags: header.flags & !FLAG_COMPRESSED, raw: len, stored: len, ..header };
    let mut chunk = header.encode().to_vec();
    chunk.extend([0; 4]);
    chunk.extend(payload);
    seal(&mut chunk);
    chunk
}

/// The payload of a chunk, decompressed.
pub fn payload(file: &[u8], at: usize, header: &ChunkHeader) -> Vec<u8> {
    let stored = &file[at + CHUNK_HEADER_LEN..][..header.stored as usize];
    if header.flags & FLAG_COMPRESSED == 0 {
        return stored.to_vec();
    }
    zstd::bulk::decompress(stored, header.raw as usize).expect("the chunk is whole")
}

/// The same trace with every payload as it is, so that a changed byte changes what the reader decodes.
pub fn unpack(file: &[u8]) -> Vec<u8> {
    let mut unpacked = encode_header(trace_format::layout::Version::NEWEST).to_vec();
    let mut entries = 0u64.to_le_bytes().to_vec();
    for (at, header) in chunks(file) {
        if header.kind == ChunkKind::Index as u8 {
            let index = unpacked.len() as u64;
            unpacked.extend(chunk(header, &entries));
            unpacked.extend(encode_footer(index));
            break;
        }
        let made = chunk(header, &payload(file, at, &header));
        entries.extend(&made[..ChunkHeader::ENTRY_LEN]);
        unpacked.extend(made);
    }
    unpacked
}

/// A trace of one meta chunk and these chunks, without an index.
pub fn made(parts: &[Vec<u8>]) -> Vec<u8> {
    let meta = serde_json::to_vec(&Meta::default()).unwrap();
    let mut file = encode_header(trace_format::layout::Version::NEWEST).to_vec();
    file.extend(chunk(global(ChunkKind::Meta), &meta));
    file.extend(parts.concat());
    file
}

pub fn global(kind: ChunkKind) -> ChunkHeader {
    let kind = kind as u8;
    ChunkHeader { kind, flags: 0, thread: NO_THREAD, raw: 0, stored: 0, blocks: 0, events: 0, instructions: 0 }
}

pub fn stream(thread: u32, blocks: u32, events: u32, instructions: u32) -> ChunkHeader {
    ChunkHeader { thread, blocks, events, instructions, ..global(ChunkKind::Stream) }
}

/// The payload of a stream chunk, from its counts and columns.
pub fn columns(ids: &[u32], sps: (u32, &[u8]), addresses: (u32, &[u8]), events: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; 24];
    let lens = [sps.1.len(), addresses.1.len(), events.len()].map(|len| len as u32);
    for word in [ids.len() as u32, sps.0, addresses.0].into_iter().chain(lens).chain(ids.iter().copied()) {
        payload.extend(word.to_le_bytes());
    }
    [&payload[..], sps.1, addresses.1, events].concat()
}

/// What a stream chunk ends with: how many values its rows have, the plans, the misses and the offsets.
pub fn rows(values: u32, plans: &[u8], misses: &[u8], offsets: &[u8]) -> Vec<u8> {
    let mut bytes = values.to_le_bytes().to_vec();
    for part in [plans, misses, offsets] {
        bytes.extend((part.len() as u32).to_le_bytes());
    }
    [&bytes[..], plans, misses, offsets].concat()
}

/// No modules, no symbols, one block of one instruction at 1 with two addresses: value 0 and value 1.
pub const ROW_TABLE: &[u8] = &[0, 0, 1, 1, 2, 1, 0x40, 2, 0, 1, 0, 0, 2, 1, 0, 2, 2, 0];
/// No modules, no symbols, one block of two instructions: the first with a recorded stack pointer and an address.
pub const TABLE: &[u8] = &[0, 0, 1, 2, 2, 1, 0x80, 1, 0, 1, 0, 0, 0, 0];
/// "The next event stands here."
pub const ESC: u32 = u32::MAX;
/// A thread's start.
pub const START: &[u8] = &[0, 0, 7, 0, 0];
