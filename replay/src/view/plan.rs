//! What all lanes of a view share: the static program, and what the first look at the trace decided.

use heuristics::{SegmentId, SegmentTable};
use rustc_hash::{FxHashMap, FxHashSet};
use trace_format::{Pc, Trace};

use super::blocks::BlockFacts;
use super::code::filter::Class;
use super::code::filter::Classifier;
use super::first_look::code::calls;
use super::first_look::episodes::Episodes;
use super::first_look::region::Choice;
use super::first_look::segments::Segments;
use super::first_look::survey::ThreadSurvey;
use super::first_look::task_order::TaskOrder;
use super::locks::LockTable;
use super::waits::LibraryData;
use super::waits::conditions::mutexes;
use super::waits::own_locks::OwnLocks;
use super::{Lanes, ViewOptions};
use crate::Locks;
use crate::waiting::{Waiting, Writes};

/// How the streams of threads become streams of lanes.
pub(super) struct Plan {
    pub table: SegmentTable,
    pub blocks: BlockFacts,
    /// Where calls return that give a team its share of a loop, in functions that start threads for it.
    pub distributes: FxHashSet<Pc>,
    /// Where calls return that share out no iterations but sections.
    pub shares_sections: FxHashSet<Pc>,
    /// Which part of each thread is replayed, and what to say about it.
    pub choice: Choice,
    pub lock_rule: Locks,
    pub locks: LockTable,
    /// Where libraries have locks of their own.
    pub libraries: LibraryData,
    pub episodes: Episodes,
    /// The numbers of OpenMP tasks, where each is a lane.
    pub tasks: TaskOrder,
    /// The turns of loops that are left out.
    pub waiting: Waiting,
    /// Which segments write elsewhere than to the stack.
    pub writes: Writes,
    /// The trace was read from text: threads are lanes just as they stand.
    pub is_text: bool,
    /// Streams tell where extents of the region begin.
    pub tells_extents: bool,
    /// Where the highest of all threads' stacks ends.
    pub stack_end: u64,
    /// The trace has memory addresses, so that streams tell where stacks lie.
    pub has_memory: bool,
}

impl Plan {
    /// Whether lanes keep what runs in the segment that begins there.
    pub fn can_keep(&self, start: Pc) -> bool {
        let mut at = self.table.iter().filter(|(_, segment)| segment.start() == start);
        at.any(|(id, _)| self.blocks.class(id) == Class::Keep)
    }

    /// What follows from the options, and from what was found and chosen.
    pub fn new(
        trace: &Trace,
        options: &ViewOptions,
        (threads, own_locks): (&[ThreadSurvey], &OwnLocks),
        (choice, segments): (Choice, Segments),
    ) -> Plan {
        let is_text = trace.meta().engine == "text";
        let classifier = (!is_text).then(|| Classifier::new(trace, options.code));
        let waiting = segments.waiting(&options.spin);
        let table = segments.table;
        let distributes =
            if options.lanes == Lanes::Threads { FxHashSet::default() } else { distributing(trace, &table) };
        let pool_is_one = trace.symbols().iter().any(|symbol| symbol.name == "__kmpc_fork_call");
        let episodes = Episodes::new(threads, &own_locks.barriers, pool_is_one);
        Plan {
            blocks: BlockFacts::new(trace, &table, classifier.as_ref(), (&choice.rule, &waiting, own_locks)),
            choice,
            lock_rule: if is_text { Locks::Ignore } else { options.locks },
            locks: lock_table(threads, own_locks, &episodes),
            libraries: LibraryData::of(trace),
            episodes,
            tasks: match options.lanes {
                Lanes::Tasks | Lanes::Iterations(_) | Lanes::Marks => TaskOrder::new(threads),
                Lanes::Threads | Lanes::Calls => TaskOrder::default(),
            },
            waiting,
            writes: Writes::new(table.len()),
            table,
            is_text,
            tells_extents: options.lanes != Lanes::Threads,
            stack_end: threads.iter().filter_map(|thread| Some(thread.start?.sp)).max().unwrap_or(0),
            has_memory: trace.meta().memory,
            distributes,
            shares_sections: threads.iter().flat_map(|thread| thread.sections.iter().copied()).collect(),
        }
    }
}

/// Where calls return that give iterations of a loop, in functions that start threads.
fn distributing(trace: &Trace, table: &SegmentTable) -> FxHashSet<Pc> {
    let function = |id: SegmentId| trace.symbol_of(table[id].last().pc).map(|symbol| symbol.pc);
    let those =
        |prefix: &'static str| calls(trace, table).filter(move |(_, name)| name.starts_with(prefix)).map(|(id, _)| id);
    let forking: Vec<Option<Pc>> = those("__kmpc_fork_call").map(function).collect();
    let sharing = those("__kmpc_for_static_init").filter(|id| forking.contains(&function(*id)));
    sharing.filter_map(|id| Some(table.listing(id).last()?.next_pc())).collect()
}

fn lock_table(threads: &[ThreadSurvey], own_locks: &OwnLocks, episodes: &Episodes) -> LockTable {
    let mut found = FxHashMap::default();
    for (object, (kind, _)) in threads.iter().flat_map(|t| &t.locks) {
        let known = found.entry(*object).or_insert(*kind);
        *known = (*known).min(*kind);
    }
    found.retain(|object, _| threads.iter().any(|thread| thread.asked.contains(object)));
    let calls: Vec<_> = threads.iter().map(|thread| &thread.conditions[..]).collect();
    let takes = threads
        .iter()
        .enumerate()
        .flat_map(|(t, thread)| thread.locks.iter().map(move |(object, (_, times))| (t, *object, *times)));
    let by_form = threads.iter().enumerate().flat_map(|(t, thread)| {
        let takes = thread.words.takes().filter(|(word, _)| own_locks.words.contains_key(word));
        takes.map(move |(word, times)| (t, word, times))
    });
    let mut of_barriers = mutexes(&calls, &episodes.conditions, takes, by_form);
    let gatherings = episodes.gatherings.iter().flat_map(|rounds| rounds.keys());
    of_barriers.extend(gatherings.map(|mutex| (*mutex, *mutex)));
    let semaphores = threads.iter().flat_map(|thread| &thread.semaphores);
    let values = threads.iter().flat_map(|thread| &thread.inits).map(|init| (init.object, init.count));
    LockTable::new(found, of_barriers, semaphores, values, own_locks)
}
