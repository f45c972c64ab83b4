//! What must hold of the reader of drmemtrace's files for any input: no panic, a trace that can be read or an error
//! with words, and no trace where there is an error. The fuzz target (`fuzz/`) and the tests here share it.

use std::fs;
use std::io::Write;
use std::path::Path;

use trace_format::{Item, Trace};

/// Checks a thread's file, as it is and, since hardly any bytes begin so, behind a header. The first byte says how the
/// file is packed.
pub fn check(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    let folder = tempfile::tempdir().unwrap();
    let headed = [&header(7, 0x240)[..], bytes].concat();
    let closed = [&headed[..headed.len() - bytes.len() % 12], &record(26, 0, 0)[..]].concat();
    for contents in [bytes, &headed, &closed] {
        let (name, packed) = match kind % 4 {
            0 => ("a.trace.gz", gzipped(contents)),
            1 => ("a.trace.zip", contents.to_vec()),
            2 => ("a.trace.gz", contents.to_vec()),
            _ => ("a.trace", contents.to_vec()),
        };
        let file = folder.path().join(name);
        fs::write(&file, packed).unwrap();
        let _ = convert(&file);
        // The same bytes as the lists beside the trace.
        for list in ["modules.log", "funclist.log"] {
            for start in ["", "Module Table: version 5, count 1\n\n", "0,1,"] {
                fs::write(folder.path().join(list), [start.as_bytes(), bytes].concat()).unwrap();
                let _ = convert(&file);
            }
            fs::remove_file(folder.path().join(list)).unwrap();
        }
        fs::remove_file(file).unwrap();
    }
}

/// Converts, and reads what comes of it. How many instructions it has, or the words of the error.
pub fn convert(from: &Path) -> Result<u64, String> {
    let output = tempfile::tempdir().unwrap();
    let output = output.path().join("trace.bin");
    match tracer::convert_drmemtrace(from, &output) {
        Ok(converted) => {
            let trace = Trace::open(&output).unwrap();
            assert_eq!(trace.instructions(), converted.instructions);
            let mut count = 0;
            for thread in trace.threads() {
                let mut stream = trace.stream(thread.id);
                while let Some(item) = stream.next().unwrap() {
                    if let Item::Block { block, .. } = item {
                        count += trace.blocks()[block].instructions.len() as u64;
                    }
                }
            }
            assert_eq!(count, converted.instructions);
            Ok(count)
        }
        Err(error) => {
            assert!(!output.exists(), "{error}");
            let words = error.to_string();
            assert!(words.contains("cannot be converted: "), "{words}");
            Err(words)
        }
    }
}

/// A record of drmemtrace's.
pub fn record(kind: u16, size: u16, value: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &size.to_le_bytes(), &value.to_le_bytes()].concat()
}

/// What a file of the first thread begins with.
pub fn header(version: u64, file_type: u64) -> Vec<u8> {
    header_of(11, version, file_type)
}

/// What the file of a thread begins with.
pub fn header_of(thread: u64, version: u64, file_type: u64) -> Vec<u8> {
    let begins = [(25, 0, version), (28, 12, version), (28, 9, file_type)];
    let records = begins.into_iter().chain([(22, 4, thread), (24, 4, 11), (28, 2, 1000)]);
    records.flat_map(|(kind, size, value)| record(kind, size, value)).collect()
}

/// The bytes, compressed.
pub fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
