//! What the machines that run random functions have in common.

use std::io::Write;
use std::process::{Command, Stdio};

use transform::llvm::Comparison;

/// SSA form of functions in LLVM IR with variables in memory, by these passes of `opt-19`.
pub fn in_ssa(text: String, passes: &str) -> Vec<u8> {
    let mut child = Command::new("opt-19")
        .args([&format!("-passes={passes}"), "-S", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("opt-19 runs");
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "opt-19 refuses a random function");
    output.stdout
}

/// Whether a comparison holds of two words of so many bits.
pub fn holds(comparison: Comparison, a: u64, b: u64, bits: u32) -> bool {
    let signed = |word: u64| (word << (64 - bits)) as i64;
    match comparison {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::ULess => a < b,
        Comparison::ULessEqual => a <= b,
        Comparison::UGreater => a > b,
        Comparison::UGreaterEqual => a >= b,
        Comparison::SLess => signed(a) < signed(b),
        Comparison::SLessEqual => signed(a) <= signed(b),
        Comparison::SGreater => signed(a) > signed(b),
        Comparison::SGreaterEqual => signed(a) >= signed(b),
    }
}
