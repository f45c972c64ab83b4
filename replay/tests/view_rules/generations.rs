//! Which lanes never ran together, since the program joined one before it started the other.

use heuristics::Spec;
use replay::metrics::{Cause, Causes, Checker};
use replay::view::{View, ViewOptions};
use replay::{Batch, LaneStream, ReplayOptions, replay};
use trace_format::{Event, Kind, SyncFunction::*, ThreadExit, ThreadId};

use crate::recording::*;

const SLAVE: u64 = MAIN + 0x80;

/// The stack of a thread by its number: 64 KiB each, the handle right above it.
fn stack(slot: u64) -> u64 {
    STACK + 0x1_0000 * slot
}

fn handle(slot: u64) -> u64 {
    stack(slot) + 0x940
}

/// A program of which the order of starts, ends and joins matters.
struct Program(Recording);

impl Program {
    fn new() -> Program {
        let mut made = Recording::new();
        made.symbol("slave", SLAVE, 16);
        let mut program = Program(made);
        program.start(0, None, 99);
        program
    }

    /// The thread starts on this stack, and runs its start routine.
    fn start(&mut self, thread: u32, parent: Option<u32>, slot: u64) {
        let seq = self.0.next_seq();
        let parent = parent.map(ThreadId);
        self.0.event(thread, Event::ThreadStart { parent, os_tid: 1 + thread, sp: stack(slot), seq });
        if parent.is_some() {
            self.0.enter(thread, ThreadBody, SLAVE).run(thread, &[plain(SLAVE), ret(SLAVE + 1)]);
        }
    }

    fn end(&mut self, thread: u32) {
        self.0.leave(thread, ThreadBody);
        let seq = self.0.next_seq();
        self.0.event(thread, Event::ThreadEnd { exit: ThreadExit::Exited(0), seq });
    }

    fn join(&mut self, by: u32, handle: u64) {
        self.0.inside(by, ThreadJoin, handle, 0, 0);
    }

    /// Ends, and is joined.
    fn joined(&mut self, by: u32, thread: u32, slot: u64) {
        self.end(thread);
        self.join(by, handle(slot));
    }

    fn view(self) -> View {
        View::new(&self.0.trace(), &ViewOptions::default()).unwrap()
    }
}

/// The threads of each generation.
fn generations(view: &View) -> Vec<Vec<u32>> {
    let lanes = view.lanes();
    lanes.chunk_by(|a, b| a.generation == b.generation).map(|of| of.iter().map(|l| l.thread.0).collect()).collect()
}

#[test]
fn threads_that_begin_after_others_were_joined_are_a_generation_of_their_own() {
    let mut program = Program::new();
    for generation in 0..3 {
        (0..4).for_each(|i| program.start(1 + 4 * generation + i, Some(0), u64::from(i)));
        // Out of order.
        [2, 0, 3, 1].into_iter().for_each(|i| program.joined(0, 1 + 4 * generation + i, u64::from(i)));
    }
    let view = program.view();
    assert_eq!(generations(&view), [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]);
    assert_eq!(view.lanes().iter().map(|l| l.generation).max(), Some(2));
    let line = view.summary().to_string();
    assert!(line.starts_with("12 lanes of 13 threads, start routine slave, in 3 generations, one after another, as the program joins its threads;"), "{line}");
}

#[test]
fn threads_that_were_made_before_a_join_are_of_the_same_generation_however_late_they_run() {
    let mut program = Program::new();
    (0..3).for_each(|_| {
        program.0.inside(0, ThreadCreate, SLAVE, 0, 0);
    });
    // One that could not be made.
    program.0.inside(0, ThreadCreate, SLAVE, 0, 11);
    program.start(1, Some(0), 0);
    program.joined(0, 1, 0);
    program.start(2, Some(0), 1);
    program.joined(0, 2, 1);
    program.start(3, Some(0), 2);
    program.joined(0, 3, 2);
    assert_eq!(generations(&program.view()), [[1, 2, 3]]);
}

