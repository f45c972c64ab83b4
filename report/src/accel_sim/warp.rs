//! What one warp runs, line by line.

use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use heuristics::LaneSet;
use replay::metrics::{Ended, Finding, Measured, Metric, Stack, Step, Warp};
use replay::{Result, SyncEvent};

use super::code::{Code, Part};
use super::{addresses, failed};

/// Where the beginning of a lane's stack lies in its local memory: stacks grow towards 0 from there.
const LOCAL: u64 = 1 << 24;

/// So many bytes of a warp are kept in memory.
const KEPT: usize = 1 << 20;

/// Lines of warps that run side by side, in a file without a name.
pub(super) struct Scratch {
    file: File,
    end: AtomicU64,
}

impl Scratch {
    pub fn new() -> Result<Scratch> {
        let file = tempfile::tempfile().map_err(|source| failed(&std::env::temp_dir(), source))?;
        Ok(Scratch { file, end: AtomicU64::new(0) })
    }

    /// Adds these bytes; returns where they are.
    fn put(&self, bytes: &[u8]) -> Result<(u64, usize)> {
        let at = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, at).map_err(|source| failed(Path::new("a temporary file"), source))?;
        Ok((at, bytes.len()))
    }

    pub fn get(&self, (at, length): (u64, usize)) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

/// What a warp ran.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// Its number in the replay.
    pub number: usize,
    /// The launch that it is of.
    pub launch: u32,
    pub lanes: usize,
    /// Lines, without that of its end.
    pub instructions: u64,
    /// Where in the scratch file they are.
    pub pieces: Vec<(u64, usize)>,
}

/// What warps ran, in any order.
#[derive(Clone, Debug)]
pub(super) struct Traced(pub Vec<Lines>);

impl Measured for Traced {
    fn merge(&mut self, other: &Traced) {
        self.0.extend_from_slice(&other.0);
    }
}

/// Writes down what one warp runs.
pub(super) struct WarpTrace {
    code: Arc<Code>,
    scratch: Arc<Scratch>,
    lines: Lines,
    text: String,
    addresses: Vec<u64>,
}

impl WarpTrace {
    pub fn new(warp: &Warp, code: &Arc<Code>, scratch: &Arc<Scratch>) -> WarpTrace {
        let (number, launch, lanes) = (warp.number(), warp.launch(), warp.lanes().len());
        WarpTrace {
            code: Arc::clone(code),
            scratch: Arc::clone(scratch),
            lines: Lines { number, launch, lanes, instructions: 0, pieces: Vec::new() },
            text: String::new(),
            addresses: Vec::new(),
        }
    }

    fn keep(&mut self) -> Result<()> {
        self.lines.pieces.push(self.scratch.put(self.text.as_bytes())?);
        self.text.clear();
        Ok(())
    }
}

impl Metric for WarpTrace {
    fn step(&mut self, step: &Step) -> Result<()> {
        let mask = mask(step.lanes);
        let (segment, first) = step.place();
        let has_memory = step.instructions.iter().any(|instruction| instruction.memory > 0);
        let lanes: Vec<(&[u64], Option<Stack>)> = match has_memory {
            true => step.lanes.iter().map(|lane| (step.addresses(lane), step.stack(lane))).collect(),
            false => Vec::new(),
        };
        let mut before = 0;
        let code = Arc::clone(&self.code);
        for (instruction, at) in step.instructions.iter().zip(first..) {
            for part in code.parts(segment, at) {
                let is_local = place(part, before, &lanes, &mut self.addresses);
                let rest = if is_local { &part.local } else { &part.global };
                // Writing to a string cannot fail.
                let _ = write!(self.text, "{:04x} {mask:08x} {rest}", part.pc);
                if part.access.is_some() {
                    addresses::put(&mut self.text, mask, &self.addresses);
                }
                self.text.push('\n');
                self.lines.instructions += 1;
            }
            before += usize::from(instruction.memory);
        }
        if self.text.len() >= KEPT { self.keep() } else { Ok(()) }
    }

    fn synchronised(&mut self, event: &SyncEvent) {
        if let SyncEvent::Meets { lanes } = event {
            let _ = writeln!(self.text, "{:04x} {:08x} 0 BAR.SYNC 0 0 ", self.code.barrier, mask(*lanes));
            self.lines.instructions += 1;
        }
    }

    fn finish(mut self: Box<Self>, _ended: &Ended) -> Result<Finding> {
        self.keep()?;
        Ok(Finding::new(Traced(vec![self.lines])))
    }
}

/// A lane sits where its number says, since its warp shares no fetches with others.
fn mask(lanes: LaneSet) -> u32 {
    lanes.iter().fold(0, |mask, lane| mask | 1 << lane.index())
}

/// Finds the addresses of what a part accesses, in the order of lanes; returns whether they are in local memory. Of
/// each lane its addresses are known, of which so many are those of instructions before, and its stack.
fn place(part: &Part, before: usize, lanes: &[(&[u64], Option<Stack>)], addresses: &mut Vec<u64>) -> bool {
    addresses.clear();
    let Some(access) = part.access else { return false };
    let address = |lane: &(&[u64], Option<Stack>)| lane.0[before + access.operand].wrapping_add(access.offset);
    if part.may_be_local {
        // Local memory is accessed in words at their multiples, or inside of one.
        let aligned = access.bytes.min(4);
        let local = |lane: &(&[u64], Option<Stack>)| {
            let (address, stack) = (address(lane), lane.1.as_ref()?);
            let local = LOCAL.checked_add_signed(address.wrapping_sub(stack.zero).cast_signed())?;
            (stack.addresses.contains(&address) && local.is_multiple_of(aligned)).then_some(local)
        };
        addresses.extend(lanes.iter().map_while(local));
        if addresses.len() == lanes.len() {
            return true;
        }
        addresses.clear();
    }
    addresses.extend(lanes.iter().map(address));
    false
}
