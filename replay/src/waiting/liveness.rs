//! Whether what a turn carries is read where a branch of it leads, as far as the code that ran tells without a thread.
//!
//! A branch inside a counted loop may follow from memory, too: both of its ways lead on to the loop's end, which
//! counts. Such a branch ends no wait. So the code behind the other way is searched for a read of what is carried.

use heuristics::SegmentId;
use rustc_hash::FxHashMap;
use trace_format::{Kind, Pc, SpEffect};

use super::code::Code;
use super::live_out::{LiveOut, follow};
use super::loop_effects::Effects;
use super::registers::{FIRST_SLOT, Registers, is_preserved};

/// Segments that are searched at most.
const MOST_SEARCHED: usize = 256;

/// Where the search is.
#[derive(Clone)]
struct Place {
    at: Pc,
    watched: LiveOut,
    /// Where the calls return to that are open, the latest last.
    calls: Vec<Pc>,
}

/// Whether code that can be reached from this address, to which the turn's branch of this number can lead, reads what
/// the turn carries before it is written over.
///
/// Code that no thread ran counts as reading it where it lies among the turn's, as an arm of the loop does. Else what
/// is not known counts as not read: such code, behind an indirect jump, in functions that it calls, and behind a return
/// from the function in which the turn is.
pub(super) fn is_read_from(to: Pc, branch: usize, turn: &[SegmentId], effects: &Effects, code: &Code) -> bool {
    let calls = &effects.behind[branch].calls;
    let mut open = vec![Place { at: to, watched: effects.watched(0, branch), calls: calls.clone() }];
    let is_of_function = |at: &usize| effects.behind[(at + turn.len() - 1) % turn.len()].calls == *calls;
    let places = || (0..turn.len()).filter(is_of_function).map(|at| code.table[turn[at]].start());
    let of_loop = places().min()..places().max();
    let mut seen: FxHashMap<(SegmentId, usize), Registers> = FxHashMap::default();
    while let Some(place) = open.pop() {
        if code.starting_at(place.at).is_empty() && place.calls == *calls && of_loop.contains(&Some(place.at)) {
            return true;
        }
        for id in code.starting_at(place.at) {
            let known = seen.entry((*id, place.calls.len())).or_default();
            if place.watched.registers & !*known == 0 {
                continue;
            }
            *known |= place.watched.registers;
            if seen.len() > MOST_SEARCHED {
                return false;
            }
            let Place { mut watched, mut calls, .. } = place.clone();
            let segment = &code.table[*id];
            let (_, touches) = code.touches(*id);
            if touches.iter().any(|touch| follow(&mut watched, *touch, &effects.slots, false)) {
                return true;
            }
            let last = segment.last();
            let is_call = last.kind.is_call();
            match segment.sp {
                // The return address is gone from the stack where the thread is back.
                SpEffect::Add(by) => {
                    watched.move_to(watched.sp + i64::from(by) + if is_call { 8 } else { 0 }, &effects.slots);
                }
                SpEffect::Recorded => watched.registers &= !watched.in_stack,
            }
            if is_call {
                let lost = (0..FIRST_SLOT).filter(|r| !is_preserved(*r)).fold(0, |all, r| all | 1 << r);
                watched.registers &= !(lost & !watched.saved.registers);
            }
            if watched.registers == 0 {
                continue;
            }
            let next = match last.kind {
                Kind::Return => calls.pop(),
                Kind::Jump => code.targets.get(id).copied(),
                Kind::IndirectJump => None,
                _ if segment.ways.is_some() => None,
                _ => last.next_pc(),
            };
            for at in segment.ways.into_iter().flatten().chain(next) {
                open.push(Place { at, watched: watched.clone(), calls: calls.clone() });
            }
        }
    }
    false
}
