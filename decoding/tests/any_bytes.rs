//! Random bytes: what the two decoders say differently of them, the table explains.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use decoding::{ByCapstone, ByIced, differences};

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

/// Plain bytes, and those behind the prefixes and escapes behind which most instructions lie; most of VEX and EVEX are
/// well formed.
fn bytes(numbers: &mut Numbers) -> Vec<u8> {
    const HEADS: [&[u8]; 13] = [
        &[],
        &[0x48],
        &[0x66],
        &[0xf2],
        &[0xf3],
        &[0x0f],
        &[0x66, 0x0f],
        &[0xf2, 0x0f],
        &[0xf3, 0x0f, 0x38],
        &[0x66, 0x0f, 0x3a],
        &[0xc5],
        &[0xc4],
        &[0x62],
    ];
    let mut all = HEADS
        [std::env::var("LOCKSTEP_HEAD").map_or(numbers.next() as usize % HEADS.len(), |t| t.parse().unwrap())]
    .to_vec();
    match all[..] {
        [0xc4] if !numbers.next().is_multiple_of(4) => {
            let map = 1 + (numbers.next() % 3) as u8;
            let vector = if numbers.next().is_multiple_of(2) { 0x78 } else { 0 };
            all.extend([numbers.next() as u8 & 0xe0 | map, numbers.next() as u8 | vector]);
        }
        [0x62] if !numbers.next().is_multiple_of(4) => {
            let map = [1, 2, 3, 5, 6][numbers.next() as usize % 5];
            all.extend([numbers.next() as u8 & 0xf0 | map, numbers.next() as u8 | 4, numbers.next() as u8]);
        }
        _ => {}
    }
    all.extend(std::iter::repeat_with(|| numbers.next() as u8).take(16 - all.len()));
    all
}

/// So many are tried; `LOCKSTEP_ROUNDS` and `LOCKSTEP_SEED` try others and more.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}

#[test]
fn what_differs_is_explained() {
    let mut numbers = Numbers(0x1234_5678_9abc_def1 ^ number("LOCKSTEP_SEED", 0));
    let mut unexplained: BTreeMap<(String, &str, String), (u32, String)> = BTreeMap::new();
    for _ in 0..number("LOCKSTEP_ROUNDS", 100_000) {
        let bytes = bytes(&mut numbers);
        for difference in decoding::unexplained(0x40_1000, &bytes) {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let aspect = difference.aspect;
            let entry = unexplained
                .entry((difference.mnemonic, aspect.what, aspect.sides))
                .or_insert_with(|| (0, format!("{}: {}", hex.join(" "), aspect.how)));
            entry.0 += 1;
        }
    }
    let text: Vec<String> = unexplained
        .iter()
        .map(|((name, what, sides), (count, how))| format!("{name}: {what}: {sides}: {count} times, {how}"))
        .collect();
    assert!(text.is_empty(), "{} kinds of differences:\n{}", text.len(), text.join("\n"));
}

/// What LLVM's table of instructions says about these: how many it knows, and how many of them may write memory.
fn of_llvm(folder: &Path, instructions: &[Vec<u8>]) -> (usize, usize) {
    let (bytes, assembler) = (folder.join("bytes"), folder.join("assembler"));
    let hex = |code: &Vec<u8>| code.iter().map(|byte| format!("0x{byte:02x}")).collect::<Vec<_>>().join(" ");
    std::fs::write(&bytes, instructions.iter().map(|code| format!("[{}]\n", hex(code))).collect::<String>()).unwrap();
    let run = |tool: &str, arguments: &[&str], input: &Path| {
        let output = Command::new(tool).args(arguments).arg(input).output().unwrap_or_else(|e| panic!("{tool}: {e}"));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = run("llvm-mc-19", &["--disassemble", "--triple=x86_64", "-mcpu=sapphirerapids"], &bytes);
    std::fs::write(&assembler, text).unwrap();
    let to_mca = ["-mcpu=sapphirerapids", "-instruction-info", "-resource-pressure=false", "-summary-view=false"];
    let table = run("llvm-mca-19", &[&to_mca[..], &["-skip-unsupported-instructions=any"]].concat(), &assembler);
    let rows: Vec<&str> = table.lines().skip_while(|line| !line.contains("Instructions:")).skip(1).collect();
    let rows: Vec<&str> = rows.into_iter().filter(|line| line.contains('\t')).collect();
    // The columns: operations, latency, throughput, may load, may store.
    (rows.len(), rows.iter().filter(|row| row.as_bytes()[29] == b'*').count())
}

/// All of EVEX with an operand in memory, masked: by map, prefix, W, length of vectors, opcode, register or the further
/// opcode in its place, and address (with vectors of addresses, too).
fn all_of_evex(registers: Range<u8>) -> impl Iterator<Item = Vec<u8>> {
    let encodings = [1, 2, 3, 5, 6].into_iter().flat_map(|map| (0..24).map(move |bits| (map, bits)));
    let heads =
        encodings.map(|(map, bits)| [0x62, 0xf0 | map, 0x7c | bits & 3 | bits << 5 & 0x80, 9 | bits << 2 & 0x60]);
    heads.flat_map(|head| (0..=255).map(move |opcode| (head, opcode))).flat_map(move |(head, opcode)| {
        let addresses = registers.clone().map(|register| vec![register << 3 | 7]).chain([vec![0x14, 0x0f]]);
        addresses.map(move |address| [&head[..], &[opcode], &address, &[0]].concat())
    })
}

#[test]
fn llvm_agrees_about_what_writes_memory_where_the_processor_here_may_not_know_it() {
    let mut of_each: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    let capstone = ByCapstone::default();
    for bytes in all_of_evex(2..3) {
        let (Some(iced), Some(capstone)) = (ByIced.opinion(0, &bytes, None), capstone.opinion(0, &bytes)) else {
            continue;
        };
        // Of none of them capstone tells how it accesses memory.
        let differ = differences(Some(&iced), Some(&capstone));
        if differ.iter().any(|aspect| aspect.what == "access") {
            let kind = if iced.memory[0].access.writes { "writes" } else { "reads" };
            of_each.entry(kind).or_default().push(bytes[..iced.len].to_vec());
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (known, writing) = of_llvm(folder.path(), &of_each["reads"]);
    let reading = of_each["reads"].len();
    assert!(known > 1000 && writing == 0, "{writing} of {known} write, of {reading}");
    let (known, writing) = of_llvm(folder.path(), &of_each["writes"]);
    assert!(known > 10 && writing == known, "{writing} of {known} write");
}

#[test]
fn all_differences_of_evex_are_explained() {
    let mut unexplained: BTreeMap<String, String> = BTreeMap::new();
    for bytes in all_of_evex(0..8) {
        for difference in decoding::unexplained(0, &bytes) {
            let key = format!("{}: {}: {}", difference.mnemonic, difference.aspect.what, difference.aspect.sides);
            unexplained.entry(key).or_insert_with(|| format!("{bytes:02x?}: {}", difference.aspect.how));
        }
    }
    assert!(unexplained.is_empty(), "{unexplained:#?}");
}
