//! Matches instructions of the trace to the instructions of the IR that they were compiled from.
//!
//! `lockstep cc --keep-ir` keeps the IR from which code is generated, and gives each of its instructions a line of its
//! own. So the line table names the IR instruction behind each instruction of the program, however often code was
//! inlined, unrolled or copied before. Code generation also makes code of its own (pushes, spills, constants in
//! memory), folds loads into the instructions that use them, and gives code made of several instructions no line. An
//! instruction is matched only where a rule below allows it; the rest is counted.
//!
//! - A conditional branch, or a jump through a table, has the line of the branch, or of the `select`, division or the
//!   like that it is a part of.
//! - A memory operand has the line of an access that reads, or writes, as it does. Or it has the line of an instruction
//!   into which exactly one load without code of its own can have been folded, or several of one line with the same
//!   claim.
//! - A load that lost its line is matched where all loads of its function without code are of one line and one claim.
//! - An operand that counts from the stack pointer, with no such line, is code generation's own, as is what an
//!   instruction pushes and pops, and a constant at a distance from the instruction itself.

use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};

use attribution::Source;
use machine::{Memory, Register, Table};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Instruction, Kind, Pc, Trace};
use transform::llvm::Module;
use transform::spmd::{Claim, Direction};

/// An instruction of the IR: the number of its file, its own number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Made {
    pub(crate) unit: usize,
    pub(crate) number: usize,
}

/// What something in the code was compiled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Of this instruction.
    Matched(Made),
    /// Code generation's own: the IR has nothing like it.
    Generated,
    /// It is unknown.
    Unmatched,
    /// Its function has no IR that was kept.
    NoIr,
}

/// An instruction that branches or accesses memory.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) pc: Pc,
    /// Of its line, where that is one of the IR.
    pub(crate) line: Option<Made>,
    pub(crate) branch: Option<Origin>,
    pub(crate) access: Option<Origin>,
    /// Whether that access writes.
    pub(crate) writes: bool,
    /// The operand counts from what may be a frame pointer.
    pub(crate) maybe_frame: bool,
}

/// An instruction as the trace has it.
struct Decoded {
    instruction: Instruction,
    memory: Vec<Memory>,
    mnemonic: String,
    line: Option<Made>,
}

/// The code of a trace, and the files of IR that its lines lead to.
pub(crate) struct Code {
    decoded: Vec<Decoded>,
    /// The files, as their numbers go.
    pub(crate) units: Vec<PathBuf>,
}

impl Code {
    /// Reads the line table for each instruction of the trace.
    pub(crate) fn of(trace: &Trace, source: &mut Source) -> Code {
        let mut code = Code { decoded: Vec::new(), units: Vec::new() };
        let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
        let mut seen: FxHashSet<Pc> = FxHashSet::default();
        for (_, block) in trace.blocks().iter() {
            for (i, instruction) in block.instructions.iter().enumerate() {
                let looks = is_branch(instruction.kind) || instruction.memory > 0;
                if !looks || !seen.insert(instruction.pc) {
                    continue;
                }
                let bytes = &block.code[block.code_range(i)];
                let table = Table::first(instruction.pc, bytes);
                let known = table.all().get(0);
                let line = source.line(instruction.pc).filter(|line| is_ir(&line.file)).map(|line| {
                    let unit = match numbers.entry(line.file) {
                        Entry::Occupied(entry) => *entry.get(),
                        Entry::Vacant(entry) => {
                            code.units.push(PathBuf::from(entry.key()));
                            *entry.insert(code.units.len() - 1)
                        }
                    };
                    Made { unit, number: line.line as usize - 1 }
                });
                let (memory, mnemonic) = known.map(|i| (i.named_memory(), i.mnemonic())).unwrap_or_default();
                code.decoded.push(Decoded { instruction: *instruction, memory, mnemonic, line });
            }
        }
        code
    }

