//! The code of the kernels: what stands for each instruction of the program, and at which pc.
//!
//! Instructions have 16 bytes, one behind the other in the order of the program's addresses, from 0 on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use attribution::Source;
use heuristics::{Program, SegmentId};
use machine::{GpuAccess, GpuInstruction};
use replay::Result;
use rustc_hash::FxHashMap;
use trace_format::{Pc, Trace};

use super::failed;

/// The bytes of an instruction, its scheduling included, from Volta on.
const BYTES: u32 = 16;

/// One instruction of a kernel.
pub(super) struct Part {
    pub pc: u32,
    /// What stands behind the mask, up to the width of the access, of global or other memory.
    pub global: String,
    /// The same where it accesses local memory.
    pub local: String,
    /// None where it accesses no memory.
    pub access: Option<GpuAccess>,
    /// Whether it can access local memory.
    pub may_be_local: bool,
    opcode: String,
}

/// What stands for the instructions of a program.
pub(super) struct Code {
    /// By its place here: address, and parts.
    all: Vec<(Pc, Vec<Part>)>,
    /// By its place: whether a lane has run it.
    ran: Vec<AtomicBool>,
    /// By segment: the places of its instructions.
    segments: Vec<Vec<u32>>,
    /// How many registers it uses.
    pub registers: usize,
    /// The pcs behind it.
    pub barrier: u32,
    pub exit: u32,
}

impl Code {
    pub fn of(program: &Program) -> Code {
        let mut known: BTreeMap<Pc, Vec<GpuInstruction>> = BTreeMap::new();
        for (id, segment) in program.segments.iter() {
            for (instruction, decoded) in segment.instructions.iter().zip(program.segments.listing(id).iter()) {
                let addressed = usize::from(instruction.memory);
                known.entry(instruction.pc).or_insert_with(|| stands_for(decoded, addressed));
            }
        }
        let mut next = 0;
        let mut registers = Registers::default();
        let all: Vec<(Pc, Vec<Part>)> = known
            .into_iter()
            .map(|(pc, instructions)| {
                let parts = instructions.iter().map(|instruction| {
                    next += BYTES;
                    part(next - BYTES, instruction, &mut registers)
                });
                (pc, parts.collect())
            })
            .collect();
        let places: FxHashMap<Pc, u32> = all.iter().map(|(pc, _)| *pc).zip(0..).collect();
        let of_segment = |id: SegmentId| program.segments[id].instructions.iter().map(|i| places[&i.pc]).collect();
        let segments = program.segments.iter().map(|(id, _)| of_segment(id)).collect();
        let ran = all.iter().map(|_| AtomicBool::new(false)).collect();
        Code { all, ran, segments, registers: registers.0.len(), barrier: next, exit: next + BYTES }
    }

    /// The parts of an instruction of a segment, which runs.
    pub fn parts(&self, segment: SegmentId, at: u32) -> &[Part] {
        let place = self.segments[segment.0 as usize][at as usize] as usize;
        self.ran[place].store(true, Ordering::Relaxed);
        &self.all[place].1
    }

    /// Writes what each pc stands for that was run.
    pub fn write(&self, trace: &Trace, path: &Path) -> Result<()> {
        let mut source = Source::new(trace);
        let mut rows = csv::Writer::from_writer(BufWriter::new(File::create(path).map_err(|e| failed(path, e))?));
        let mut write = |row: [String; 7]| rows.write_record(row).map_err(|e| failed(path, e.into()));
        write(["pc", "part", "opcode", "address", "function", "file", "line"].map(str::to_owned))?;
        let ran = self.all.iter().zip(&self.ran).filter(|(_, ran)| ran.load(Ordering::Relaxed));
        for ((address, parts), _) in ran {
            let function = source.function(*address);
            let line = source.line(*address);
            let (file, line) = line.map_or_else(Default::default, |line| (line.file, line.line.to_string()));
            for (number, part) in parts.iter().enumerate() {
                let (pc, number, opcode) = (format!("{:x}", part.pc), number.to_string(), part.opcode.clone());
                write([pc, number, opcode, format!("{address}"), function.clone(), file.clone(), line.clone()])?;
            }
        }
        for (pc, opcode) in [(self.barrier, "BAR.SYNC"), (self.exit, "EXIT")] {
            let nothing = String::new;
            let pc = format!("{pc:x}");
            write([pc, nothing(), opcode.to_owned(), nothing(), nothing(), nothing(), nothing()])?;
        }
        rows.flush().map_err(|e| failed(path, e))
    }
}

/// What stands for an instruction with so many addresses. Of one whose code is not known, nothing is known but that it
/// ran.
fn stands_for(decoded: Option<machine::Instruction>, addressed: usize) -> Vec<GpuInstruction> {
    let unknown = || vec![GpuInstruction { opcode: "NOP", writes: None, reads: Vec::new(), access: None }];
    let mut code = decoded.map_or_else(unknown, machine::Instruction::gpu_code);
    for instruction in &mut code {
        if instruction.access.is_some_and(|access| access.operand >= addressed) {
            (instruction.opcode, instruction.access) = ("NOP", None);
        }
    }
    code
}

/// Registers by number, in the order of their first use.
#[derive(Default)]
struct Registers(Vec<u8>);

impl Registers {
    fn name(&mut self, register: u8) -> String {
        let known = self.0.iter().position(|known| *known == register);
        let number = known.unwrap_or_else(|| {
            self.0.push(register);
            self.0.len() - 1
        });
        format!("R{number} ")
    }
}

fn part(pc: u32, instruction: &GpuInstruction, registers: &mut Registers) -> Part {
    let to = instruction.writes.map_or("0 ".to_owned(), |to| format!("1 {}", registers.name(to)));
    let from: String = instruction.reads.iter().map(|register| registers.name(*register)).collect();
    let from = format!("{} {from}", instruction.reads.len());
    let bytes = instruction.access.map_or(0, |access| access.bytes);
    let width = match bytes {
        1 => ".U8",
        2 => ".U16",
        8 => ".64",
        16 => ".128",
        _ => "",
    };
    let [global, local] = match instruction.opcode {
        "LD" => [format!("LDG.E{width}"), format!("LDL{width}")],
        "ST" => [format!("STG.E{width}"), format!("STL{width}")],
        "ATOM" => [(); 2].map(|()| format!("ATOMG.E.ADD{width}.STRONG.GPU")),
        other => [(); 2].map(|()| format!("{other}{width}")),
    };
    let line = |opcode: &str| format!("{to}{opcode} {from}{bytes} ");
    Part {
        pc,
        may_be_local: global != local,
        global: line(&global),
        local: line(&local),
        access: instruction.access,
        opcode: global,
    }
}
