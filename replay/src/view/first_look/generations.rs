//! Generations: which lanes could never run together, since the program joined one before it started the other.
//!
//! A lane's generation is the least number above those of all lanes that had been joined before it began, as the thread
//! that started it knew: what a thread joins, it knows, and what it knows, those know that it starts and those that
//! join it. Lanes of one warp are of one generation, and a generation runs after those of smaller numbers, as the forks
//! of OpenMP do.
//!
//! A join names a handle, but a start does not. The handle is the address of the thread's own block, which both glibc
//! and musl put right above its stack. So the joined thread is the one whose first stack pointer is the next below the
//! handle; if several had that stack, the latest. That is believed only if it had not been joined before, and has
//! ended; else no order is assumed.
//!
//! A thread that reaches the region more than once (`main`, which joins what it started and calls the same function
//! itself) is a lane of each generation in which it does: it goes on to the next when all others of its generation have
//! been joined.

use std::ops::Range;
use std::rc::Rc;

use trace_format::Seq;

use crate::view::first_look::survey::ThreadSurvey;

/// The extents of a thread that is one lane.
pub(in crate::view) const WHOLE_THREAD: Range<u64> = 0..u64::MAX;

/// How far above a thread's first stack pointer its handle lies at most: its thread-local memory lies between.
const MOST_ABOVE_STACK: u64 = 16 << 20;

/// A part of a thread's stay in the region, between two joins of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::view) struct Part {
    /// The first extent of it, counted from the thread's first.
    pub extent: u64,
    pub begin: Seq,
    /// Instructions kept before it.
    pub kept_before: u64,
}

/// Parts of one thread that are one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::view) struct Stay {
    pub thread: usize,
    pub begin: Seq,
    pub generation: u32,
    /// The extents.
    pub extents: Range<u64>,
}

/// The lanes by generation, and of one generation by thread; and the joins of which it is not known whom they joined.
pub(in crate::view) fn generations(threads: &[ThreadSurvey], parts: &[Vec<Part>], kept: &[u64]) -> (Vec<Stay>, usize) {
    let started = started(threads);
    let (joins, unsure) = joined_threads(threads, &started);
    let parts: Vec<Vec<Part>> = parts.iter().zip(kept).map(|(parts, kept)| with_instructions(parts, *kept)).collect();
    let mut stays = Order::new(threads, &started, &parts).follow(&joins, &parts);
    stays.sort_by_key(|stay| (stay.generation, stay.thread));
    // Generations without kept instructions don't count.
    let mut numbers: Vec<u32> = stays.iter().map(|stay| stay.generation).collect();
    numbers.dedup();
    for stay in &mut stays {
        stay.generation = numbers.partition_point(|number| *number < stay.generation) as u32;
    }
    (stays, unsure)
}

/// The parts with kept instructions.
fn with_instructions(parts: &[Part], kept: u64) -> Vec<Part> {
    let ends = parts.iter().skip(1).map(|next| next.kept_before).chain([kept]);
    parts.iter().zip(ends).filter(|(part, end)| *end > part.kept_before).map(|(part, _)| part.clone()).collect()
}

/// A join that came back, and whom it joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Joined {
    at: Seq,
    by: usize,
    thread: usize,
}

/// By thread: when it was started. That is when its maker called for it: what the thread itself does first may come
/// later than what its maker does next. Where the calls of a maker are not as many as the threads that it made, it is
/// that first act.
fn started(threads: &[ThreadSurvey]) -> Vec<Option<Seq>> {
    let mut children = vec![Vec::new(); threads.len()];
    for (t, thread) in threads.iter().enumerate() {
        if let Some(of) = thread.start.and_then(|start| start.parent).and_then(|parent| children.get_mut(parent)) {
            of.push(t);
        }
    }
    let mut started: Vec<Option<Seq>> = threads.iter().map(|thread| thread.start.map(|start| start.seq)).collect();
    // Threads are numbered in the order in which they are made.
    for (maker, children) in threads.iter().zip(&children).filter(|(maker, made)| maker.creates.len() == made.len()) {
        for (child, create) in children.iter().zip(&maker.creates) {
            started[*child] = Some(*create);
        }
    }
    started
}

