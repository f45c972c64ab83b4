//! The first stage of a view: what threads did, and the segments that they ran, with the turns of loops that may wait.

use heuristics::SegmentTable;
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Instruction, LibraryCode, Pc, Trace};

use super::region::Choice;
use super::survey::{ThreadSurvey, survey};
use crate::view::waits::own_locks::{Acts, OwnLocks};
use crate::view::{LoopSeen, Spin};
use crate::waiting::{self, Code, Found, Turn, Turns, Waiting};
use crate::{Error, Result};

/// All threads, looked at once.
pub(in crate::view) struct Looked {
    pub threads: Vec<ThreadSurvey>,
    pub own_locks: OwnLocks,
    pub segments: Segments,
}

/// The segments, and the turns that are made of them.
pub(in crate::view) struct Segments {
    pub table: SegmentTable,
    turns: Turns,
    /// Where loops begin of one segment, and end of several, that wait if they have to.
    lone: FxHashSet<Pc>,
    /// Where system calls are made that may wait for others.
    asks: FxHashSet<Pc>,
}

impl Looked {
    /// Looks at the whole trace.
    ///
    /// # Errors
    /// When it cannot be read, or no loop that could be waiting runs at the places that were named.
    pub fn at(trace: &Trace, spin: &Spin) -> Result<Looked> {
        let table = segments(trace, &[]);
        let looks_for_turns = trace.meta().engine != "text" && *spin != Spin::Keep;
        let code = looks_for_turns.then(|| Code::new(trace, &table, spin.places()));
        let acts = if trace.meta().engine == "text" {
            Acts::none(trace, &table)
        } else {
            Acts::of(trace, &table, code.as_ref())
        };
        let mut threads = survey(trace, code.as_ref(), &acts)?;
        let own_locks = OwnLocks::new(threads.iter().map(|thread| &thread.words), &acts);
        let mut turns = Turns::default();
        threads.iter_mut().for_each(|thread| waiting::merge(&mut turns, std::mem::take(&mut thread.turns)));
        if let Some(code) = &code {
            waiting::settle(&mut turns, code);
        }
        if !spin.places().is_empty() && !turns.keys().any(|turn| runs(&table, turn, spin.places())) {
            return Err(Error::Request(
                "no loop that could be spin-waiting runs there: the iterations of such a loop write no memory except \
                 the thread's stack"
                    .into(),
            ));
        }
        let mut polls = vec![false; table.len()];
        turns.keys().flat_map(|turn| turn.iter()).for_each(|segment| polls[segment.0 as usize] = true);
        let polls = |block| table.of_block(block).iter().any(|segment| polls[segment.0 as usize]);
        threads.iter_mut().for_each(|thread| thread.mutexes.settle(polls));
        let (mut lone, asks) = code.map_or_else(Default::default, |code| (code.lone_waits(), code.questions()));
        lone.extend(threads.iter().flat_map(|thread| &thread.lone));
        Ok(Looked { threads, own_locks, segments: Segments { table, turns, lone, asks } })
    }
}

impl Segments {
    /// Cut also where blocks were left half-way, where the region's function begins, and before what takes or gives a
    /// lock of the program's own.
    pub fn cut(self, trace: &Trace, threads: &[ThreadSurvey], own_locks: &OwnLocks, choice: &Choice) -> Segments {
        let mut cuts: FxHashSet<Pc> =
            choice.rule.entries.iter().chain(choice.rule.exits.iter().flatten()).copied().collect();
        cuts.extend(choice.marks.keys());
        cuts.extend(own_locks.acts.keys());
        cuts.extend(threads.iter().flat_map(|t| &t.cuts));
        let mut cuts: Vec<Pc> = cuts.into_iter().collect();
        cuts.sort_unstable();
        let is_cut = |i: &Instruction| cuts.binary_search(&i.pc).is_ok();
        if cuts.is_empty() || !self.table.iter().any(|(_, segment)| segment.instructions[1..].iter().any(is_cut)) {
            return self;
        }
        let finer = segments(trace, &cuts);
        let turns = waiting::in_other_table(self.turns, &self.table, &finer);
        Segments { table: finer, turns, ..self }
    }

    /// The turns that are left out.
    pub fn waiting(&self, spin: &Spin) -> Waiting {
        let waits = self.turns.iter().filter(|(turn, found)| waits(&self.table, turn, found, spin));
        Waiting::new(waits.map(|(turn, _)| turn.clone()), [&self.lone, &self.asks], &self.table)
    }

    /// The loops that are not left out and could be, those with the most instructions first.
    pub fn loops(&self, spin: &Spin) -> Vec<LoopSeen> {
        let mut by_head: FxHashMap<Pc, LoopSeen> = FxHashMap::default();
        for (_, found) in self.turns.iter().filter(|(turn, found)| !waits(&self.table, turn, found, spin)) {
            let pc = found.head;
            let seen = by_head.entry(pc).or_insert(LoopSeen { pc, instructions: 0, looks_like_waiting: true });
            seen.instructions += found.instructions;
            seen.looks_like_waiting &= found.looks_like_waiting();
        }
        let mut all: Vec<LoopSeen> = by_head.into_values().collect();
        all.sort_unstable_by_key(|seen| (std::cmp::Reverse(seen.instructions), seen.pc));
        all
    }
}

/// Those of a trace, cut also at these addresses.
fn segments(trace: &Trace, cuts: &[Pc]) -> SegmentTable {
    let mut table = SegmentTable::new(trace.blocks(), cuts);
    let libraries = LibraryCode::new(trace.modules(), trace.symbols());
    // By that function a program waits itself.
    let is_asked = |pc| trace.symbol_of(pc).is_some_and(|symbol| symbol.name == "syscall");
    table.name_libraries(|pc| libraries.has(pc) && !is_asked(pc));
    table
}

/// Whether the turn is left out.
fn waits(table: &SegmentTable, turn: &Turn, found: &Found, spin: &Spin) -> bool {
    match spin {
        Spin::Keep => false,
        Spin::Auto => found.waits(),
        Spin::At(places) => found.waits() || runs(table, turn, places),
    }
}

/// Whether the turn runs an instruction at one of these addresses.
fn runs(table: &SegmentTable, turn: &Turn, places: &[Pc]) -> bool {
    let mut instructions = turn.iter().flat_map(|segment| &table[*segment].instructions);
    instructions.any(|instruction| places.contains(&instruction.pc))
}
