//! OpenMP tasks in the order in which they were made.
//!
//! Which creation an execution belongs to is told by the task's body and by what both name: with clang's runtime the
//! task's address, with gcc's a checksum of its data. Where several have equal names, the one that was made first is
//! taken to run first. Pieces of a taskloop are ordered by their iterations.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use trace_format::{Chunk, Seq};

use crate::view::first_look::survey::ThreadSurvey;

/// A task, or the tasks of a taskloop, is made.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct Creation {
    /// The body.
    pub object: u64,
    /// What its executions name.
    pub key: u64,
    pub enter: Seq,
}

/// A task runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::view) struct TaskRun {
    /// The body.
    pub object: u64,
    /// What its creation names.
    pub key: u64,
    pub enter: Seq,
    /// What orders it among the pieces of its taskloop, if it is one.
    pub piece: Option<i64>,
    /// The instructions in it; 0 where it is run inside of another one.
    pub instructions: u64,
    /// Whether it is run in no body of a team: a thread that waits behind its own runs it.
    pub is_behind: bool,
}

impl ThreadSurvey {
    /// The thread was given iterations: of a taskloop, if it has just begun to run a piece of one; or sections.
    pub fn chunk(&mut self, chunk: &Chunk) {
        if chunk.is_no_loops() {
            self.sections.insert(chunk.site);
        } else if let Some(run) = self.task_runs.last_mut().filter(|run| chunk.site.0 == run.object) {
            run.piece.get_or_insert(chunk.first());
        }
    }
}

/// The tasks' numbers.
#[derive(Clone, Debug, Default)]
pub(in crate::view) struct TaskOrder {
    /// Per thread: the number of each task that it runs, in that order, and which part of it: with clang a task that is
    /// `untied` returns where it waits or makes another, and is called again.
    pub numbers: Vec<Vec<(Seq, u32)>>,
    /// Per thread: of each piece of a taskloop that it runs, in that order, which execution of a taskloop it is of.
    pub taskloops: Vec<Vec<u32>>,
    /// Whether the creation of each is known by its name.
    pub all_known: bool,
}

/// What orders a run: when its task was made, its piece, and when it began; its thread and number there, and whether
/// it goes on with a task that has run before.
type Ordered = (Seq, i64, Seq, (usize, usize), bool);

impl TaskOrder {
    pub fn new(threads: &[ThreadSurvey]) -> TaskOrder {
        let mut creations: Vec<Creation> = threads.iter().flat_map(|t| t.creations.iter().copied()).collect();
        creations.sort_unstable_by_key(|creation| creation.enter);
        let runs = threads.iter().enumerate();
        let runs = runs.flat_map(|(t, thread)| thread.task_runs.iter().enumerate().map(move |(i, run)| (run, t, i)));
        let mut runs: Vec<(&TaskRun, usize, usize)> = runs.collect();
        runs.sort_unstable_by_key(|(run, ..)| run.enter);
        let mut known = Known::default();
        let (mut made, mut all_known) = (creations.into_iter().peekable(), true);
        let mut ordered: Vec<Ordered> = Vec::with_capacity(runs.len());
        let mut pieces: Vec<(usize, (Option<Seq>, u64))> = Vec::new();
        for (run, t, i) in runs {
            while let Some(creation) = made.next_if(|creation| creation.enter < run.enter) {
                known.add(creation);
            }
            let of_part = known.of_part(run);
            let creation = if run.piece.is_some() { known.of_piece(run) } else { known.take(run).or(of_part) };
            let creation = creation.or_else(|| {
                all_known = false;
                known.take_any(run)
            });
            if run.piece.is_some() {
                pieces.push((t, (creation, run.object)));
            }
            ordered.push((creation.unwrap_or(run.enter), run.piece.unwrap_or(0), run.enter, (t, i), of_part.is_some()));
        }
        ordered.sort_unstable();
        let mut numbers: Vec<Vec<_>> = threads.iter().map(|t| vec![(Seq(0), 0); t.task_runs.len()]).collect();
        let mut part = 0;
        for (number, (.., (t, i), goes_on)) in (0..).zip(ordered) {
            part = if goes_on { part + 1 } else { 0 };
            numbers[t][i] = (Seq(number), part);
        }
        TaskOrder { numbers, taskloops: numbered(&pieces, threads.len()), all_known }
    }
}

/// By thread, the numbers of the taskloops that pieces are of, which are told by their creation and body.
fn numbered(pieces: &[(usize, (Option<Seq>, u64))], threads: usize) -> Vec<Vec<u32>> {
    let mut all: Vec<(Option<Seq>, u64)> = pieces.iter().map(|(_, of)| *of).collect();
    all.sort_unstable();
    all.dedup();
    let mut numbers = vec![Vec::new(); threads];
    pieces.iter().for_each(|(t, of)| numbers[*t].push(all.partition_point(|one| one < of) as u32));
    numbers
}

/// The creations so far, by number.
#[derive(Default)]
struct Known {
    all: Vec<(Seq, bool)>,
    /// By body and key, and by body alone: those that may not have run, the first one first.
    by_key: FxHashMap<(u64, u64), VecDeque<usize>>,
    by_object: FxHashMap<u64, VecDeque<usize>>,
    /// The last ones.
    last_by_key: FxHashMap<(u64, u64), usize>,
    last_by_object: FxHashMap<u64, usize>,
}

impl Known {
    fn add(&mut self, creation: Creation) {
        let (number, key) = (self.all.len(), (creation.object, creation.key));
        self.all.push((creation.enter, false));
        self.by_key.entry(key).or_default().push_back(number);
        self.by_object.entry(creation.object).or_default().push_back(number);
        self.last_by_key.insert(key, number);
        self.last_by_object.insert(creation.object, number);
    }