/// Whom each join joined; and of how many that is not known.
fn joined_threads(threads: &[ThreadSurvey], started: &[Option<Seq>]) -> (Vec<Joined>, usize) {
    let process = |thread: usize| {
        let mut at = thread;
        // A parent has a smaller number than its child, in any trace that a program made.
        while let Some(parent) = threads[at].start.and_then(|s| s.parent).filter(|p| *p < at) {
            at = parent;
        }
        at
    };
    let processes: Vec<usize> = (0..threads.len()).map(process).collect();
    let all = threads.iter().enumerate().flat_map(|(by, t)| t.joins.iter().map(move |join| (by, *join)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, join)| join.leave);
    // By process and stack pointer; of equal ones the latest last.
    let mut stacks: Vec<(usize, u64, Seq, usize)> = threads
        .iter()
        .enumerate()
        .filter_map(|(t, survey)| Some((processes[t], survey.start?.sp, started[t]?, t)))
        .collect();
    stacks.sort_unstable();
    let mut known = Vec::new();
    let mut is_joined = vec![false; threads.len()];
    let mut unsure = 0;
    for (by, join) in all {
        // Whose stack lies next below: those threads had it one after another.
        let below = stacks.partition_point(|(process, sp, ..)| (*process, *sp) < (processes[by], join.handle));
        let next = stacks[..below].last().map(|(process, sp, ..)| (*process, *sp));
        let from = stacks.partition_point(|(process, sp, ..)| Some((*process, *sp)) < next);
        let latest = stacks[from..below].iter().rev().find(|(_, _, start, _)| *start < join.enter);
        let found = latest.filter(|(process, sp, _, thread)| {
            let near = *process == processes[by] && join.handle - sp <= MOST_ABOVE_STACK;
            near && threads[*thread].end.is_some() && !is_joined[*thread]
        });
        match found {
            Some((.., thread)) => {
                is_joined[*thread] = true;
                known.push(Joined { at: join.leave, by, thread: *thread });
            }
            None => unsure += 1,
        }
    }
    (known, unsure)
}

/// Threads, one bit each.
#[derive(Clone, Default)]
struct Threads(Vec<u64>);

impl Threads {
    fn insert(&mut self, thread: usize) {
        if self.0.len() <= thread / 64 {
            self.0.resize(thread / 64 + 1, 0);
        }
        self.0[thread / 64] |= 1 << (thread % 64);
    }

    fn contains(&self, thread: usize) -> bool {
        self.0.get(thread / 64).is_some_and(|word| word & 1 << (thread % 64) != 0)
    }

    fn add(&mut self, other: &Threads) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }
}

/// What a thread knows at a time.
#[derive(Clone, Default)]
struct Knowledge {
    /// The generation of what begins now: no lane of it or of a later one is known to be joined.
    floor: u32,
    /// Who was joined.
    joined: Rc<Threads>,
}

enum What {
    Start(Option<usize>),
    Join(usize),
    Begin(usize),
}

/// Follows the starts, joins and parts of all threads in the order in which they happened.
struct Order {
    happenings: Vec<(Seq, u8, usize, What)>,
    known: Vec<Knowledge>,
    /// By thread: its stays so far.
    stays: Vec<Vec<Stay>>,
}

impl Order {
    fn new(threads: &[ThreadSurvey], started: &[Option<Seq>], parts: &[Vec<Part>]) -> Order {
        let mut happenings = Vec::new();
        for (t, thread) in threads.iter().enumerate() {
            let start = thread.start.zip(started[t]);
            happenings.extend(start.map(|(start, at)| (at, 0, t, What::Start(start.parent))));
            happenings.extend(parts[t].iter().enumerate().map(|(i, part)| (part.begin, 2, t, What::Begin(i))));
        }
        Order { happenings, known: vec![Knowledge::default(); threads.len()], stays: vec![Vec::new(); threads.len()] }
    }

    fn follow(mut self, joins: &[Joined], parts: &[Vec<Part>]) -> Vec<Stay> {
        let mut happenings = std::mem::take(&mut self.happenings);
        happenings.extend(joins.iter().map(|join| (join.at, 1, join.by, What::Join(join.thread))));
        happenings.sort_by_key(|(seq, order, ..)| (*seq, *order));
        for (_, _, thread, what) in happenings {
            match what {
                What::Start(Some(parent)) if parent < self.known.len() => {
                    self.known[thread] = self.known[parent].clone();
                }
                What::Start(_) => {}
                What::Join(joined) => self.join(thread, joined),
                What::Begin(part) => self.begin(thread, &parts[thread][part]),
            }
        }
        self.stays.concat()
    }

    fn join(&mut self, by: usize, joined: usize) {
        let other = std::mem::take(&mut self.known[joined]);
        let own = &mut self.known[by];
        let above = self.stays[joined].last().map_or(0, |stay| stay.generation + 1);
        own.floor = own.floor.max(other.floor).max(above);
        let all = Rc::make_mut(&mut own.joined);
        all.add(&other.joined);
        all.insert(joined);
    }

    fn begin(&mut self, thread: usize, part: &Part) {
        let floor = self.known[thread].floor;
        let generation = match self.stays[thread].last() {
            Some(last) if floor <= last.generation || !self.all_joined(thread, last.generation..floor) => {
                return;
            }
            _ => floor,
        };
        if let Some(last) = self.stays[thread].last_mut() {
            last.extents.end = part.extent;
        }
        let extents = if self.stays[thread].is_empty() { WHOLE_THREAD } else { part.extent..u64::MAX };
        self.stays[thread].push(Stay { thread, begin: part.begin, generation, extents });
    }

    /// Whether this thread knows of all others that reached the region in these generations that they were joined.
    fn all_joined(&self, thread: usize, generations: Range<u32>) -> bool {
        let known = &self.known[thread].joined;
        let others = self.stays.iter().enumerate().filter(|(other, _)| *other != thread);
        let mut of_these = others.filter(|(_, stays)| stays.iter().any(|stay| generations.contains(&stay.generation)));
        of_these.all(|(other, _)| known.contains(other))
    }
}
