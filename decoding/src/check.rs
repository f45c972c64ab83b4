//! All blocks of a trace, decoded by both.

use std::collections::BTreeMap;

use rayon::prelude::*;
use trace_format::{Instruction, SpEffect, Trace};

use crate::known::explained;
use crate::opinion::{Aspect, Opinion, differences};
use crate::{ByCapstone, ByIced};

/// An instruction about which the decoders disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where it is.
    pub pc: u64,
    /// Its bytes.
    pub code: Vec<u8>,
    /// Its name, as iced-x86 has it, or capstone where iced-x86 has none.
    pub mnemonic: String,
    /// What differs, and how: iced-x86's opinion against capstone's.
    pub aspect: Aspect,
}

impl Difference {
    pub(crate) fn new(pc: u64, code: &[u8], opinion: Option<&Opinion>, aspect: Aspect) -> Difference {
        let mnemonic = opinion.map_or_else(String::new, |opinion| opinion.mnemonic.clone());
        Difference { pc, code: code.to_vec(), mnemonic, aspect }
    }
}

/// The result for a trace.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Instructions that were compared, each once however many blocks it stands in.
    pub instructions: u64,
    /// How many of them have each name; capstone's where iced-x86 has none.
    pub names: BTreeMap<String, u64>,
    /// Instructions without code in the trace.
    pub without_code: u64,
    /// Differences that the table does not explain.
    pub differences: Vec<Difference>,
    /// How many differences the table explains: by name and by what differs.
    pub explained: BTreeMap<(String, &'static str), u64>,
}

impl Report {
    fn merge(mut self, other: Report) -> Report {
        self.instructions += other.instructions;
        self.without_code += other.without_code;
        self.differences.extend(other.differences);
        for (name, count) in other.names {
            *self.names.entry(name).or_default() += count;
        }
        for (key, count) in other.explained {
            *self.explained.entry(key).or_default() += count;
        }
        self
    }
}

/// Compares what both decoders, and the trace, say about each instruction of each block.
#[must_use]
pub fn check(trace: &Trace) -> Report {
    let has_memory = trace.meta().memory;
    let mut all: Vec<(&Instruction, &[u8])> = Vec::new();
    for (_, block) in trace.blocks().iter() {
        let mut code = &block.code[..];
        for instruction in &block.instructions {
            let (own, rest) = code.split_at(usize::from(instruction.len).min(code.len()));
            code = rest;
            all.push((instruction, own));
        }
    }
    // Blocks may start inside one another, so most instructions stand in several.
    all.sort_unstable_by_key(|(instruction, code)| (instruction.pc, *code));
    all.dedup();
    let of_part = |part: &[(&Instruction, &[u8])]| {
        let (capstone, mut report) = (ByCapstone::default(), Report::default());
        for (instruction, code) in part {
            if code.is_empty() {
                report.without_code += 1;
                continue;
            }
            report.instructions += 1;
            compare(instruction, code, has_memory, &capstone, &mut report);
        }
        report
    };
    all.par_chunks(4096).map(of_part).reduce(Report::default, Report::merge)
}

fn compare(instruction: &Instruction, code: &[u8], has_memory: bool, capstone: &ByCapstone, report: &mut Report) {
    let pc = instruction.pc.address();
    let (a, b) = (ByIced.opinion(pc, code, Some(instruction)), capstone.opinion(pc, code));
    let named = a.as_ref().or(b.as_ref());
    *report.names.entry(named.map_or_else(String::new, |opinion| opinion.mnemonic.clone())).or_default() += 1;
    let mut found = differences(a.as_ref(), b.as_ref());
    if has_memory && let Some(how) = recorded_addresses(instruction, a.as_ref()) {
        found.push(Aspect { what: "addresses", sides: how.clone(), how });
    }
    // A stack pointer that was recorded is right whatever the instruction does to it.
    found.retain(|aspect| aspect.what != "stack pointer" || instruction.sp != SpEffect::Recorded);
    for aspect in found {
        let difference = Difference::new(pc, code, named, aspect);
        if explained(&difference.aspect, a.as_ref(), b.as_ref(), code).is_some() {
            *report.explained.entry((difference.mnemonic, difference.aspect.what)).or_default() += 1;
        } else {
            report.differences.push(difference);
        }
    }
}

/// The trace must hold an address for each memory operand that is named, and one for what is pushed or popped.
fn recorded_addresses(instruction: &Instruction, opinion: Option<&Opinion>) -> Option<String> {
    let opinion = opinion?;
    let vector = |operand: &crate::Operand| operand.index.as_ref().is_some_and(|(index, _)| index.contains("mm"));
    let named = opinion.memory.iter().filter(|operand| !vector(operand)).count();
    let recorded = usize::from(instruction.memory);
    (recorded < named).then(|| format!("{recorded} recorded against {named} memory operands"))
}