    /// The creation of a piece of a taskloop, which has more. The name of clang's piece, an address, is its own, or was
    /// that of another task before; checksums are odd, addresses even.
    fn of_piece(&self, run: &TaskRun) -> Option<Seq> {
        let is_checksum = run.key & 1 == 1;
        let by_key = self.last_by_key.get(&(run.object, run.key)).filter(|_| is_checksum);
        by_key.or_else(|| self.last_by_object.get(&run.object)).map(|number| self.all[*number].0)
    }

    /// The creation of a task, which has no other.
    fn take(&mut self, run: &TaskRun) -> Option<Seq> {
        first(self.by_key.get_mut(&(run.object, run.key))?, &mut self.all)
    }

    /// The creation of a task that has run before, and goes on. clang's is named by its address, which is its own until
    /// another is made; equal checksums are of other tasks with equal data.
    fn of_part(&self, run: &TaskRun) -> Option<Seq> {
        let is_address = run.key & 1 == 0 && run.piece.is_none();
        let last = self.last_by_key.get(&(run.object, run.key)).filter(|_| is_address)?;
        let (enter, has_run) = self.all[*last];
        has_run.then_some(enter)
    }

    /// The same where the names differ: data that is copied by a function of the program is another than that which was
    /// copied. Then the first of the body's is taken.
    fn take_any(&mut self, run: &TaskRun) -> Option<Seq> {
        first(self.by_object.get_mut(&run.object)?, &mut self.all)
    }
}

/// The first of these creations that has not run.
fn first(left: &mut VecDeque<usize>, all: &mut [(Seq, bool)]) -> Option<Seq> {
    while let Some(number) = left.pop_front() {
        let (enter, has_run) = &mut all[number];
        if !std::mem::replace(has_run, true) {
            return Some(*enter);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(creations: &[(u64, u64)], runs: &[(u64, u64, Option<i64>)]) -> ThreadSurvey {
        let creation = |(key, enter): &(u64, u64)| Creation { object: 9, key: *key, enter: Seq(*enter) };
        let run = |(key, enter, piece): &(u64, u64, Option<i64>)| TaskRun {
            object: 9,
            key: *key,
            enter: Seq(*enter),
            piece: *piece,
            instructions: 0,
            is_behind: false,
        };
        ThreadSurvey {
            creations: creations.iter().map(creation).collect(),
            task_runs: runs.iter().map(run).collect(),
            ..ThreadSurvey::default()
        }
    }

    fn numbers(threads: &[ThreadSurvey]) -> (Vec<Vec<u64>>, bool) {
        let order = TaskOrder::new(threads);
        (order.numbers.iter().map(|of| of.iter().map(|(number, _)| number.0).collect()).collect(), order.all_known)
    }

    #[test]
    fn tasks_are_numbered_as_they_were_made_whoever_runs_them() {
        let made = [(0xa, 1), (0xb, 2), (0xc, 3), (0xa, 10)];
        let threads =
            [thread(&made, &[(0xc, 4, None)]), thread(&[], &[(0xb, 5, None), (0xa, 6, None), (0xa, 11, None)])];
        assert_eq!(numbers(&threads), (vec![vec![2], vec![1, 0, 3]], true));
    }

    #[test]
    fn of_equal_tasks_the_first_made_is_the_first_that_runs() {
        let threads = [thread(&[(1, 1), (1, 2), (5, 3)], &[(1, 4, None)]), thread(&[], &[(1, 5, None), (7, 6, None)])];
        assert_eq!(numbers(&threads), (vec![vec![0], vec![1, 2]], false), "the last one's data was changed");
    }

    #[test]
    fn a_task_that_is_called_again_goes_on() {
        let made = [(0xa0, 1), (0xb0, 2), (0xa0, 10)];
        let threads = [
            thread(&made, &[(0xa0, 3, None), (0xb0, 5, None), (0xa0, 11, None)]),
            thread(&[], &[(0xa0, 4, None), (0xa0, 6, None), (0xa0, 12, None)]),
        ];
        let order = TaskOrder::new(&threads);
        let of = |t: usize| order.numbers[t].iter().map(|(number, part)| (number.0, *part)).collect::<Vec<_>>();
        assert_eq!((of(0), of(1)), (vec![(0, 0), (3, 0), (4, 0)], vec![(1, 1), (2, 2), (5, 1)]));
        assert!(order.all_known);
    }

    #[test]
    fn pieces_follow_their_loop_by_iteration() {
        let loops = [(1, 1), (1, 20)];
        let threads = [
            thread(&loops, &[(1, 2, Some(30)), (1, 21, Some(0))]),
            thread(&[], &[(1, 3, Some(0)), (1, 4, Some(60)), (1, 22, Some(30))]),
        ];
        assert_eq!(numbers(&threads), (vec![vec![1, 3], vec![0, 2, 4]], true));
        assert_eq!(TaskOrder::new(&threads).taskloops, [vec![0, 1], vec![0, 0, 1]], "two executions of one taskloop");
    }

    #[test]
    fn an_address_that_was_another_tasks_does_not_name_the_loop_of_a_piece() {
        let loops = [(0x100, 1), (0x200, 20)];
        let threads = [thread(&loops, &[(0x100, 2, Some(0)), (0x200, 21, Some(0)), (0x100, 22, Some(30))])];
        assert_eq!(TaskOrder::new(&threads).taskloops, [vec![0, 1, 1]]);
    }

    #[test]
    fn a_task_whose_creation_is_unknown_stands_where_it_began() {
        let threads = [thread(&[(1, 5), (2, 6)], &[(3, 2, None), (2, 7, None), (1, 8, None)])];
        assert_eq!(numbers(&threads), (vec![vec![0, 2, 1]], false));
    }
}
