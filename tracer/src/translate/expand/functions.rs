//! Functions that are entered and left.

use std::ops::Range;

use trace_format::{Event, SyncFunction};

use super::{Expander, Stream, wide};
use crate::images::modules::regions;
use crate::images::sync_functions::{Argument, Role};
use crate::images::task_calls::TaskCall;
use crate::kernel::ptrace::{self, Registers, Tid};
use crate::record::recorder::Recorder;
use crate::translate::addresses::ProgramPc;
use crate::translate::translator::Translator;

impl Expander {
    /// A function is entered at this time. The values of its record are from that byte on.
    pub(super) fn enter(
        &mut self,
        words: &[u32],
        (time, values): (u64, u32),
        stream: &mut Stream,
        translator: &Translator,
        recorder: &mut Recorder,
    ) {
        if !stream.transferred {
            return;
        }
        // Where the translation is thrown away before the function's first instruction, the next one says this again.
        stream.transferred = false;
        let code = &translator.code;
        let (pc, role) = code.roles[words[1] as usize];
        recorder.set_time(time);
        leave(stream, stream.sp, 0, recorder);
        if let Role::Sync { function, object: Argument::Register(_), argument: Argument::None } = role {
            // The locks, of which there are many.
            if stream.sync.enter(function, stream.sp) {
                recorder.enter(stream.id, function, wide(words, values), 0, &code.modules);
            }
            return;
        }
        let recorded = (values..).step_by(8).map(|at| wide(words, at));
        self.enter_role((pc, role), recorded, stream, translator, recorder);
    }

    /// The same for the other functions: what was recorded are the registers that the role names, and then the words of
    /// memory.
    fn enter_role(
        &mut self,
        (pc, role): (ProgramPc, Role),
        mut recorded: impl Iterator<Item = u64>,
        stream: &mut Stream,
        translator: &Translator,
        recorder: &mut Recorder,
    ) {
        let mut registers: Registers = ptrace::no_registers();
        registers.rip = pc.0;
        let ptrace::Registers { rdi, rsi, rdx, rcx, r8, r9, .. } = &mut registers;
        for (_, register) in (0..).zip([rdi, rsi, rdx, rcx, r8, r9]).filter(|(number, _)| role.names(*number)) {
            *register = recorded.next().unwrap_or(0);
        }
        let read: Vec<u64> = recorded.take(role.words().map_or(0, |words| words.count.into())).collect();
        let code = &translator.code;
        match role {
            Role::SetsTeamSize(size) => stream.team_size = size.value(&registers, 0, &[]),
            // Recorded when it returns; seen when it was first called.
            Role::GivesChunk(_) | Role::MakesPieces => {}
            Role::BeginsAlone => {
                let caller = read.first().copied().unwrap_or(0);
                recorder.begin_alone(stream.id, &mut stream.sync, (pc.0, caller), &code.modules);
            }
            Role::EndsAlone => recorder.end_alone(stream.id, &mut stream.sync),
            Role::BeginsTask => {
                let routine = read.first().copied().unwrap_or(0);
                recorder.begin_task(stream.id, &mut stream.sync, (routine, registers.rdx), &code.modules);
            }
            Role::EndsTask => recorder.end_task(stream.id, &mut stream.sync),
            Role::Sync { function, object, argument } => {
                let object = object.value(&registers, 0, &read);
                let argument = argument.value(&registers, stream.team_size, &read);
                let has_begun = function == SyncFunction::TaskBody && stream.sync.has_begun(argument);
                if has_begun || !stream.sync.enter(function, stream.sp) {
                    return;
                }
                recorder.enter(stream.id, function, object, argument, &code.modules);
                let piece = |call: TaskCall| call.piece(code.modules.pc(pc.0), &read, code.taskloops.contains(&pc.0));
                if let Some(piece) = role.task().and_then(piece) {
                    recorder.event(stream.id, Event::Chunk(piece));
                }
                if crate::images::sync_functions::takes_team_size(function) {
                    stream.team_size = 0;
                }
            }
        }
    }
}

/// Functions that are left where control was transferred with this stack pointer.
pub(super) fn leave(stream: &mut Stream, sp: u64, result: u64, recorder: &mut Recorder) {
    let Stream { id, process, sync, other_stack, .. } = stream;
    while !sync.is_empty() {
        let Some(function) = sync.leave(sp, |a, b| same_stack(other_stack, *process, a, b)) else { break };
        recorder.leave(*id, function, result);
    }
}

/// Whether both addresses lie on one stack. Asked only when a function seems to have been unwound.
fn same_stack(other: &mut Option<Range<u64>>, process: Tid, a: u64, b: u64) -> bool {
    if other.as_ref().is_some_and(|stack| stack.contains(&b)) {
        return false;
    }
    match regions(process).iter().find(|r| r.contains(b)) {
        Some(region) if !region.contains(a) => {
            *other = Some(region.start..region.end);
            false
        }
        _ => true,
    }
}