    /// The branches and accesses of the code, and what they were compiled from.
    pub(crate) fn places(&self, claims: &[Vec<Claim>], source: &Source) -> Vec<Place> {
        let matcher = Matcher::of(self, claims, source);
        self.decoded.iter().filter_map(|d| matcher.place(d, source)).collect()
    }
}

/// The file's IR: the one that the line table names, or that of the same name in another folder.
pub(crate) fn read(path: &Path, elsewhere: Option<&Path>) -> anyhow::Result<Module> {
    let path = match elsewhere {
        Some(folder) => folder.join(path.file_name().unwrap_or_default()),
        None => path.to_owned(),
    };
    let read = Module::read(&path);
    read.map_err(|error| anyhow::anyhow!("{error}; if the folder of --keep-ir was moved, name it with --ir"))
}

fn is_ir(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|e| e == "bc")
}

fn is_branch(kind: Kind) -> bool {
    matches!(kind, Kind::Branch | Kind::IndirectJump)
}

struct Matcher<'a> {
    claims: &'a [Vec<Claim>],
    /// Where functions begin that have IR.
    functions: FxHashSet<Pc>,
    /// The code with lines of the IR, by address.
    lined: Vec<(Pc, Made)>,
    /// Accesses that have code of their own.
    own: FxHashSet<Made>,
    /// How many branches in the code were compiled from it.
    branches: FxHashMap<Made, usize>,
}

impl<'a> Matcher<'a> {
    fn of(code: &Code, claims: &'a [Vec<Claim>], source: &Source) -> Matcher<'a> {
        let mut matcher = Matcher {
            claims,
            functions: FxHashSet::default(),
            lined: code.decoded.iter().filter_map(|d| Some((d.instruction.pc, d.line?))).collect(),
            own: FxHashSet::default(),
            branches: FxHashMap::default(),
        };
        matcher.lined.sort_unstable();
        for decoded in &code.decoded {
            let Some(made) = decoded.line else { continue };
            matcher.functions.extend(source.function_start(decoded.instruction.pc));
            if is_branch(decoded.instruction.kind) {
                *matcher.branches.entry(made).or_default() += 1;
            }
            if let ([operand], Some(claim)) = (decoded.memory.as_slice(), matcher.claim(made))
                && does_the_same(operand, claim)
            {
                matcher.own.insert(made);
            }
        }
        matcher
    }

    fn claim(&self, made: Made) -> Option<&'a Claim> {
        self.claims[made.unit].get(made.number)
    }

    fn place(&self, decoded: &Decoded, source: &Source) -> Option<Place> {
        let instruction = &decoded.instruction;
        let has_ir = source.function_start(instruction.pc).is_some_and(|start| self.functions.contains(&start));
        let known = decoded.line.and_then(|made| self.claim(made).map(|claim| (made, claim)));
        let outside = |origin: Origin| if has_ir { origin } else { Origin::NoIr };
        // A call in the place of a return is no branch.
        let is_call = known.is_some_and(|(_, claim)| claim.opcode.starts_with("call") && claim.direction.is_none());
        let branches = is_branch(instruction.kind) && !(instruction.kind == Kind::IndirectJump && is_call);
        let branch = branches.then(|| outside(known.map_or(Origin::Unmatched, |known| self.branch(known))));
        let access = (instruction.memory > 0).then(|| outside(self.access(decoded, known)));
        let maybe_frame = decoded.memory.iter().any(|m| m.base.is_some_and(|base| base.is_whole(Register::BP)));
        (branch.is_some() || access.is_some()).then_some(Place {
            pc: instruction.pc,
            line: decoded.line,
            branch,
            access,
            writes: decoded.memory.iter().any(|m| m.access.writes),
            maybe_frame,
        })
    }

    fn branch(&self, (made, claim): (Made, &Claim)) -> Origin {
        match claim.direction {
            None => Origin::Unmatched,
            Some(Direction::Parts) if self.branches.get(&made) != Some(&1) => Origin::Unmatched,
            Some(_) => Origin::Matched(made),
        }
    }