#[test]
fn a_pool_that_grows_is_one_generation() {
    let mut program = Program::new();
    (0..4).for_each(|i| program.start(1 + i, Some(0), u64::from(i)));
    program.end(1);
    program.start(5, Some(0), 4);
    (2..6).for_each(|i| program.end(i));
    (0..5).for_each(|i| program.join(0, handle(i)));
    assert_eq!(generations(&program.view()), [[1, 2, 3, 4, 5]]);
}

#[test]
fn threads_that_overlap_partly_come_after_those_that_were_joined() {
    let mut program = Program::new();
    (0..3).for_each(|i| program.start(1 + i, Some(0), u64::from(i)));
    program.joined(0, 1, 0);
    // On the stack of the first, which was given back.
    program.start(4, Some(0), 0);
    program.joined(0, 2, 1);
    program.joined(0, 3, 2);
    program.joined(0, 4, 0);
    assert_eq!(generations(&program.view()), [vec![1, 2, 3], vec![4]]);
}

#[test]
fn of_a_detached_thread_no_order_is_known() {
    let mut program = Program::new();
    program.start(1, Some(0), 0);
    program.end(1);
    program.start(2, Some(0), 0);
    program.joined(0, 2, 0);
    let view = program.view();
    assert_eq!(generations(&view), [[1, 2]]);
    assert_eq!(view.summary().unsure_joins, 0);
}

#[test]
fn what_a_joined_thread_had_joined_is_joined_too() {
    let mut program = Program::new();
    program.start(1, Some(0), 0);
    program.start(2, Some(1), 1);
    program.joined(1, 2, 1);
    // A second child of the first, which still runs: after its sister, beside its mother.
    program.start(3, Some(1), 1);
    program.joined(1, 3, 1);
    program.joined(0, 1, 0);
    program.start(4, Some(0), 0);
    program.joined(0, 4, 0);
    assert_eq!(generations(&program.view()), [vec![1, 2], vec![3], vec![4]]);
}

#[test]
fn threads_that_two_creators_started_are_ordered_only_where_joins_tell() {
    let mut program = Program::new();
    program.start(1, Some(0), 0);
    program.start(2, Some(0), 1);
    // Thread 1 joins a child of its own and starts another; thread 2 starts one meanwhile and knows nothing about that.
    program.start(3, Some(1), 2);
    program.joined(1, 3, 2);
    program.start(4, Some(1), 2);
    program.start(5, Some(2), 3);
    for (by, thread, slot) in [(1, 4, 2), (2, 5, 3), (0, 1, 0), (0, 2, 1)] {
        program.joined(by, thread, slot);
    }
    assert_eq!(generations(&program.view()), [vec![1, 2, 3, 5], vec![4]]);
}

#[test]
fn a_join_of_nobody_that_is_known_orders_nothing_and_is_told() {
    let mut program = Program::new();
    program.start(1, Some(0), 0);
    program.end(1);
    // Below all stacks; of one that was joined; and of one that still ran when the recording stopped.
    program.join(0, STACK - 64);
    program.join(0, handle(0));
    program.join(0, handle(0));
    program.start(2, Some(0), 1);
    program.join(0, handle(1));
    let view = program.view();
    assert_eq!(generations(&view), [[1], [2]]);
    let line = view.summary().to_string();
    assert!(line.ends_with("; which threads 3 joins joined is not certain, so no order is taken from them"), "{line}");
}

/// `main` starts a thread, calls the start routine itself and joins the thread, twice: a lane of each generation.
#[test]
fn main_is_a_lane_of_each_generation_that_it_works_in() {
    let mut program = Program::new();
    for generation in 0..2 {
        program.start(1 + generation, Some(0), 0);
        let again = plain(SLAVE + 4 + u64::from(generation));
        program.0.run(0, &[call(MAIN + 1)]).run(0, &[plain(SLAVE), again, ret(SLAVE + 1)]).run(0, &[plain(MAIN + 2)]);
        program.joined(0, 1 + generation, 0);
    }
    let view = program.view();
    assert_eq!(generations(&view), [[0, 1], [0, 2]]);
    let told: Vec<String> = (0..4).map(|lane| told(&view, lane)).collect();
    assert_eq!(told, ["180 184 181r", "180 181r", "180 185 181r", "180 181r"]);
    assert_eq!(view.summary().kept, 10);
    // The stream of a thread that is one lane was made with the view; that of one of several lanes is cut again.
    for lane in 0..4 {
        let kept = view.kept(lane).map(|kept| read(kept.stream()));
        assert!(kept == [None, Some(read(view.stream(lane)))][lane % 2], "lane {lane}");
    }
}

