//! What a decoder says about an instruction, as far as a trace depends on it.

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

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.reads, self.writes) {
            (true, true) => "reads and writes",
            (true, false) => "reads",
            (false, true) => "writes",
            (false, false) => "does not access",
        })
    }
}

/// A memory operand that the instruction names. What it pushes and pops is not included: that follows from the stack
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
        write!(f, "{access} {size} bytes at [")?;
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

/// What a decoder says about an instruction.
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
    /// The extensions of the processor that it belongs to, as iced-x86 names them; capstone tells none.
    pub extensions: Vec<String>,
}

/// Something in which two opinions differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aspect {
    /// What differs: `validity`, `length`, `kind`, `target`, `segment`, `access` or `size` of a memory operand,
    /// `memory` (its registers, or that there is one), `stack pointer`, `addresses` (in the trace).
    pub what: &'static str,
    /// What iced-x86 says against what capstone says, without registers and addresses, or how many bytes longer the
    /// former's instruction is: the key into the table of known differences.
    pub sides: String,
    /// The same in full.
    pub how: String,
}

impl Operand {
    /// What makes its address, without the segment.
    fn place(&self) -> (&Option<String>, &Option<(String, u32)>, i64) {
        (&self.base, &self.index, self.displacement)
    }

    /// Without registers and addresses.
    fn summary(&self) -> String {
        format!("{} {} bytes", self.access, self.size)
    }
}

/// All of them, in words.
fn listed(operands: &[Operand], words: impl Fn(&Operand) -> String) -> String {
    if operands.is_empty() {
        return "no memory".to_owned();
    }
    operands.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// A property of an operand.
type Words = fn(&Operand) -> String;

/// The differences between two lists of operands.
fn of_memory(iced: &[Operand], capstone: &[Operand]) -> Vec<Aspect> {
    if iced == capstone {
        return Vec::new();
    }
    let how = format!("{} against {}", listed(iced, Operand::to_string), listed(capstone, Operand::to_string));
    let sorted = |operands: &[Operand]| {
        let mut operands = operands.to_vec();
        operands.sort_by(|a, b| a.place().cmp(&b.place()));
        operands
    };
    let (iced, capstone) = (sorted(iced), sorted(capstone));
    let same_places = iced.len() == capstone.len()
        && iced.iter().zip(&capstone).all(|(iced, capstone)| iced.place() == capstone.place());
    if !same_places {
        let mut sides = format!("{} against {}", listed(&iced, Operand::summary), listed(&capstone, Operand::summary));
        if let ([iced], [capstone]) = (&iced[..], &capstone[..])
            && (&iced.base, &iced.index) == (&capstone.base, &capstone.index)
        {
            if iced.displacement == capstone.displacement * 8 {
                sides += " at an eighth of the displacement";
            } else if iced.displacement == capstone.displacement + i64::from(iced.size) {
                sides += " that lie in front of them";
            }
        }
        return vec![Aspect { what: "memory", sides, how }];
    }
    let aspects: [(_, Words); 3] = [
        ("segment", |operand| operand.segment.clone().unwrap_or_else(|| "none".to_owned())),
        ("access", |operand| operand.access.to_string()),
        ("size", |operand| operand.size.to_string()),
    ];
    let mut all = Vec::new();
    for (what, of) in aspects {
        let differ =
            iced.iter().zip(&capstone).map(|(iced, capstone)| (of(iced), of(capstone))).filter(|(a, b)| a != b);
        let mut sides: Vec<String> = differ.map(|(iced, capstone)| format!("{iced} against {capstone}")).collect();
        sides.dedup();
        if !sides.is_empty() {
            all.push(Aspect { what, sides: sides.join(", "), how: how.clone() });
        }
    }
    all
}

/// The differences between two opinions. `None` is "no instruction".
#[must_use]
pub fn differences(iced: Option<&Opinion>, capstone: Option<&Opinion>) -> Vec<Aspect> {
    let validity = |sides: &str, how| vec![Aspect { what: "validity", sides: sides.to_owned(), how }];
    let (iced, capstone) = match (iced, capstone) {
        (None, None) => return Vec::new(),
        (Some(iced), None) => {
            return validity("an instruction against none", format!("{} against no instruction", iced.mnemonic));
        }
        (None, Some(capstone)) => {
            return validity("none against an instruction", format!("no instruction against {}", capstone.mnemonic));
        }
        (Some(iced), Some(capstone)) => (iced, capstone),
    };
    let mut all = Vec::new();
    let mut add = |what, sides: String, how: String| all.push(Aspect { what, sides, how });
    if iced.len != capstone.len {
        let more = if iced.len > capstone.len { "more" } else { "fewer" };
        let how = format!("{} against {}", iced.len, capstone.len);
        add("length", format!("{} bytes {more}", iced.len.abs_diff(capstone.len)), how);
    }
    if iced.kind != capstone.kind {
        let how = format!("{:?} against {:?}", iced.kind, capstone.kind);
        add("kind", how.clone(), how);
    }
    if iced.target != capstone.target {
        let said = |target: Option<u64>| if target.is_some() { "a target" } else { "none" };
        let sides = format!("{} against {}", said(iced.target), said(capstone.target));
        add("target", sides, format!("{:x?} against {:x?}", iced.target, capstone.target));
    }
    if iced.sp != capstone.sp {
        let how = format!("{:?} against {:?}", iced.sp, capstone.sp);
        add("stack pointer", how.clone(), how);
    }
    all.extend(of_memory(&iced.memory, &capstone.memory));
    all
}
