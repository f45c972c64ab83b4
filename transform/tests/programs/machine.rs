//! The control flow of machine code, from a disassembly: functions as graphs of instructions.

use std::collections::BTreeMap;
use std::path::Path;

use flowgraph::{Builder, NodeId, Reduction};

use crate::build;

/// A function's instructions: address and text.
type Listing = Vec<(u64, String)>;

/// The functions that an object file or program defines, by name.
pub(crate) fn functions(file: &Path) -> BTreeMap<String, Listing> {
    let text = build::output("objdump", [Path::new("-dwr"), Path::new("--no-show-raw-insn"), file]);
    let mut found: BTreeMap<String, Listing> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(head) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            name = head.1.to_owned();
        } else if let Some((address, what)) = line.split_once(":\t") {
            let address = u64::from_str_radix(address.trim(), 16).expect("an address");
            found.entry(name.clone()).or_default().push((address, what.trim().to_owned()));
        }
    }
    found
}

/// How many instructions are left of a function when all that is structured has been folded away: one where all is.
/// None where a jump leads to a place that is computed. A jump to another function, which a relocation may name, is an
/// end.
pub(crate) fn left(listing: &Listing) -> Option<usize> {
    let place = |address: u64| listing.binary_search_by_key(&address, |(at, _)| *at).ok();
    let mut builder = Builder::new(listing.len());
    let mut exits = Vec::new();
    for (from, (_, what)) in listing.iter().enumerate() {
        let word = what.split_whitespace().find(|word| *word != "notrack" && *word != "bnd").unwrap_or_default();
        let target = || {
            let text = what.split_whitespace().nth(1).filter(|_| !what.contains("R_X86_64_"))?;
            u64::from_str_radix(text, 16).ok().and_then(place)
        };
        let mut to = Vec::new();
        match word {
            "ret" | "ud2" | "hlt" => {}
            "jmp" if what.contains('*') => return None,
            "jmp" => to.extend(target()),
            _ if word.starts_with('j') => {
                exits.extend(target().is_none().then_some(NodeId(from as u32)));
                to.extend(target().into_iter().chain([from + 1]));
            }
            _ => to.push(from + 1),
        }
        to.retain(|&to| to < listing.len());
        if to.is_empty() {
            exits.push(NodeId(from as u32));
        }
        to.into_iter().for_each(|to| _ = builder.edge(NodeId(from as u32), NodeId(to as u32)));
    }
    let reduction = Reduction::of(&builder.build(NodeId(0)), &exits);
    Some(if reduction.is_structured() { 1 } else { reduction.left().len() })
}

#[test]
fn a_short_circuit_is_not_structured_and_a_loop_is() {
    let listing = |lines: &[&str]| lines.iter().enumerate().map(|(i, line)| (i as u64, (*line).to_owned())).collect();
    assert_eq!(left(&listing(&["test", "je 4 <f+4>", "test", "jne 5 <f+5>", "call", "ret"])), Some(4));
    assert_eq!(left(&listing(&["test", "dec", "jne 1 <f+1>", "je 5 <f+5>", "call", "ret"])), Some(1));
    assert_eq!(left(&listing(&["jmp *%rax", "ret"])), None);
    let to_another = "jmp 4 <f+4>\t4: R_X86_64_PLT32\tg-0x4";
    assert_eq!(left(&listing(&["je 3 <f+3>", "call", "je 4 <f+4>", "ret", to_another])), Some(4));
    assert_eq!(left(&listing(&["call", to_another, "ret"])), Some(1));
}
