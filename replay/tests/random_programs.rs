//! Random SPMD programs, replayed under every heuristic: no model breaks a rule, none beats the lower bound, and neither the way in
//! which the engine runs (by runs of segments or by steps) nor the number of workers changes a result.

use heuristics::{REGISTRY, Spec};
use proptest::prelude::*;
use replay::in_memory::{Does, InMemory};
use replay::metrics::Cause;
use replay::{Control, LockId, MeetingId, Outcome, ReplayOptions, replay};
use trace_format::{Instruction, Kind, Pc, SpEffect};

/// Statements of a program; every lane runs the same program and decides by its number and a counter.
#[derive(Clone, Debug)]
enum Statement {
    Straight(u8),
    Branch { seed: u8, then: Vec<Statement>, otherwise: Vec<Statement> },
    Loop { seed: u8, most: u8, body: Vec<Statement> },
    Call { function: u8 },
    Meet,
    Locked { lock: u8, body: Vec<Statement> },
}

fn statements(depth: u32) -> impl Strategy<Value = Vec<Statement>> {
    let leaf =
        prop_oneof![(1u8..5).prop_map(Statement::Straight), (0u8..2).prop_map(|function| Statement::Call { function })];
    leaf.prop_recursive(depth, 24, 4, |inner| {
        let block = prop::collection::vec(inner, 0..4);
        prop_oneof![
            (any::<u8>(), block.clone(), block.clone()).prop_map(|(seed, then, otherwise)| Statement::Branch {
                seed,
                then,
                otherwise
            }),
            (any::<u8>(), 1u8..4, block.clone()).prop_map(|(seed, most, body)| Statement::Loop { seed, most, body }),
            (0u8..2, block).prop_map(|(lock, body)| Statement::Locked { lock, body }),
        ]
    })
    .prop_flat_map(|s| (Just(s), any::<bool>()))
    .prop_map(|(s, meets)| if meets { vec![s, Statement::Meet] } else { vec![s] })
    .prop_flat_map(|first| prop::collection::vec(Just(first), 1..3))
    .prop_map(|all| all.concat())
}

/// Runs the program for one lane. Code addresses follow from the place in the program, so that lanes share them.
struct Run {
    lane: u64,
    decisions: u64,
    does: Vec<Does>,
    meetings: u32,
    inside_branch: u32,
}

impl Run {
    fn instruction(&mut self, pc: u64, kind: Kind, sp: i32, memory: u8) {
        let instruction = Instruction { pc: Pc(pc), len: 1, kind, sp: SpEffect::Add(sp), memory };
        let addresses = (0..u64::from(memory)).map(|m| pc * 64 + self.lane * 8 + m).collect();
        self.does.push(Does::Runs(instruction, addresses));
    }

    fn decide(&mut self, seed: u8) -> u64 {
        self.decisions += 1;
        (self.lane + 1).wrapping_mul(u64::from(seed) + self.decisions).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33
    }

    /// Runs the statements, whose code begins at `pc`; returns where it ends.
    fn run(&mut self, all: &[Statement], mut pc: u64, runs: bool) -> u64 {
        for statement in all {
            pc = self.statement(statement, pc, runs);
        }
        pc
    }

    fn emit(&mut self, runs: bool, pc: u64, kind: Kind, sp: i32, memory: u8) -> u64 {
        if runs {
            self.instruction(pc, kind, sp, memory);
        }
        pc + 1
    }