/// What the stream of a lane gives.
fn read(mut stream: Box<dyn LaneStream + '_>) -> Vec<Batch> {
    let mut batch = Batch::default();
    std::iter::from_fn(|| stream.next_batch(&mut batch).unwrap().then(|| batch.clone())).collect()
}

/// A thread that works on beside those of a later generation stays what it is: it cannot be in two warps at once.
#[test]
fn a_thread_goes_on_to_the_next_generation_only_when_all_others_of_its_own_were_joined() {
    let mut program = Program::new();
    let works = |program: &mut Program| {
        program.0.run(0, &[call(MAIN + 1)]).run(0, &[plain(SLAVE), ret(SLAVE + 1)]).run(0, &[plain(MAIN + 2)]);
    };
    program.start(1, Some(0), 0);
    program.start(2, Some(0), 1);
    works(&mut program);
    program.joined(0, 1, 0);
    program.start(3, Some(0), 0);
    works(&mut program);
    program.joined(0, 3, 0);
    program.joined(0, 2, 1);
    assert_eq!(generations(&program.view()), [vec![0, 1, 2], vec![3]]);
}

/// The worked number of docs/metrics.md: how sums over generations and warps are made.
#[test]
fn efficiency_and_bounds_are_quotients_and_sums_over_generations() {
    let mut program = Program::new();
    let mut begin = |threads: &[(u32, u64)]| {
        // All of them start before the first is joined.
        let mut joins = Vec::new();
        for (thread, instructions) in threads {
            let seq = program.0.next_seq();
            let sp = stack(u64::from(*thread));
            program.0.event(*thread, Event::ThreadStart { parent: Some(ThreadId(0)), os_tid: 1 + thread, sp, seq });
            program.0.enter(*thread, ThreadBody, SLAVE);
            for i in 0..*instructions {
                program.0.run(*thread, &[of_kind(Kind::Jump, SLAVE + i)]);
            }
            program.end(*thread);
            joins.push(handle(u64::from(*thread)));
        }
        joins.into_iter().for_each(|handle| program.join(0, handle));
    };
    begin(&[(1, 10), (2, 10), (3, 10)]);
    begin(&[(4, 10), (5, 30)]);
    let view = program.view();
    let specs = Spec::parse_list("minsp-pc").unwrap();
    let options = ReplayOptions { measures: vec![Checker::measure(), Causes::measure()], ..ReplayOptions::default() };
    let outcome = &replay(&view, &specs, &options, None, &|_, _| {}).unwrap()[0];
    assert_eq!((outcome.warp_size, outcome.warps), (3, 2));
    assert_eq!((outcome.counts.fetches(), outcome.lower_bound, outcome.upper_bound), (40, 40, 70));
    assert_eq!(outcome.counts.thread_instructions() * 1000 / (outcome.counts.fetches() * 3), 583);
    assert_eq!(outcome.lost_slots(), 50);
    let lost = |cause| {
        outcome.found::<Causes>().unwrap().charges.iter().filter(|(c, _)| c.cause == cause).map(|(_, n)| n).sum::<u64>()
    };
    assert_eq!((lost(Cause::EmptySeat), lost(Cause::Finished)), (30, 20));
    let text = include_str!("../../../docs/metrics.md");
    for number in [
        "fetches = lower_bound = 40, upper_bound = 70",
        "70 / (40 x 3) = 58.3%",
        "120 - 70 = 50: 30 to the empty seat, 20",
    ] {
        assert!(text.contains(number), "{number}");
    }
}
