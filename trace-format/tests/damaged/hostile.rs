//! Small files that ask for much memory.

use std::process::Command;

use trace_format::layout::{ChunkHeader, ChunkKind};

use crate::made_chunks::{ESC, ROW_TABLE, START, TABLE, chunk, columns, global, made, rows, stream};
use crate::open;
use crate::reader_check::{check, chunks, reseal};

#[test]
fn a_chunk_larger_than_the_limit_is_refused_before_memory_is_set_aside() {
    let mut bytes = made(&[chunk(global(ChunkKind::Finish), b"{}")]);
    let (at, _) = *chunks(&bytes).last().unwrap();
    bytes[at + 8..at + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let trace = open(&reseal(&bytes)).unwrap();
    assert!(
        trace.recovered().unwrap().contains("a chunk of 4294967295 bytes (2 stored) is over the limit of 16777216")
    );
    // A table that unpacks to a thousand times its size.
    let zeros = vec![0; 1 << 20];
    let packed = zstd::bulk::compress(&zeros, 3).unwrap();
    let mut table = chunk(global(ChunkKind::Table), &packed);
    table[3] = 1;
    table[8..12].copy_from_slice(&(1u32 << 20).to_le_bytes());
    let trace = open(&reseal(&made(&[table]))).unwrap();
    assert!(
        trace.recovered().unwrap().contains("a table chunk may not shrink from 1048576"),
        "{:?}",
        trace.recovered()
    );
}

/// Inputs of a few kilobytes that ask for much: large counts, large ratios, many streams.
fn hostile() -> Vec<Vec<u8>> {
    let compressed = |mut header: ChunkHeader, raw: &[u8]| {
        let packed = zstd::bulk::compress(raw, 3).unwrap();
        header = ChunkHeader { raw: raw.len() as u32, stored: packed.len() as u32, flags: 1, ..header };
        let mut bytes = header.encode().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(packed);
        bytes
    };
    let table = chunk(global(ChunkKind::Table), TABLE);
    let ids = vec![0u32; 65535];
    let all = [&[ESC][..], &ids].concat();
    let full = columns(&all, (65535, &[0; 65535]), (65535, &[0; 65535]), START);
    let large = columns(&[ESC], (15 << 20, &vec![0; 15 << 20]), (0, &[]), START);
    let partials = [START, &[3, 0, 1].repeat(65535)].concat();
    let escapes = vec![ESC; 65536];
    let parts = columns(&escapes, (65535, &[0; 65535]), (65535, &[0; 65535]), &partials);
    let first = compressed(stream(0, 65535, 1, 131_070), &full);
    let mut counts = vec![0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f];
    counts.resize(2000, 1);
    // As many values as a chunk may have, of none of which a byte stands in the file.
    let told = [columns(&all, (0, &[]), (0, &[]), START), rows(131_070, &[], &[], &[])].concat();
    let told = compressed(stream(0, 65535, 1, 65535), &told);
    vec![
        reseal(&made(&[chunk(global(ChunkKind::Table), ROW_TABLE), told])),
        reseal(&made(&[table.clone(), first])),
        reseal(&made(&[table.clone(), compressed(stream(0, 0, 1, 0), &large)])),
        reseal(&made(&[table.clone(), compressed(stream(0, 0, 65536, 65535), &parts)])),
        reseal(&made(&[chunk(global(ChunkKind::Table), &counts)])),
        reseal(&made(&[(0..2000)
            .flat_map(|thread| chunk(stream(thread, 0, 0, 0), &columns(&[], (0, &[]), (0, &[]), &[])))
            .collect()])),
        reseal(&made(&[compressed(global(ChunkKind::Table), &vec![0; 16 << 20])])),
    ]
}

#[test]
fn hostile_inputs_are_read_in_little_memory() {
    // The limit is that of a process, so this test runs itself again under one. Memory that cannot be had aborts it.
    const INSIDE: &str = "TRACE_FORMAT_TEST_UNDER_LIMIT";
    if std::env::var_os(INSIDE).is_some() {
        for input in hostile() {
            check(&input);
        }
        println!("all inputs were read");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let script =
        "ulimit -v 262144 && exec \"$0\" --exact hostile::hostile_inputs_are_read_in_little_memory --nocapture";
    let run = Command::new("sh").arg("-c").arg(script).arg(own).env(INSIDE, "1").env("RUST_TEST_THREADS", "1").output();
    let run = run.unwrap();
    let out = String::from_utf8_lossy(&run.stdout);
    let err = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && out.contains("all inputs were read"), "{out}\n{err}");
}
