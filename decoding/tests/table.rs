//! The table of known differences stands in `docs/decoding.md` (`BLESS=1` writes it there), each entry has its example,
//! and what is not in it is reported.

use std::fmt::Write;
use std::path::Path;

use decoding::known::{Form, KNOWN, explained};
use decoding::{Access, ByCapstone, ByIced, Opinion, differences};
use trace_format::{Kind, SpEffect};

const BEGIN: &str = "<!-- made from the table of the crate: BLESS=1 cargo test -p decoding --test table -->\n";
const END: &str = "<!-- end -->";

#[test]
fn the_document_has_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/decoding.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table = "\n| instructions | what differs | iced-x86 against capstone | such as | who is right |\n|---|---|---|---|---|\n".to_owned();
    for known in KNOWN {
        let example: Vec<String> = known.example.iter().map(|byte| format!("{byte:02x}")).collect();
        let (what, sides, verdict) = (known.what, known.sides.join("; "), known.verdict);
        writeln!(table, "| {known} | {what} | {sides} | `{}` | {verdict} |", example.join(" ")).unwrap();
    }
    let expected = format!("{before}{BEGIN}{table}\n{END}{after}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else {
        assert_eq!(text, expected, "run it with BLESS=1");
    }
}

/// What the decoders say about an example, and the example with more bytes behind it.
fn opinions(example: &[u8]) -> (Option<Opinion>, Option<Opinion>) {
    (ByIced.opinion(0x1000, example, None), ByCapstone::default().opinion(0x1000, example))
}

#[test]
fn each_entry_explains_its_example() {
    for known in KNOWN {
        let (iced, capstone) = opinions(known.example);
        let found = differences(iced.as_ref(), capstone.as_ref());
        let entries: Vec<String> = found
            .iter()
            .filter_map(|aspect| explained(aspect, iced.as_ref(), capstone.as_ref(), known.example))
            .map(|entry| format!("{entry}: {}", entry.what))
            .collect();
        assert!(entries.contains(&format!("{known}: {}", known.what)), "{known}: {}: {found:?}", known.what);
        assert_eq!(entries.len(), found.len(), "{known}: {found:?}");
    }
}

#[test]
fn of_an_instruction_in_the_table_another_difference_is_reported() {
    for known in KNOWN {
        let (iced, capstone) = opinions(known.example);
        let differs = |iced: Option<&Opinion>, capstone: Option<&Opinion>| -> Vec<String> {
            let all = differences(iced, capstone).into_iter();
            let unexplained = all.filter(|aspect| explained(aspect, iced, capstone, known.example).is_none());
            unexplained.map(|aspect| format!("{}: {}", aspect.what, aspect.sides)).collect()
        };
        // What one says, the other one says.
        let swapped = differs(capstone.as_ref(), iced.as_ref());
        // Behind some prefixes each knows what the other does not.
        let is_symmetric = known.what == "target" || known.what == "validity" && known.form != Form::Any;
        assert!(is_symmetric || !swapped.is_empty(), "{known}: {}: nothing when swapped", known.what);
        // One more thing differs.
        let (Some(iced), Some(capstone)) = (iced, capstone) else { continue };
        let mut injected: Vec<(&str, Opinion)> = Vec::new();
        let mut inject = |what, change: &dyn Fn(&mut Opinion)| {
            let right = &capstone;
            let mut capstone = right.clone();
            change(&mut capstone);
            if capstone == *right {
                return;
            }
            if capstone.memory != iced.memory || !["access", "size", "memory", "segment"].contains(&what) {
                injected.push((what, capstone));
            }
        };
        inject("length", &|opinion| opinion.len = iced.len - 1 + 20 * usize::from(iced.mnemonic.starts_with("ud")));
        inject("kind", &|opinion| opinion.kind = Kind::Syscall);
        inject("target", &|opinion| opinion.target = if iced.target.is_some() { None } else { Some(7) });
        inject("stack pointer", &|opinion| opinion.sp = SpEffect::Add(-77));
        inject("memory", &|opinion| opinion.memory.extend(opinion.memory.clone()));
        inject("memory", &|opinion| {
            let shift = i64::from(!iced.memory.is_empty());
            opinion.memory.iter_mut().for_each(|operand| operand.displacement += shift);
        });
        inject("size", &|opinion| opinion.memory.iter_mut().for_each(|operand| operand.size += 3));
        inject("access", &|opinion| {
            let none = Access { reads: false, writes: false };
            opinion.memory.iter_mut().for_each(|operand| operand.access = none);
        });
        for (what, capstone) in injected {
            let reported = differs(Some(&iced), Some(&capstone));
            assert!(!reported.is_empty(), "{known}: {}: a difference in {what} is swallowed", known.what);
        }
    }
}

#[test]
fn another_instruction_with_a_difference_of_the_table_is_reported() {
    // An add of which one would say that it only reads what it adds to.
    let code = [0x01, 0x07];
    let (iced, capstone) = opinions(&code);
    assert_eq!(differences(iced.as_ref(), capstone.as_ref()), []);
    let mut wrong = capstone.unwrap();
    wrong.memory[0].access.writes = false;
    let found = differences(iced.as_ref(), Some(&wrong));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].sides, "reads and writes against reads");
    assert!(explained(&found[0], iced.as_ref(), Some(&wrong), &code).is_none());
}
