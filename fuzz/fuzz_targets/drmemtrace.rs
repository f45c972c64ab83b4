//! The reader of drmemtrace's files on any bytes. The check is the one of the tests in `tracer`.

#![no_main]

#[path = "../../tracer/tests/drmemtrace/check/mod.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| check::check(input));
