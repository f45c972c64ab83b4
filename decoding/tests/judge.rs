//! What the table says of memory that is read or written, the processor says too.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use decoding::{First, Second, differences};

/// Instructions of the judge with the bytes at which the decoders differ about them.
const JUDGED: [(&str, &[u8], &str); 8] = [
    ("movups", &[0x0f, 0x11, 0x07], "movups writes"),
    ("movq", &[0x66, 0x0f, 0xd6, 0x07], "movq writes"),
    ("cmpxchg", &[0x0f, 0xb1, 0x0f], "cmpxchg writes"),
    ("fnstcw", &[0xd9, 0x3f], "fnstcw writes"),
    ("setl", &[0x0f, 0x9c, 0x07], "setl writes"),
    ("comisd", &[0x66, 0x0f, 0x2f, 0x07], "comisd reads 8"),
    ("test", &[0x84, 0x07], "test leaves"),
    ("vmovdqu", &[0xc5, 0xfe, 0x7f, 0x07], "vmovdqu writes"),
];

#[test]
fn the_processor_agrees_with_the_first_decoder() {
    let folder = std::env::temp_dir().join(format!("lockstep-judge-{}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/judge.c");
    let built = Command::new("gcc").arg("-O1").arg("-o").args([&folder, &source]).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let said = Command::new(&folder).output().unwrap();
    std::fs::remove_file(&folder).unwrap();
    assert!(said.status.success());
    let said = String::from_utf8(said.stdout).unwrap();
    let said: BTreeSet<&str> = said.lines().collect();
    for (name, code, verdict) in JUDGED {
        let (first, second) = (First::default().opinion(0x1000, code, None), Second::default().opinion(0x1000, code));
        let found = differences(first.as_ref(), second.as_ref());
        let differs = found.iter().any(|(what, _)| ["access", "size"].contains(what));
        assert!(differs, "{name}: the decoders agree by now: {found:?}");
        let operand = first.unwrap().memory.remove(0);
        let of_first = match (operand.access.reads, operand.access.writes) {
            (_, true) => format!("{name} writes"),
            _ if verdict.ends_with("leaves") => format!("{name} leaves"),
            _ => format!("{name} reads {}", operand.size),
        };
        assert_eq!(of_first, verdict, "{name}");
        let has_avx = std::arch::is_x86_feature_detected!("avx");
        assert!(said.contains(verdict) || name.starts_with('v') && !has_avx, "{name}: the processor says {said:?}");
    }
}
