//! The table of known differences stands in `docs/decoding.md`. `BLESS=1` writes it there.

use std::fmt::Write;
use std::path::Path;

use decoding::known::KNOWN;

const BEGIN: &str = "<!-- made from the table of the crate: BLESS=1 cargo test -p decoding --test table -->\n";
const END: &str = "<!-- end -->";

#[test]
fn the_document_has_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/decoding.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut table = "\n| instructions | what differs | who is right |\n|---|---|---|\n".to_owned();
    for known in KNOWN {
        let names: Vec<String> = known.mnemonics.iter().map(|name| format!("`{name}`")).collect();
        let names = if names.is_empty() { "all".to_owned() } else { names.join(", ") };
        writeln!(table, "| {names} | {} | {} |", known.what, known.verdict).unwrap();
    }
    let expected = format!("{before}{BEGIN}{table}\n{END}{after}");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else {
        assert_eq!(text, expected, "run it with BLESS=1");
    }
}
