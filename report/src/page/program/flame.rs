//! The flame graph: call paths, with the lines of each function as its last level; widths are lost lane-slots.

use std::collections::HashMap;

use crate::page::Frame;
use replay::metrics::{Cause, Causes, PathId};
use trace_format::Pc;

use super::code::Code;

/// The root of all call paths. What is less than a part in `SMALLEST` of all is left out: nobody could see it.
pub(crate) fn of(causes: &Causes, code: &mut Code) -> Frame {
    let mut root = frame("all", None);
    let mut names: HashMap<PathId, Vec<String>> = HashMap::new();
    for (charge, slots) in &causes.charges {
        let path = names.entry(charge.path).or_insert_with(|| {
            let functions: Vec<Pc> = causes.paths.entries(charge.path);
            functions.into_iter().map(|pc| code.function_name(pc)).collect()
        });
        let line = code.line(charge.issued);
        let cause = charge.cause as usize;
        let mut at = &mut root;
        at.lost_by[cause] += slots;
        for name in path.iter() {
            at = child(at, name, None);
            at.lost_by[cause] += slots;
        }
        let label = code.lines()[line].label.clone();
        if path.last() != Some(&label) {
            child(at, &label, Some(line)).lost_by[cause] += slots;
        }
    }
    let total = root.lost_by.iter().sum();
    prune(&mut root, total);
    root
}

/// A frame narrower than one part in this many of the whole is left out.
const SMALLEST: u64 = 2000;

fn frame(name: &str, line: Option<usize>) -> Frame {
    Frame { name: name.to_owned(), line, lost_by: vec![0; Cause::ALL.len()], children: Vec::new() }
}

fn child<'f>(of: &'f mut Frame, name: &str, line: Option<usize>) -> &'f mut Frame {
    let at = of.children.iter().position(|c| c.name == name && c.line == line).unwrap_or_else(|| {
        of.children.push(frame(name, line));
        of.children.len() - 1
    });
    &mut of.children[at]
}

fn prune(frame: &mut Frame, total: u64) {
    let slots = |f: &Frame| f.lost_by.iter().sum::<u64>();
    frame.children.retain(|c| slots(c).saturating_mul(SMALLEST) >= total.max(1));
    frame.children.sort_by(|a, b| (slots(b), &a.name).cmp(&(slots(a), &b.name)));
    frame.children.iter_mut().for_each(|c| prune(c, total));
}
