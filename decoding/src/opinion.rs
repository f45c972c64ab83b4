//! What a decoder says of an instruction, as far as a trace depends on it.

use std::collections::BTreeSet;
use std::fmt;

use trace_format::{Kind, SpEffect};

/// Whether an operand is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// It may be read.
    pub reads: bool,
    /// It may be written.
    pub writes: bool,
}

/// A memory operand that the instruction names. What it pushes and pops is not among them: that follows from the stack
/// pointer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operand {
    /// `fs` or `gs`, where the address counts from there.
    pub segment: Option<String>,
    /// The base register.
    pub base: Option<String>,
    /// The index register and its scale.
    pub index: Option<(String, u32)>,
    /// What is added. With `rip` as base it counts from the next instruction.
    pub displacement: i64,
    /// Its size in bytes.
    pub size: u32,
    /// Whether it is read or written.
    pub access: Access,
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operand { segment, base, index, displacement, size, access } = self;
        let how = match (access.reads, access.writes) {
            (true, true) => "reads and writes",
            (true, false) => "reads",
            (false, true) => "writes",
            (false, false) => "does not access",
        };
        write!(f, "{how} {size} bytes at [")?;
        if let Some(segment) = segment {
            write!(f, "{segment}:")?;
        }
        if let Some(base) = base {
            write!(f, "{base}+")?;
        }
        if let Some((index, scale)) = index {
            write!(f, "{index}*{scale}+")?;
        }
        write!(f, "{displacement:#x}]")
    }
}

/// What a decoder says of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// The instruction's name.
    pub mnemonic: String,
    /// Its length in bytes.
    pub len: usize,
    /// What it is to control flow.
    pub kind: Kind,
    /// Where a jump, branch or call with a constant target leads.
    pub target: Option<u64>,
    /// Its memory operands, sorted.
    pub memory: Vec<Operand>,
    /// What it does to the stack pointer.
    pub sp: SpEffect,
}

/// What differs between two lists of operands, if anything does.
fn of_memory(first: &[Operand], second: &[Operand]) -> &'static str {
    let with = |operand: &Operand, size: bool, access: bool| Operand {
        size: if size { operand.size } else { 0 },
        access: if access { operand.access } else { Access { reads: false, writes: false } },
        ..operand.clone()
    };
    let same = |size, access| {
        let all = |operands: &[Operand]| operands.iter().map(|o| with(o, size, access)).collect::<BTreeSet<_>>();
        first.len() == second.len() && all(first) == all(second)
    };
    match () {
        () if same(true, false) => "access",
        () if same(false, true) => "size",
        () => "memory",
    }
}

/// In what two opinions differ: a sentence for each thing. `None` is "no instruction".
#[must_use]
pub fn differences(first: Option<&Opinion>, second: Option<&Opinion>) -> Vec<(&'static str, String)> {
    let (first, second) = match (first, second) {
        (None, None) => return Vec::new(),
        (Some(first), None) => return vec![("validity", format!("{} against no instruction", first.mnemonic))],
        (None, Some(second)) => return vec![("validity", format!("no instruction against {}", second.mnemonic))],
        (Some(first), Some(second)) => (first, second),
    };
    let mut all = Vec::new();
    let mut add = |what, differs: bool, a: String, b: String| {
        if differs {
            all.push((what, format!("{a} against {b}")));
        }
    };
    add("length", first.len != second.len, first.len.to_string(), second.len.to_string());
    add("kind", first.kind != second.kind, format!("{:?}", first.kind), format!("{:?}", second.kind));
    add("target", first.target != second.target, format!("{:x?}", first.target), format!("{:x?}", second.target));
    let shown = |operands: &[Operand]| {
        if operands.is_empty() {
            return "no memory".to_owned();
        }
        operands.iter().map(Operand::to_string).collect::<Vec<_>>().join(", ")
    };
    add(
        of_memory(&first.memory, &second.memory),
        first.memory != second.memory,
        shown(&first.memory),
        shown(&second.memory),
    );
    add("stack pointer", first.sp != second.sp, format!("{:?}", first.sp), format!("{:?}", second.sp));
    all
}