    fn statement(&mut self, statement: &Statement, pc: u64, runs: bool) -> u64 {
        match statement {
            Statement::Straight(length) => {
                (0..*length).fold(pc, |pc, i| self.emit(runs, pc, Kind::Plain, 0, u8::from(i == 1)))
            }
            Statement::Branch { seed, then, otherwise } => {
                let taken = runs && self.decide(*seed).is_multiple_of(2);
                let pc = self.emit(runs, pc, Kind::Branch, 0, 0);
                self.inside_branch += 1;
                let pc = self.run(then, pc, runs && taken);
                let pc = self.emit(runs && taken, pc, Kind::Jump, 0, 0);
                let pc = self.run(otherwise, pc, runs && !taken);
                self.inside_branch -= 1;
                pc
            }
            Statement::Loop { seed, most, body } => {
                let trips = if runs { 1 + self.decide(*seed) % u64::from(*most) } else { 1 };
                self.inside_branch += 1;
                let end = (0..trips).fold(pc, |_, _| {
                    let end = self.run(body, pc, runs);
                    self.emit(runs, end, Kind::Branch, 0, 0)
                });
                self.inside_branch -= 1;
                end
            }
            Statement::Call { function } => {
                let after = self.emit(runs, pc, Kind::Call, -8, 0);
                // One function lies below all callers, the other above.
                let entry = if *function == 0 { 0x10 } else { 0x10_0000 };
                let pc = self.emit(runs, entry, Kind::Plain, -16, 0);
                let pc = self.emit(runs, pc, Kind::Plain, 0, 1);
                let pc = self.emit(runs, pc, Kind::Plain, 16, 0);
                self.emit(runs, pc, Kind::Return, 8, 0);
                after
            }
            // Only where every lane comes: a barrier in a branch would never open.
            Statement::Meet if self.inside_branch == 0 => {
                self.does.push(Does::Comes(Control::Meet(MeetingId(self.meetings))));
                self.meetings += 1;
                pc
            }
            Statement::Meet => pc,
            Statement::Locked { lock, body } => {
                if runs {
                    self.does.push(Does::Comes(Control::Acquire(LockId(u32::from(*lock)))));
                }
                // Meetings inside would deadlock, nested locks might: code inside is straight.
                let pc = self.emit(runs, pc, Kind::Plain, 0, body.len().min(2) as u8);
                if runs {
                    self.does.push(Does::Comes(Control::Release(LockId(u32::from(*lock)))));
                }
                pc
            }
        }
    }
}

fn lanes_of(program: &[Statement], lanes: u64) -> InMemory {
    let all: Vec<Vec<Does>> = (0..lanes)
        .map(|lane| {
            let mut run = Run { lane, decisions: 0, does: Vec::new(), meetings: 0, inside_branch: 0 };
            let end = run.run(program, 0x1000, true);
            run.instruction(end, Kind::Return, 8, 0);
            run.does
        })
        .collect();
    InMemory::new(&all)
}

/// Models that say in their heads where they deadlock: on locks.
const DEADLOCK: [&str; 7] = ["ipdom", "tf-stack", "tf-branch", "dual-path", "multi-path", "barrier", "dws"];

fn has_locks(program: &[Statement]) -> bool {
    program.iter().any(|s| match s {
        Statement::Locked { .. } => true,
        Statement::Branch { then, otherwise, .. } => has_locks(then) || has_locks(otherwise),
        Statement::Loop { body, .. } => has_locks(body),
        _ => false,
    })
}

/// The same program with one instruction in the place of each critical section.
fn without_locks(program: &[Statement]) -> Vec<Statement> {
    let without = |statement: &Statement| match statement {
        Statement::Locked { .. } => Statement::Straight(1),
        Statement::Branch { seed, then, otherwise } => {
            Statement::Branch { seed: *seed, then: without_locks(then), otherwise: without_locks(otherwise) }
        }
        Statement::Loop { seed, most, body } => Statement::Loop { seed: *seed, most: *most, body: without_locks(body) },
        other => other.clone(),
    };
    program.iter().map(without).collect()
}

