//! The instructions of source lines, as text, with what each costs.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use machine::{Disassembler, Syntax};
use replay::metrics::Causes;
use trace_format::{Pc, Trace};

/// An instruction that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Where it is.
    pub pc: Pc,
    /// How often it was fetched.
    pub fetches: u64,
    /// The instruction.
    pub text: String,
}

impl fmt::Display for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.pc, self.text)
    }
}

/// The instructions that were fetched, by address, except those without code in the trace.
#[must_use]
pub fn fetched(trace: &Trace, causes: &Causes, syntax: Syntax) -> Vec<Fetched> {
    let mut fetches: BTreeMap<Pc, u64> = BTreeMap::new();
    for ((pc, _), issued) in &causes.issued {
        *fetches.entry(*pc).or_default() += issued.fetches;
    }
    let mut code: HashMap<Pc, &[u8]> = HashMap::new();
    for (_, block) in trace.blocks().iter().filter(|(_, block)| !block.code.is_empty()) {
        for (at, instruction) in block.instructions.iter().enumerate() {
            code.entry(instruction.pc).or_insert(&block.code[block.code_range(at)]);
        }
    }
    let mut disassembler = Disassembler::new(syntax);
    let mut all = Vec::new();
    for (pc, fetches) in fetches {
        let Some(code) = code.get(&pc) else { continue };
        all.push(Fetched { pc, fetches, text: disassembler.text(pc.address(), code) });
    }
    all
}
