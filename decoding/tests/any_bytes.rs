//! Random bytes: what the two decoders say differently of them, the table explains.

use std::collections::BTreeMap;

/// Numbers that look random, the same each time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Plain bytes, and those behind the prefixes and escapes behind which most instructions lie.
fn bytes(numbers: &mut Numbers) -> Vec<u8> {
    const HEADS: [&[u8]; 12] = [
        &[],
        &[0x48],
        &[0x66],
        &[0xf2],
        &[0xf3],
        &[0x0f],
        &[0x66, 0x0f],
        &[0xf3, 0x0f, 0x38],
        &[0x66, 0x0f, 0x3a],
        &[0xc5],
        &[0xc4],
        &[0x62],
    ];
    let mut all = HEADS[numbers.next() as usize % HEADS.len()].to_vec();
    all.extend(std::iter::repeat_with(|| numbers.next() as u8).take(16 - all.len()));
    all
}

#[test]
fn what_differs_is_explained() {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut unexplained: BTreeMap<(String, &str), (u32, String)> = BTreeMap::new();
    for _ in 0..100_000 {
        let bytes = bytes(&mut numbers);
        for (name, what, how) in decoding::unexplained(0x40_1000, &bytes) {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let entry = unexplained.entry((name, what)).or_insert_with(|| (0, format!("{}: {how}", hex.join(" "))));
            entry.0 += 1;
        }
    }
    let text: Vec<String> = unexplained
        .iter()
        .map(|((name, what), (count, how))| format!("{name}: {what}: {count} times, {how}"))
        .collect();
    assert!(text.is_empty(), "{} kinds of differences:\n{}", text.len(), text.join("\n"));
}
