//! Files that are cut, or have a wrong bit or a wrong index.

use std::fs;

use trace_format::layout::{CHUNK_HEADER_LEN, ChunkHeader, ChunkKind, FOOTER_LEN, HEADER_LEN};
use trace_format::{Error, Event, Finish, Meta, Seq, ThreadId, Trace, TraceWriter};

use crate::made_chunks::{chunk, payload};
use crate::random_trace::{OwnItem, items};
use crate::reader_check::chunks;
use crate::{fault, open, small};

#[test]
fn a_file_cut_anywhere_is_read_up_to_its_last_whole_chunk() {
    let written = small();
    let places = chunks(&written.bytes);
    let ends: Vec<usize> = places.iter().map(|(at, header)| at + CHUNK_HEADER_LEN + header.stored as usize).collect();
    for len in 0..written.bytes.len() {
        let cut = &written.bytes[..len];
        let whole = ends.iter().filter(|&&end| end <= len).count();
        let trace = match open(cut) {
            Ok(trace) => trace,
            Err(error) => {
                // Nothing is left where not even the first chunk is whole.
                assert_eq!(whole, 0, "{len}: {error}");
                assert!(error.to_string().starts_with("cut.bin: "), "{error}");
                assert!(matches!(error, Error::Damaged { .. }) || len == 0, "{len}: {error}");
                continue;
            }
        };
        assert!(whole > 0);
        let recovered = trace.recovered().expect("the footer is cut");
        let index = usize::from(whole == places.len());
        let read = match whole - index {
            1 => "its 1 whole chunk is read".to_owned(),
            count => format!("its {count} whole chunks are read"),
        };
        assert!(recovered.contains(&read), "{len}: {recovered}");
        if len > ends[whole - 1] {
            let lost = format!("from byte {} on {} bytes are lost", ends[whole - 1], len - ends[whole - 1]);
            assert!(recovered.contains(&lost), "{len}: {recovered}");
        }
        for (thread, expected) in written.threads.iter().enumerate() {
            let count = places[..whole]
                .iter()
                .filter(|(_, header)| header.kind == ChunkKind::Stream as u8 && header.thread == thread as u32)
                .map(|(_, header)| (header.blocks + header.events) as usize)
                .sum();
            assert!(items(&trace, ThreadId(thread as u32)) == expected[..count], "{len} bytes, thread {thread}");
        }
        let finish = places[..whole].iter().any(|(_, header)| header.kind == ChunkKind::Finish as u8);
        assert_eq!(trace.finish().is_some(), finish);
    }
}

#[test]
fn a_flipped_bit_in_any_byte_is_noticed() {
    let written = small();
    for place in 0..written.bytes.len() {
        let mut flipped = written.bytes.clone();
        flipped[place] ^= 1 << (place % 8);
        let Ok(trace) = open(&flipped) else { continue };
        let noticed = trace.recovered().is_some() || {
            let mut streams = trace.threads().iter().map(|thread| trace.stream(thread.id));
            streams.any(|mut stream| {
                loop {
                    match stream.next() {
                        Ok(Some(_)) => {}
                        Ok(None) => return false,
                        Err(_) => return true,
                    }
                }
            })
        };
        assert!(noticed, "bit {} of byte {place}", place % 8);
    }
}

#[test]
fn a_damaged_chunk_is_told_with_its_place_and_the_way_out() {
    let written = small();
    let (at, _) = *chunks(&written.bytes).iter().rfind(|(_, header)| header.kind == ChunkKind::Stream as u8).unwrap();
    let mut flipped = written.bytes.clone();
    flipped[at + CHUNK_HEADER_LEN + 3] ^= 4;
    assert_eq!(
        fault(&flipped),
        format!(
            "cut.bin: damaged at byte {at}: the chunk's checksum does not match its bytes; \
             copy the file again or record the program again"
        )
    );
}

#[test]
fn an_index_that_lies_is_not_believed() {
    let written = small();
    let (index, header) = *chunks(&written.bytes).last().unwrap();
    assert_eq!(header.kind, ChunkKind::Index as u8);
    let mut entries = payload(&written.bytes, index, &header);
    // The second entry's size.
    entries[8 + ChunkHeader::ENTRY_LEN + 12] ^= 1;
    entries[8 + ChunkHeader::ENTRY_LEN + 8] ^= 1;
    let mut lying = written.bytes[..index].to_vec();
    lying.extend(chunk(header, &entries));
    lying.extend(&written.bytes[written.bytes.len() - FOOTER_LEN..]);
    let trace = open(&lying).unwrap();
    assert!(trace.recovered().unwrap().contains("the index does not tell where all chunks are"));
    assert_eq!(trace.instructions(), written.instructions);
    // Two entries of stream chunks with the wrong number of instructions: their sizes are right.
    let mut entries = payload(&written.bytes, index, &header);
    let stream =
        entries[8..].chunks_exact(ChunkHeader::ENTRY_LEN).position(|entry| entry[2] == ChunkKind::Stream as u8);
    entries[8 + stream.unwrap() * ChunkHeader::ENTRY_LEN + 24] ^= 1;
    let mut lying = written.bytes[..index].to_vec();
    lying.extend(chunk(header, &entries));
    lying.extend(&written.bytes[written.bytes.len() - FOOTER_LEN..]);
    assert!(fault(&lying).contains("the chunk's header is not as the index gives it"));
}

#[test]
fn a_writer_that_is_dropped_leaves_what_was_flushed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let out = fs::File::create(file.path()).unwrap();
    let mut writer = TraceWriter::new(out, file.path(), &Meta::default()).unwrap();
    let start = Event::ThreadStart { parent: None, os_tid: 1, sp: 0, seq: Seq(0) };
    writer.event(ThreadId(0), start).unwrap();
    writer.flush().unwrap();
    writer.event(ThreadId(0), Event::Gap).unwrap();
    drop(writer);
    let trace = Trace::open(file.path()).unwrap();
    assert_eq!(trace.finish(), None::<&Finish>);
    assert!(trace.recovered().unwrap().contains("its 2 whole chunks are read, nothing else is missing"));
    assert_eq!(items(&trace, ThreadId(0)), [OwnItem::Event(start)]);
    assert_eq!(fs::metadata(file.path()).unwrap().len(), trace.threads()[0].bytes + (HEADER_LEN as u64) + meta_len());
}

/// The size of the chunk of an empty meta.
fn meta_len() -> u64 {
    let file = TraceWriter::new(Vec::new(), "made", &Meta::default()).unwrap().finish(&Finish::default()).unwrap();
    let (_, header) = chunks(&file)[0];
    header.chunk_len()
}
