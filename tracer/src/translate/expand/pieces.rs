//! Paths through returns and indirect jumps: functions may be left in the middle of them, unwound by an exception or a
//! `longjmp`.
//!
//! In that case the path is written in pieces, each with all of its addresses as values, and the events between them.

use trace_format::{Block, Instruction, Kind, SpEffect};

use super::{Expander, Stream, leave};
use crate::record::recorder::Recorder;
use crate::translate::code::values::Operand;
use crate::translate::translator::{Path, Translator};

/// A place in a path that a return or an indirect jump leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitPoint {
    /// How many instructions come before it.
    executed: u16,
    /// How many of the path's recorded stack pointers do.
    sps: u16,
    /// What was added to the stack pointer since the last of them, or altogether.
    added: i64,
}

impl ExitPoint {
    fn sp(&self, start: u64, sps: &[u64]) -> u64 {
        let last = self.sps.checked_sub(1).and_then(|last| sps.get(usize::from(last)));
        last.copied().unwrap_or(start).wrapping_add_signed(self.added)
    }
}

/// The exits in the middle of a path.
pub fn exits(instructions: &[Instruction]) -> Vec<ExitPoint> {
    let (mut sps, mut added, mut exits) = (0, 0, Vec::new());
    for (instruction, executed) in instructions.iter().zip(1..) {
        match instruction.sp {
            SpEffect::Add(bytes) => added += i64::from(bytes),
            SpEffect::Recorded => (sps, added) = (sps + 1, 0),
        }
        let is_exit = matches!(instruction.kind, Kind::IndirectJump | Kind::Return);
        if is_exit && usize::from(executed) < instructions.len() {
            exits.push(ExitPoint { executed, sps, added });
        }
    }
    exits
}

/// The most that is added to the stack pointer at an exit of a path without recorded stack pointers.
pub fn peak(exits: &[ExitPoint]) -> i64 {
    exits.iter().map(|exit| exit.added).max().unwrap_or(0).max(0)
}

impl Expander {
    /// Whether functions may be left at an exit of the path whose stack pointers and numbers have been read.
    pub(super) fn may_leave_inside(&self, exits: u32, stream: &Stream) -> bool {
        let safe = stream.sync.safe_up_to();
        self.tables.exits[exits as usize].iter().any(|exit| exit.sp(stream.sp, &self.sps) > safe)
    }

    /// Writes a path from exit to exit. Its stack pointers and numbers have been read.
    pub(super) fn in_pieces(
        &mut self,
        path: Path,
        exits: u32,
        stream: &mut Stream,
        translator: &Translator,
        recorder: &mut Recorder,
    ) {
        let superblock = translator.superblock(path.superblock);
        let instructions: Vec<Instruction> = superblock.instructions().take(path.executed.into()).collect();
        let start = stream.sp;
        let count = instructions.iter().map(|i| usize::from(i.memory)).sum();
        let addresses = superblock.operands.iter().take(count).map(|operand| match operand {
            Operand::Sum(sum) => sum.evaluate(start, &self.sps, &self.numbers),
            Operand::Other(operand) => operand.address(stream.segments, start, &self.sps, &self.numbers),
        });
        let addresses: Vec<u64> = addresses.collect();
        let (mut code, mut addresses, mut sps) = (superblock.code(), &addresses[..], &self.sps[..]);
        let ends = self.tables.exits[exits as usize].iter().map(|exit| (usize::from(exit.executed), Some(*exit)));
        let mut from = 0;
        for (to, exit) in ends.chain([(instructions.len(), None)]) {
            let piece = &instructions[from..to];
            from = to;
            let bytes = code.split_off(..piece.iter().map(|i| usize::from(i.len)).sum()).unwrap_or_default();
            let own = addresses.split_off(..piece.iter().map(|i| usize::from(i.memory)).sum()).unwrap_or_default();
            let recorded = piece.iter().filter(|i| i.sp == SpEffect::Recorded).count();
            let own_sps = sps.split_off(..recorded).unwrap_or_default();
            let block = Block { instructions: piece.to_vec(), code: bytes.to_vec(), addresses: Vec::new() };
            if let Some(block) = recorder.intern(&block, &translator.code.modules) {
                recorder.run(stream.id, block, own_sps, own);
            }
            if let Some(exit) = exit {
                let sp = exit.sp(start, &self.sps);
                if sp > stream.sync.safe_up_to() {
                    recorder.set_time(0);
                    leave(stream, sp, 0, recorder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use trace_format::Pc;

    use super::*;

    #[test]
    fn exits_are_behind_returns_and_indirect_jumps_but_for_the_last() {
        let at = |pc, kind, sp| Instruction { pc: Pc(pc), len: 1, kind, sp, memory: 0 };
        let list = [
            at(1, Kind::Return, SpEffect::Add(8)),
            at(2, Kind::Call, SpEffect::Add(-8)),
            at(3, Kind::Plain, SpEffect::Recorded),
            at(4, Kind::IndirectJump, SpEffect::Add(0)),
            at(5, Kind::Return, SpEffect::Add(8)),
        ];
        let exits = exits(&list);
        let [first, second] =
            [ExitPoint { executed: 1, sps: 0, added: 8 }, ExitPoint { executed: 4, sps: 1, added: 0 }];
        assert_eq!(exits, [first, second]);
        assert_eq!((first.sp(0x100, &[0x900]), second.sp(0x100, &[0x900])), (0x108, 0x900));
        assert_eq!(peak(&exits[..1]), 8);
    }
}
