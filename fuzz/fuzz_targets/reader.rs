//! The reader on any bytes: binary traces, text traces, gzipped ones, and what is none of them.
//!
//! The check is the one of the tests in `trace-format`. It reads each input a second time with checksums that match
//! it; without that, hardly an input would get past the first chunk.

#![no_main]

#[path = "../../trace-format/tests/reader_check/mod.rs"]
mod reader_check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| reader_check::check(input));