    fn access(&self, decoded: &Decoded, known: Option<(Made, &Claim)>) -> Origin {
        let operand = match (decoded.memory.as_slice(), decoded.instruction.memory) {
            ([], _) => return Origin::Generated,
            ([operand], 1) => operand,
            _ => return Origin::Unmatched,
        };
        let is_of_stack = operand.base.is_some_and(|base| base.is_whole(Register::SP));
        let is_generated = is_of_stack || operand.by_pc && operand.index.is_none();
        let own = if is_generated { Origin::Generated } else { Origin::Unmatched };
        let Some((made, claim)) = known else { return self.without_line(decoded, operand, own) };
        // What is loaded back from a frame has the line of what comes next.
        if is_of_stack && !claim.local {
            return own;
        }
        if does_the_same(operand, claim) {
            return Origin::Matched(made);
        }
        // A switch's table of targets.
        if claim.opcode == "switch" && (decoded.instruction.kind == Kind::IndirectJump || decoded.mnemonic == "movsxd")
        {
            return Origin::Generated;
        }
        if operand.access.writes || is_of_stack {
            return own;
        }
        let near = self.unowned(made.unit, &claim.near, operand);
        let loads = if near.is_empty() { self.unowned(made.unit, &claim.far, operand) } else { near };
        self.one_of(&loads).map_or(own, Origin::Matched)
    }

    /// Of a load that lost its line: one of those of its function that have no code, where there is one, or all are
    /// alike.
    fn without_line(&self, decoded: &Decoded, operand: &Memory, own: Origin) -> Origin {
        if operand.access.writes || own == Origin::Generated {
            return own;
        }
        let Some((unit, function)) = self.around(decoded.instruction.pc) else { return own };
        let all: Vec<usize> = (0..self.claims[unit].len())
            .filter(|&n| self.claims[unit][n].function == function && self.claims[unit][n].opcode == "load")
            .collect();
        self.one_of(&self.unowned(unit, &all, operand)).map_or(own, Origin::Matched)
    }

    /// The function of the IR from which the code around was compiled.
    fn around(&self, pc: Pc) -> Option<(usize, usize)> {
        let after = self.lined.partition_point(|(other, _)| *other <= pc);
        let (before, after) = (self.lined.get(after.checked_sub(1)?)?.1, self.lined.get(after)?.1);
        let of = |made: Made| self.claim(made).map(|claim| (made.unit, claim.function));
        of(before).filter(|function| of(after) == Some(*function))
    }

    fn one_of(&self, loads: &[Made]) -> Option<Made> {
        let (iced, rest) = loads.split_first()?;
        rest.iter().all(|load| self.are_alike(*iced, *load)).then_some(*iced)
    }

    /// Those of these loads that have no code of their own, and can be what this operand reads.
    fn unowned(&self, unit: usize, loads: &[usize], operand: &Memory) -> Vec<Made> {
        let all = loads.iter().map(|&number| Made { unit, number }).filter(|made| !self.own.contains(made));
        all.filter(|made| self.claim(*made).is_some_and(|claim| claim.global == is_fixed(operand))).collect()
    }

    /// Whether it makes no difference to which of two loads something belongs: the same is claimed of both, and they
    /// are of one line.
    fn are_alike(&self, one: Made, other: Made) -> bool {
        let (Some(one), Some(other)) = (self.claim(one), self.claim(other)) else { return false };
        let line = |claim: &Claim| claim.place.as_ref().map(|p| (p.file.clone(), p.line));
        one.read == other.read && line(one) == line(other)
    }
}

/// Whether the operand is at a distance from the instruction that is always the same.
fn is_fixed(operand: &Memory) -> bool {
    operand.index.is_none() && (operand.by_pc || operand.base.is_none())
}

/// Whether the operand can be the access of the IR itself: it reads, or writes, as that does. An operand at a fixed
/// distance is not an access by a computed address.
fn does_the_same(operand: &Memory, claim: &Claim) -> bool {
    if is_fixed(operand) && operand.segment.is_none() && !claim.global {
        return false;
    }
    operand.access.reads && claim.read.is_some() || operand.access.writes && claim.written.is_some()
}
