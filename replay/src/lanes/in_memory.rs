//! Lanes kept in memory, made from instructions: for tests, benches and generated programs.

use heuristics::{SegmentId, SegmentTable};
use rustc_hash::FxHashMap;
use trace_format::{Block, BlockTable, Instruction, Kind, Pc, SpEffect};

use crate::{Batch, Code, Control, Kept, LaneSource, LaneStream, LockId, Locks};

/// What a lane does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// Runs an instruction, with the addresses of its memory operands (as many as [`Instruction::memory`] says).
    Runs(Instruction, Vec<u64>),
    /// Reaches a control.
    Comes(Control),
}

impl Does {
    /// Runs a branch of one byte at this address, which leads to the next instruction of its lane, wherever that lies.
    #[must_use]
    pub fn branches(pc: u64) -> Does {
        Does::Runs(Instruction { pc: Pc(pc), len: 1, kind: Kind::Branch, sp: SpEffect::Add(0), memory: 0 }, Vec::new())
    }
}

/// Lanes kept in memory.
pub struct InMemory {
    segments: SegmentTable,
    lanes: Vec<Kept>,
    locks: Locks,
}

impl InMemory {
    /// Lanes that do these things, one after another. A stack-pointer change that is [`SpEffect::Recorded`] is taken
    /// for none.
    #[must_use]
    pub fn new(lanes: &[Vec<Does>]) -> InMemory {
        InMemory::in_batches(lanes, usize::MAX)
    }

    /// Lanes that run branches at these addresses, one after another ([`Does::branches`]).
    #[must_use]
    pub fn of_branches(lanes: &[&[u64]]) -> InMemory {
        let lanes = lanes.iter().map(|pcs| pcs.iter().map(|pc| Does::branches(*pc)).collect());
        InMemory::new(&lanes.collect::<Vec<_>>())
    }

    /// The same lanes under another rule for locks than [`Locks::Wait`].
    #[must_use]
    pub fn under(self, locks: Locks) -> InMemory {
        InMemory { locks, ..self }
    }

    /// The same, each lane in batches of about so many segments and controls.
    #[must_use]
    pub fn in_batches(lanes: &[Vec<Does>], codes: usize) -> InMemory {
        let mut blocks = BlockTable::default();
        let mut block_of = FxHashMap::default();
        // Where any lane can stand: at its first instruction, after a control, after a transfer, where pcs don't go on.
        let mut starts: Vec<Pc> = Vec::new();
        for lane in lanes {
            let mut before: Option<Instruction> = None;
            for does in lane {
                let Does::Runs(instruction, _) = does else {
                    before = None;
                    continue;
                };
                if before.is_none_or(|b| b.kind.transfers_control() || b.pc >= instruction.pc) {
                    starts.push(instruction.pc);
                }
                before = Some(*instruction);
            }
        }
        for lane in lanes {
            for run in straight_runs(lane) {
                block_of
                    .entry(run.clone())
                    .or_insert_with(|| blocks.push(Block { instructions: run, ..Block::default() }));
            }
        }
        let segments = SegmentTable::new(&blocks, &starts);
        let streams = lanes
            .iter()
            .map(|lane| {
                let (mut batches, mut batch) = (Vec::new(), Batch::default());
                let mut runs = straight_runs(lane).into_iter();
                let mut inside = false;
                for does in lane {
                    match does {
                        Does::Comes(control) => {
                            batch.codes.push(Code::control(batch.controls.len()));
                            batch.controls.push(*control);
                            inside = false;
                        }
                        Does::Runs(instruction, addresses) => {
                            let ends_well = batch.codes.last().is_some_and(|c| c.as_segment().is_some());
                            if !inside && ends_well && batch.codes.len() >= codes {
                                batches.push(std::mem::take(&mut batch));
                            }
                            batch.addresses.extend_from_slice(addresses);
                            if !inside {
                                let run = runs.next().expect("a run begins here");
                                let ids: &[SegmentId] = segments.of_block(block_of[&run]);
                                batch.codes.extend(ids.iter().map(|id| Code::segment(*id)));
                            }
                            inside = !instruction.kind.transfers_control();
                        }
                    }
                }
                batches.push(batch);
                Kept::plain(batches)
            })
            .collect();
        InMemory { segments, lanes: streams, locks: Locks::Wait }
    }
}

/// The instructions between controls and transfers of control.
fn straight_runs(lane: &[Does]) -> Vec<Vec<Instruction>> {
    let mut runs = Vec::new();
    let mut run: Vec<Instruction> = Vec::new();
    for does in lane {
        let ends = match does {
            Does::Runs(instruction, _) => {
                let sp = if instruction.sp == SpEffect::Recorded { SpEffect::Add(0) } else { instruction.sp };
                run.push(Instruction { sp, ..*instruction });
                instruction.kind.transfers_control()
            }
            Does::Comes(_) => true,
        };
        if ends && !run.is_empty() {
            runs.push(std::mem::take(&mut run));
        }
    }
    runs.extend((!run.is_empty()).then_some(run));
    runs
}

impl LaneSource for InMemory {
    fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn segments(&self) -> &SegmentTable {
        &self.segments
    }

    fn stream(&self, lane: usize) -> Box<dyn LaneStream + '_> {
        self.lanes[lane].stream()
    }

    fn locks(&self) -> Locks {
        self.locks
    }

    fn lock_name(&self, lock: LockId) -> String {
        format!("lock {}", lock.0)
    }
}
