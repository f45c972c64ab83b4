//! What must hold of the reader for any input: no panic, no endless loop, and items that fit the block table. The
//! fuzz target (`fuzz/`) and the tests here share it.

use std::io::{self, Write};
use std::path::Path;

use trace_format::layout::{CHUNK_HEADER_LEN, ChunkHeader, HEADER_LEN};
use trace_format::{Action, Error, Event, Item, Trace, write_text};

/// The most items that are read of one input: a few bytes can stand for 65536 of them.
const MAX_ITEMS: u64 = 1 << 21;
/// The most bytes of text that are written of one input.
const MAX_TEXT: usize = 1 << 16;

/// Reads the input all through, as it is and with checksums that match it.
pub fn check(input: &[u8]) {
    check_one(input);
    check_one(&reseal(input));
}

fn check_one(input: &[u8]) {
    let trace = match Trace::from_bytes(input.to_vec(), "the input") {
        Ok(trace) => trace,
        Err(error) => return check_error(&error),
    };
    assert_eq!(trace.threads().iter().map(|thread| thread.instructions).sum::<u64>(), trace.instructions());
    let mut left = MAX_ITEMS;
    for (number, summary) in trace.threads().iter().enumerate() {
        assert_eq!(summary.id.index(), number);
        left = check_stream(&trace, number, left);
    }
    for (_, block) in trace.blocks().iter() {
        if let Some(symbol) = trace.symbol_of(block.start()) {
            assert!(symbol.pc <= block.start());
        }
        assert!(trace.module_of(block.start()).is_none_or(|module| module.contains(block.start())));
    }
    match write_text(&trace, &mut Limited(MAX_TEXT), Path::new("text")) {
        Ok(()) | Err(Error::Io { .. }) => {}
        Err(error) => check_error(&error),
    }
}

/// Reads a thread's items and returns how many more may be read.
fn check_stream(trace: &Trace, number: usize, mut left: u64) -> u64 {
    let summary = trace.threads()[number];
    let (mut blocks, mut events, mut instructions) = (0, 0, 0);
    let mut stream = trace.stream(summary.id);
    while left > 0 {
        left -= 1;
        match stream.next() {
            Ok(Some(Item::Block { block, sps, memory })) => {
                let block = &trace.blocks()[block];
                let len = block.instructions.len();
                assert_eq!((sps.len(), memory.len()), (block.recorded_sps(len), block.recorded_addresses(len)));
                blocks += 1;
                instructions += len as u64;
            }
            Ok(Some(Item::Partial { block, executed, sps, memory })) => {
                let block = &trace.blocks()[block];
                let len = executed as usize;
                assert!(0 < len && len < block.instructions.len());
                assert_eq!((sps.len(), memory.len()), (block.recorded_sps(len), block.recorded_addresses(len)));
                events += 1;
                instructions += len as u64;
            }
            Ok(Some(Item::Event(event))) => {
                assert!(!matches!(event, Event::Partial { .. }));
                if let Event::ModuleLoaded(module) | Event::ModuleUnloaded(module) = event {
                    assert!(module.index() < trace.modules().len());
                }
                assert_eq!(matches!(event, Event::ThreadStart { .. }), blocks + events == 0);
                events += 1;
            }
            Ok(None) => {
                assert_eq!((blocks, events, instructions), (summary.blocks, summary.events, summary.instructions));
                return left;
            }
            Err(error) => {
                check_error(&error);
                let again = stream.next().expect_err("a fault stays");
                assert_eq!(again.to_string(), error.to_string());
                return left;
            }
        }
    }
    0
}

/// An error of an input in memory names it, and is one of the input's own.
fn check_error(error: &Error) {
    assert!(error.to_string().starts_with("the input: "), "{error}");
    // A damaged gzip stream is an error of reading.
    let of_another = matches!(error, Error::Foreign { .. } | Error::Version { .. } | Error::Architecture { .. });
    let own = of_another || matches!(error, Error::Damaged { .. } | Error::Text { .. });
    assert!(own || matches!(error, Error::Io { action: Action::Read, .. }), "{error:?}");
}

struct Limited(usize);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The chunks that can be told apart, and where they start.
pub fn chunks(file: &[u8]) -> Vec<(usize, ChunkHeader)> {
    let mut found = Vec::new();
    let mut at = HEADER_LEN;
    while let Some(head) = file.get(at..at + ChunkHeader::ENTRY_LEN) {
        let Ok(header) = ChunkHeader::decode(head.try_into().expect("of this length")) else { break };
        if file.len() - at < CHUNK_HEADER_LEN + header.stored as usize {
            break;
        }
        found.push((at, header));
        at += CHUNK_HEADER_LEN + header.stored as usize;
    }
    found
}

/// Sets the checksums of all chunks to what their bytes give.
pub fn reseal(file: &[u8]) -> Vec<u8> {
    let mut sealed = file.to_vec();
    for (at, header) in chunks(file) {
        seal(&mut sealed[at..at + CHUNK_HEADER_LEN + header.stored as usize]);
    }
    sealed
}

/// Sets the checksum of a chunk to what its bytes give.
pub fn seal(chunk: &mut [u8]) {
    let (head, payload) = chunk.split_at_mut(CHUNK_HEADER_LEN);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head[..ChunkHeader::ENTRY_LEN]);
    hasher.update(payload);
    head[ChunkHeader::ENTRY_LEN..].copy_from_slice(&hasher.finalize().to_le_bytes());
}
