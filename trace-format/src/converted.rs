//! A trace in another version of the format: the same items, chunk by chunk.
//!
//! Versions 3 and 4 differ in how items and objects of events are written. All other columns are copied as they are, so
//! that what a trace says is the same in both, values of memory addresses included. Events that
//! the other version has none of ([`crate::Event::is_of`]) are left out.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::codec::bytes::Cursor;
use crate::codec::event_codec::{self, Before};
use crate::codec::numbering::{self, Numbering};
use crate::codec::stream_codec::Counts;
use crate::file::chunk::{ChunkDecoder, ChunkEncoder};
use crate::file::contents;
use crate::layout::{ChunkHeader, ChunkKind, ESCAPE, MAX_INDEX_ENTRIES, MAX_RAW, STREAM_HEAD_LEN, Version};
use crate::layout::{encode_footer, encode_header};
use crate::{Action, Error, Result, ThreadId, Trace};

/// Where the words of a stream chunk's payload are that change: the count of items, and the bytes of events.
const ITEMS_AT: usize = 24;
const EVENT_BYTES_AT: usize = 44;

impl Trace {
    /// The number of the version of the format in which it is written.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.0.version as u32
    }

    /// Writes the trace in this version of the format. `name` is the path used in error messages. Returns how many
    /// events were left out as well, since this version has none such ([`Version::lacks`]).
    ///
    /// # Errors
    /// When it cannot be written, or a chunk that is read for it is damaged.
    pub fn write_as<W: Write>(&self, version: Version, out: W, name: impl Into<PathBuf>) -> Result<(W, u64)> {
        let name = name.into();
        let io = |action| move |source| Error::Io { path: PathBuf::new(), action, source };
        let named = |error| match error {
            Error::Io { action, source, .. } => Error::Io { path: name.clone(), action, source },
            other => other,
        };
        let encoder = ChunkEncoder::new().map_err(io(Action::Compress)).map_err(named)?;
        let mut written = Written { out, encoder, length: 0, entries: Vec::new(), previous: 0 };
        written.put(&encode_header(version)).map_err(io(Action::Write)).map_err(named)?;
        let source = &self.0.source;
        let (mut decoder, mut converter) = (ChunkDecoder::new(), Converter::new(self.0.version, version));
        for place in contents::contents(source)?.chunks {
            let mut header = decoder.read(source, place.offset, self.0.end)?;
            let kind = ChunkKind::from_code(header.kind);
            let (payload, values_at) = match kind {
                None => continue,
                Some(ChunkKind::Stream) => converter
                    .stream(&mut header, decoder.payload(), self.0.modules.len())
                    .map_err(|fault| source.damaged(place.offset, fault))?,
                Some(_) => (decoder.payload(), 0),
            };
            written.chunk(&header, kind.unwrap_or(ChunkKind::Meta), payload, values_at).map_err(named)?;
        }
        Ok((written.finish().map_err(named)?, converter.left_out))
    }
}

/// Converts payloads of stream chunks.
struct Converter {
    from: Version,
    to: Version,
    numbering: Numbering,
    items: Vec<u32>,
    payload: Vec<u8>,
    /// How many events were left out, since the other version has no such events.
    left_out: u64,
}

impl Converter {
    fn new(from: Version, to: Version) -> Converter {
        Converter { from, to, numbering: Numbering::default(), items: Vec::new(), payload: Vec::new(), left_out: 0 }
    }