fn everything(source: &InMemory, options: &ReplayOptions) -> Vec<Outcome> {
    let mut specs: Vec<Spec> = REGISTRY.iter().map(|e| Spec::parse(e.name).unwrap()).collect();
    specs.extend(
        Spec::parse_list(
            "maxfun-minpc:mode=2,rd-minsp-pc:hysteresis=0,threshold=8,decrement=yes,long:n=1,multi-path:merge=yes,dws:order=pc,dws:longest=2",
        )
        .unwrap(),
    );
    replay(source, &specs, options, None, &|_, _| {}).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_model_breaks_a_rule_or_beats_the_lower_bound(program in statements(3), lanes in 1u64..9, size in 1usize..9) {
        let source = lanes_of(&program, lanes);
        let checked = ReplayOptions { check: true, warp_size: Some(size), ..ReplayOptions::default() };
        for outcome in everything(&source, &checked) {
            if outcome.is_complete() {
                prop_assert!(outcome.counts.fetches() >= outcome.lower_bound, "{}", outcome.heuristic);
                prop_assert!(outcome.counts.fetches() <= outcome.upper_bound, "{}", outcome.heuristic);
                prop_assert_eq!(outcome.counts.thread_instructions(), outcome.upper_bound);
                prop_assert_eq!(outcome.counts.forced, 0);
            } else {
                let name = outcome.heuristic.split(':').next().unwrap();
                prop_assert!(DEADLOCK.contains(&name) && has_locks(&program), "{}", outcome.status());
            }
        }
    }

    /// Their paths are the same; only the order in which they take turns differs.
    #[test]
    fn the_stack_and_the_tables_of_paths_need_as_many_fetches(program in statements(4), lanes in 1u64..9) {
        let source = lanes_of(&without_locks(&program), lanes);
        let specs = Spec::parse_list("ipdom,dual-path,multi-path").unwrap();
        let outcomes = replay(&source, &specs, &ReplayOptions::default(), None, &|_, _| {}).unwrap();
        prop_assert_eq!(&outcomes[0].counts, &outcomes[1].counts);
        prop_assert_eq!(&outcomes[0].counts, &outcomes[2].counts);
    }

    /// A warp that is never subdivided has the splits and joins of `multi-path`.
    #[test]
    fn without_subdivision_parts_are_those_that_wait_for_joins(program in statements(4), lanes in 1u64..9) {
        let source = lanes_of(&without_locks(&program), lanes);
        let specs = Spec::parse_list("multi-path:merge=yes,dws:longest=0,order=pc").unwrap();
        let options = ReplayOptions { schedule_hash: true, ..ReplayOptions::default() };
        let outcomes = replay(&source, &specs, &options, None, &|_, _| {}).unwrap();
        prop_assert_eq!(outcomes[0].schedule_fnv1a64, outcomes[1].schedule_fnv1a64);
    }

    #[test]
    fn every_lost_slot_is_charged_once(program in statements(3), lanes in 1u64..9, size in 1usize..9) {
        let source = lanes_of(&program, lanes);
        let plain = ReplayOptions { warp_size: Some(size), ..ReplayOptions::default() };
        let charged = ReplayOptions { causes: true, ..plain.clone() };
        for (without, outcome) in everything(&source, &plain).iter().zip(everything(&source, &charged)) {
            prop_assert_eq!(&without.counts, &outcome.counts, "{}", outcome.heuristic);
            let causes = outcome.causes.as_ref().unwrap();
            prop_assert_eq!(causes.total(), outcome.lost_slots(), "{}", outcome.heuristic);
            prop_assert_eq!(Cause::ALL.iter().map(|c| causes.lost_to(*c)).sum::<u64>(), outcome.lost_slots());
            let mut fetches = 0;
            for ((pc, path), issued) in &causes.issued {
                let here = causes.charges.iter().filter(|(c, _)| (c.issued, c.path) == (*pc, *path));
                let lost: u64 = here.map(|(_, slots)| slots).sum();
                prop_assert_eq!(lost + issued.thread_instructions, issued.fetches * size as u64);
                fetches += issued.fetches;
            }
            prop_assert_eq!(fetches, outcome.counts.fetches());
            for (charge, _) in &causes.charges {
                let at_a_transfer =
                    matches!(charge.cause, Cause::Branch | Cause::LoopTripCount | Cause::CallTarget);
                prop_assert!(charge.parted_at.is_some() || !at_a_transfer, "{charge:?}");
            }
        }
    }

    #[test]
    fn runs_of_segments_give_the_counts_that_steps_give(program in statements(3), lanes in 1u64..9) {
        let source = lanes_of(&program, lanes);
        let by_runs = everything(&source, &ReplayOptions::default());
        let by_steps = everything(&source, &ReplayOptions { schedule_hash: true, ..ReplayOptions::default() });
        for (a, b) in by_runs.iter().zip(&by_steps) {
            prop_assert_eq!(&a.counts, &b.counts, "{}", a.heuristic);
            prop_assert_eq!(&a.end, &b.end);
        }
    }

    #[test]
    fn one_worker_and_three_give_the_same(program in statements(3), lanes in 1u64..17, size in 1usize..5) {
        let source = lanes_of(&program, lanes);
        let options = ReplayOptions { warp_size: Some(size), schedule_hash: true, ..ReplayOptions::default() };
        let with = |workers: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
            pool.install(|| everything(&source, &options)).iter().map(|o| format!("{o:?}")).collect::<Vec<_>>()
        };
        prop_assert_eq!(with(1), with(3));
    }
}
