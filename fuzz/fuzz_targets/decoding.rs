//! Both decoders on any bytes: where they differ, `docs/decoding.md` must say why.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let unexplained = decoding::unexplained(0x40_1000, input);
    assert!(unexplained.is_empty(), "{unexplained:?}");
});