    /// The payload in the other version, and where its values of memory addresses begin.
    fn stream(&mut self, header: &mut ChunkHeader, payload: &[u8], modules: usize) -> Result<(&[u8], usize), String> {
        let mut cursor = Cursor::new(payload);
        let head = cursor.take(STREAM_HEAD_LEN)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let seq = u64::from(word(16)) | u64::from(word(20)) << 32;
        let (items, numbered) = numbering::count(word(ITEMS_AT), self.from);
        self.items.clear();
        numbering::take_items(&mut cursor, items as usize, numbered, &mut self.items)?;
        let columns = cursor.take(word(36) as usize)?.len() + cursor.take(word(40) as usize)?.len();
        let start = cursor.position() - columns;
        let mut events = Cursor::new(cursor.take(word(EVENT_BYTES_AT) as usize)?);

        let (mut read, mut put) = (Before::chunk(self.from, seq), Before::chunk(self.to, seq));
        let (mut written, mut kept) = (Vec::new(), Vec::with_capacity(header.events as usize));
        for _ in 0..header.events {
            let event = event_codec::event(&mut events, &mut read, modules)?;
            kept.push(event.is_of(self.to));
            if kept.last() == Some(&true) {
                event_codec::put_event(&mut written, &event, &mut put);
            }
        }
        events.end()?;
        let left_out = kept.iter().filter(|kept| !**kept).count();
        if left_out > 0 {
            let mut kept = kept.into_iter();
            self.items.retain(|item| *item != ESCAPE || kept.next().unwrap_or(true));
            header.events -= left_out as u32;
            self.left_out += left_out as u64;
        }

        self.payload.clear();
        self.payload.extend(head);
        let items = numbering::put_items_of(self.to, &mut self.numbering, &self.items, &mut self.payload);
        self.payload.extend(&payload[start..start + columns]);
        let bytes = written.len() as u32;
        self.payload.append(&mut written);
        let values_at = self.payload.len();
        self.payload.extend(&payload[cursor.position()..]);
        for (at, word) in [(ITEMS_AT, items), (EVENT_BYTES_AT, bytes)] {
            self.payload[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        if self.payload.len() > MAX_RAW {
            return Err(format!("the chunk has {} bytes in the other version, over the limit", self.payload.len()));
        }
        Ok((&self.payload, values_at))
    }
}

/// The file that is written.
struct Written<W> {
    out: W,
    encoder: ChunkEncoder,
    length: u64,
    /// The headers of the chunks since the last index chunk, and where that is.
    entries: Vec<u8>,
    previous: u64,
}

impl<W: Write> Written<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn chunk(&mut self, header: &ChunkHeader, kind: ChunkKind, payload: &[u8], values_at: usize) -> Result<()> {
        let io = |action| move |source| Error::Io { path: PathBuf::new(), action, source };
        let &ChunkHeader { thread, blocks, events, instructions, .. } = header;
        let encoded = match kind {
            ChunkKind::Stream => {
                let counts = Counts { blocks, events, instructions };
                self.encoder.stream(ThreadId(thread), counts, payload, values_at)
            }
            kind => self.encoder.global(kind, payload),
        };
        let (bytes, header) = encoded.map_err(io(Action::Compress))?;
        self.out.write_all(bytes).map_err(io(Action::Write))?;
        self.length += bytes.len() as u64;
        if kind == ChunkKind::Index {
            return Ok(());
        }
        self.entries.extend(header.encode());
        if self.entries.len() == MAX_INDEX_ENTRIES * ChunkHeader::ENTRY_LEN {
            self.index()?;
        }
        Ok(())
    }

    fn index(&mut self) -> Result<()> {
        let mut payload = self.previous.to_le_bytes().to_vec();
        payload.append(&mut self.entries);
        self.previous = self.length;
        let none = ChunkHeader {
            kind: ChunkKind::Index as u8,
            flags: 0,
            thread: 0,
            raw: 0,
            stored: 0,
            blocks: 0,
            events: 0,
            instructions: 0,
        };
        self.chunk(&none, ChunkKind::Index, &payload, 0)
    }

    fn finish(mut self) -> Result<W> {
        self.index()?;
        let footer = encode_footer(self.previous);
        let written = self.put(&footer).and_then(|()| self.out.flush());
        written.map_err(|source| Error::Io { path: PathBuf::new(), action: Action::Write, source })?;
        Ok(self.out)
    }
}
