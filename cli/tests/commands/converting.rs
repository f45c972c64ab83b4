//! `lockstep convert`: a trace in another version of the format says the same.

use crate::support::{root, run, succeed};

#[test]
fn a_trace_of_another_version_is_replayed_alike() {
    let stored = root().join("replay/benches/fft-p16-m12.trace.bin");
    let folder = tempfile::tempdir().unwrap();
    let expected = succeed("replay", &["--csv", "-", stored.to_str().unwrap()]);
    for version in ["3", "4"] {
        let converted = folder.path().join("fft-p16-m12.trace.bin");
        let converted = converted.to_str().unwrap();
        succeed("lockstep", &["convert", "--to", version, "-o", converted, stored.to_str().unwrap()]);
        let header = std::fs::read(converted).unwrap();
        assert_eq!(header[8..12], version.parse::<u32>().unwrap().to_le_bytes());
        assert_eq!(succeed("replay", &["--csv", "-", converted]), expected, "{version}");
    }
    let refused = run("lockstep", &["convert", "--to", "2", "-o", "-", stored.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give 3 or 4"));
}
