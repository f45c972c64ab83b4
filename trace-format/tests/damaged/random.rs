//! Random changes and random bytes.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use trace_format::layout::{CHUNK_HEADER_LEN, encode_header};

use crate::made_chunks::{made, unpack};
use crate::random_trace::{steps, write};
use crate::reader_check::{check, chunks};
use crate::{open, small};

#[test]
fn unpacked_traces_are_the_same_trace() {
    let written = small();
    let unpacked = unpack(&written.bytes);
    let trace = open(&unpacked).unwrap();
    written.assert_reads_as(&trace);
}

proptest! {
    #[test]
    fn garbage_never_panics(bytes in vec(any::<u8>(), 0..2000)) {
        check(&bytes);
        check(&[&encode_header(trace_format::layout::Version::NEWEST)[..], &bytes[..]].concat());
        check(&made(&[bytes]));
    }

    #[test]
    fn text_like_garbage_never_panics(text in "thread 0\n((0|[0-9a-f]{1,4} -?[0-9]{1,5} (-|B|BW|C|R|BC)( [0-9a-f]{1,9}){0,3}|thread [0-3]|#)\n){0,40}") {
        check(text.as_bytes());
    }

    #[test]
    fn flipped_bytes_never_panic(
        flips in vec((any::<Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<Index>()),
        unpacked in any::<bool>(),
    ) {
        let mut bytes = small().bytes.clone();
        if unpacked {
            bytes = unpack(&bytes);
        }
        for (place, value) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        check(&bytes);
    }

    #[test]
    fn flipped_bytes_of_streams_never_panic(steps in steps(60), flips in vec((any::<Index>(), any::<u8>()), 1..4)) {
        let mut bytes = unpack(&write(&steps).bytes);
        for (place, value) in flips {
            // Headers stay, so that what is inside the chunks is decoded.
            let payloads: Vec<usize> =
                chunks(&bytes).iter().flat_map(|(at, header)| at + CHUNK_HEADER_LEN..at + CHUNK_HEADER_LEN + header.stored as usize).collect();
            bytes[payloads[place.index(payloads.len())]] = value;
        }
        check(&bytes);
    }
}
