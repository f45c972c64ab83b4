//! Files that are something else: of another kind, of another version, gzipped.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use trace_format::layout::{ChunkKind, STREAM_HEAD_LEN, Version};
use trace_format::{Architecture, Error, Event, SyncFunction, ThreadId, Trace};

use crate::made_chunks::{ESC, START, TABLE, chunk, columns, global, made, stream};
use crate::random_trace::{OwnItem, items};
use crate::{fault, open, small};

#[test]
fn foreign_files_are_told_what_they_are() {
    let cases: [(&[u8], &str); 8] = [
        (b"", "it is empty; record a program first: trace PROGRAM"),
        (b"\x7fELF\x02\x01\x01", "it is a program; record it first: trace PROGRAM"),
        (b"\x28\xb5\x2f\xfd\0\0", "it is a zstd file; unpack it with unzstd first"),
        (b"\xfd7zXZ\0", "it is an xz file; unpack it with unxz first"),
        (b"BZh91AY", "it is a bzip2 file; unpack it with bunzip2 first"),
        (b"PK\x03\x04", "it is a zip file; unpack it with unzip first"),
        (b"int main(void) {}\n", "it starts neither as a binary trace nor as a text one"),
        (&[0; 64], "it starts neither as a binary trace nor as a text one"),
    ];
    for (bytes, reason) in cases {
        let error = open(bytes).unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }));
        assert!(error.to_string().starts_with(&format!("cut.bin: not a trace: {reason}")), "{error}");
    }
}

#[test]
fn files_that_cannot_be_opened_or_read_are_named() {
    let missing = Trace::open(Path::new("/no/such/trace.bin")).unwrap_err().to_string();
    assert!(missing.starts_with("/no/such/trace.bin: cannot open: No such file or directory"), "{missing}");
    let folder = Trace::open(Path::new("/")).unwrap_err().to_string();
    assert!(folder.starts_with("/: cannot read: Is a directory"), "{folder}");
    let endless = Trace::open(Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(endless.starts_with("/dev/zero: not a trace: "), "{endless}");
}

/// A trace whose meta chunk says this of the architecture.
fn of_architecture(architecture: &str) -> Vec<u8> {
    let meta = format!(
        "{{\"tool\":\"\",\"engine\":\"\",\"command\":[],\"started\":0,\"cpu\":\"\",\"memory\":false{architecture}}}"
    );
    made(&[chunk(global(ChunkKind::Meta), meta.as_bytes())])
}

#[test]
fn another_architecture_is_told_with_the_way_out() {
    let error = open(&of_architecture(",\"architecture\":\"riscv64\"")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cut.bin: the trace is of a program for riscv64, and this program knows the instructions of x86-64 alone: read \
         it with a lockstep that was made for riscv64, or record the program on x86-64"
    );
    for said in ["", ",\"architecture\":\"x86-64\""] {
        let trace = open(&of_architecture(said)).unwrap();
        assert_eq!(trace.meta().architecture, Architecture::X86_64, "{said}");
    }
}

#[test]
fn another_version_is_told_with_the_way_out() {
    let newest = Version::NEWEST as u32;
    for (version, way_out) in [
        (newest + 1, "read it with a newer lockstep, or record the program again with this one"),
        (0, "record the program again with this lockstep"),
    ] {
        let mut bytes = small().bytes.clone();
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        let error = open(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cut.bin: the file has trace format version {version}, and this program reads versions 1 to \
                 {newest}: {way_out}"
            )
        );
    }
    // A trace without sums is the same in all versions.
    let columns = columns(&[ESC, 0], (1, &[2]), (1, &[2]), START);
    let mut bytes = made(&[chunk(global(ChunkKind::Table), TABLE), chunk(stream(0, 1, 1, 2), &columns)]);
    for version in Version::ALL {
        bytes[8] = version as u8;
        assert_eq!(items(&open(&bytes).unwrap(), ThreadId(0)).len(), 2, "{version:?} is read as before");
    }
    let mut bytes = small().bytes.clone();
    bytes[8] = 2;
    let refused = open(&bytes).unwrap_err().to_string();
    assert!(refused.ends_with("record the program again with this lockstep"), "{refused}");
    assert!(refused.contains("version 2 writes memory addresses in another way"), "{refused}");
    let mut bytes = small().bytes.clone();
    bytes[12] = 1;
    assert!(fault(&bytes).starts_with("cut.bin: damaged at byte 12: the file has flags 0x1, unknown to this version"));
}

#[test]
fn gzipped_traces_are_read() {
    let written = small();
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let zipped = gzip(&written.bytes);
    let trace = open(&zipped).unwrap();
    assert_eq!((trace.recovered(), trace.instructions()), (None, written.instructions));
    let cut = fault(&zipped[..zipped.len() / 2]);
    assert!(cut.starts_with("cut.bin: cannot read: "), "{cut}");
    // A file that grows without measure when it is unpacked.
    let bomb = gzip(&[&written.bytes[..], &[0; 64 << 20]].concat());
    let refused = fault(&bomb);
    assert!(
        refused.contains("it is gzipped and unpacks to more than 33554432 bytes; unpack it with gunzip"),
        "{refused}"
    );
}

#[test]
fn objects_are_differences_and_items_bytes_from_version_4_on() {
    let enter = [4, SyncFunction::MutexLock as u8, 0x10, 0, 0];
    let events = [START, &enter, &enter].concat();
    let whole = columns(&[ESC; 3], (0, &[]), (0, &[]), &events);
    let mut bytes = made(&[chunk(stream(0, 0, 3, 0), &whole)]);
    for (version, expected) in [(1, [0x10, 0x10]), (2, [0x10, 0x10]), (3, [0x10, 0x10]), (4, [8, 16])] {
        bytes[8] = version;
        let objects: Vec<u64> = items(&open(&bytes).unwrap(), ThreadId(0))
            .iter()
            .filter_map(|item| match item {
                OwnItem::Event(Event::Enter { object, .. }) => Some(*object),
                _ => None,
            })
            .collect();
        assert_eq!(objects, expected, "version {version}");
    }
    // Three items, a byte each, that are the one number ESCAPE.
    let mut numbered = whole.clone();
    numbered[24 + 3] = 0x80;
    let column = STREAM_HEAD_LEN..STREAM_HEAD_LEN + 12;
    numbered.splice(column, [[1, 0, 0, 0], ESC.to_le_bytes()].concat().into_iter().chain([0; 3]));
    let mut bytes = made(&[chunk(stream(0, 0, 3, 0), &numbered)]);
    assert_eq!(items(&open(&bytes).unwrap(), ThreadId(0)).len(), 3);
    bytes[8] = 3;
    let mut stream = open(&bytes).unwrap().stream(ThreadId(0));
    let refused = stream.next().unwrap_err().to_string();
    assert!(refused.contains("2147483651 items, but the chunk's header counts"), "{refused}");
}
