//! A small judge for worked examples: runs a heuristic over lanes written as text, one instruction at a time, without
//! the engine.
//!
//! A lane is a list of decimal pcs. A letter after a pc says what the instruction is: `b` branches, `c` calls, `r`
//! returns, `p` pushes 8 bytes, `s` is a stub of the linkage table, `-` comes behind a function that is left out.
//! Calls and returns move the stack pointer by 8 bytes and the level by 1. Instructions are one byte long.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use trace_format::{Block, BlockTable, Instruction, Kind, Pc, SpEffect};

use crate::{
    Choice, ControlFlow, Future, Groups, Lane, LaneSet, LaneState, Observer, Prediction, Predictions, Program, Ran,
    Seats, SegmentId, SegmentTable, Spec, Tally, WarpView,
};

fn instruction(token: &str) -> Instruction {
    let digits = token.trim_end_matches(|c: char| !c.is_ascii_digit());
    let (kind, sp) = match &token[digits.len()..] {
        "b" => (Kind::Branch, 0),
        "c" => (Kind::Call, -8),
        "r" => (Kind::Return, 8),
        "p" => (Kind::Plain, -8),
        "s" => (Kind::IndirectJump, 0),
        _ => (Kind::Plain, 0),
    };
    let len = if kind == Kind::IndirectJump { STUB.len() as u8 } else { 1 };
    Instruction { pc: Pc(digits.parse().unwrap()), len, kind, sp: SpEffect::Add(sp), memory: 0 }
}

/// `jmp *slot(%rip)`
const STUB: &[u8] = &[0xff, 0x25, 0, 0, 0, 0];

/// A lane that comes back from a function that is left out, without a return of the replay.
fn come_back(state: &mut LaneState) {
    (state.level, state.sp) = (state.level - 1, state.sp + 8);
}

/// What an instruction makes of a lane's state, except for the pc.
fn after(state: &LaneState, ran: &Instruction) -> LaneState {
    let SpEffect::Add(change) = ran.sp else { unreachable!("examples have constant stack-pointer changes") };
    let level = match ran.kind {
        Kind::Call => state.level + 1,
        Kind::Return => (state.level - 1).max(1),
        _ => state.level,
    };
    LaneState { sp: state.sp + i64::from(change), level, starts_block: ran.kind.transfers_control(), ..*state }
}

/// The control flow of a program, and where its blocks begin, from 0x10 on: their instructions, and in which order a
/// lane runs them.
pub(crate) fn control_flow(blocks: &[&[(&[u8], Kind)]], runs: &[usize]) -> (ControlFlow, Vec<Pc>) {
    let (mut table, mut pc) = (BlockTable::default(), 0x10);
    let (mut ids, mut starts) = (Vec::new(), Vec::new());
    for instructions in blocks {
        starts.push(Pc(pc));
        let mut block = Block::default();
        for (bytes, kind) in *instructions {
            let (len, sp) = (bytes.len() as u8, SpEffect::Add(0));
            block.instructions.push(Instruction { pc: Pc(pc), len, kind: *kind, sp, memory: 0 });
            block.code.extend_from_slice(bytes);
            pc += bytes.len() as u64;
        }
        ids.push(table.push(block));
    }
    let segments = SegmentTable::new(&table, &[]);
    let mut observer = Observer::new(&segments);
    for run in runs {
        segments.of_block(ids[*run]).iter().for_each(|segment| observer.segment(*segment, 1));
    }
    observer.end();
    (observer.control_flow(&segments), starts)
}

fn groups(states: &[LaneState], live: LaneSet) -> Groups {
    let mut groups = Groups::default();
    live.iter().for_each(|lane| groups.join(states[lane.index()].pc, LaneSet::only(lane)));
    groups
}

/// Lanes as lists of segments, and where each stands.
struct Known<'a> {
    lanes: &'a [Vec<SegmentId>],
    at: &'a [usize],
}

impl Future for Known<'_> {
    fn look(&self, lane: Lane, skipped: usize, see: &mut dyn FnMut(SegmentId) -> bool) {
        let ahead = &self.lanes[lane.index()][self.at[lane.index()]..];
        let _ = ahead.iter().skip(skipped).all(|segment| see(*segment));
    }

    fn passed(&self, lane: Lane) -> u64 {
        self.at[lane.index()] as u64
    }
}

/// The fetches that the heuristic makes of these lanes, as `pc:lanes` with a space between.
pub(crate) fn schedule(spec: &str, lanes: &[&str]) -> String {
    schedule_block(spec, lanes.len(), lanes)
}

/// The same of a block of warps of `width` lanes.
pub(crate) fn schedule_block(spec: &str, width: usize, lanes: &[&str]) -> String {
    run(spec, width, lanes, &[], false).0
}

/// The same of one warp, whose lanes are turns of a loop.
pub(crate) fn schedule_turns(spec: &str, lanes: &[&str]) -> String {
    run(spec, lanes.len(), lanes, &[], true).0
}

/// The same of one warp, with predictions.
pub(crate) fn schedule_predicted(spec: &str, lanes: &[&str], predictions: &[Prediction]) -> String {
    run(spec, lanes.len(), lanes, predictions, false).0
}

/// What the heuristic counts itself of these lanes.
pub(crate) fn tally(spec: &str, lanes: &[&str]) -> Tally {
    run(spec, lanes.len(), lanes, &[], false).1
}

/// The same of one warp, with predictions.
pub(crate) fn tally_predicted(spec: &str, lanes: &[&str], predictions: &[Prediction]) -> Tally {
    run(spec, lanes.len(), lanes, predictions, false).1
}

fn run(spec: &str, width: usize, lanes: &[&str], predictions: &[Prediction], are_turns: bool) -> (String, Tally) {
    let seats = Seats::new(width, &lanes.chunks(width).map(<[&str]>::len).collect::<Vec<_>>());
    let comes_back: Vec<Vec<bool>> =
        lanes.iter().map(|l| l.split(' ').map(|token| token.ends_with('-')).collect()).collect();
    let lanes: Vec<Vec<Instruction>> = lanes.iter().map(|l| l.split(' ').map(instruction).collect()).collect();
    let mut blocks = BlockTable::default();
    let mut segment_of: FxHashMap<Instruction, SegmentId> = FxHashMap::default();
    for i in lanes.iter().flatten() {
        let code = if i.kind == Kind::IndirectJump { STUB.to_vec() } else { Vec::new() };
        segment_of
            .entry(*i)
            .or_insert_with(|| SegmentId(blocks.push(Block { instructions: vec![*i], code, ..Block::default() }).0));
    }
    let segments = SegmentTable::new(&blocks, &[]);
    for (id, block) in blocks.iter() {
        let instruction = block.instructions[0];
        segment_of.insert(instruction, segments.in_stub(segments.of_block(id)[0]));
    }
    let runs: Vec<Vec<SegmentId>> = lanes.iter().map(|l| l.iter().map(|i| segment_of[i]).collect()).collect();
    let start = |l: &Vec<Instruction>| LaneState {
        pc: l[0].pc,
        segment: segment_of[&l[0]],
        place: segments[segment_of[&l[0]]].place,
        in_stub: segments[segment_of[&l[0]]].in_stub,
        sp: 0,
        level: 1,
        starts_block: false,
    };
    let mut observer = Observer::new(&segments);
    if are_turns {
        observer = observer.of_turns();
    }
    for (lane, comes_back) in lanes.iter().zip(&comes_back) {
        let mut state = start(lane);
        for (i, comes_back) in lane.iter().zip(comes_back) {
            if *comes_back {
                come_back(&mut state);
            }
            observer.segment(segment_of[i], state.level);
            state = after(&state, i);
        }
        observer.end();
    }
    let mut states: Vec<LaneState> = lanes.iter().map(start).collect();
    let control_flow = observer.control_flow(&segments);
    let predictions = Predictions::new(predictions, &control_flow);
    let program = Program { segments, control_flow: Arc::new(control_flow), predictions, ..Program::default() };
    let mut heuristic = crate::build(&Spec::parse(spec).unwrap(), lanes.len(), &program);
    let mut at = vec![0; lanes.len()];
    let mut live = LaneSet::first(lanes.len());
    let mut fetches = Vec::new();
    while !live.is_empty() {
        let now = groups(&states, live);
        let known = Known { lanes: &runs, at: &at };
        let view = WarpView::new(&states, &now, live, live, LaneSet::EMPTY, &seats, &program).with_future(&known);
        let Choice::Run(chosen) = heuristic.choose(&view) else {
            panic!("an example has no locks");
        };
        let first: Lane = chosen.lowest().expect("a choice holds a lane");
        let state = states[first.index()];
        assert!(chosen.is_subset(&live) && chosen.iter().all(|l| states[l.index()].pc == state.pc), "{chosen:?}");
        assert!(seats.fit(chosen), "{chosen:?} have one home");
        fetches.push(format!("{}:{chosen}", state.pc.0));
        let instruction = lanes[first.index()][at[first.index()]];
        for lane in chosen {
            let l = lane.index();
            states[l] = after(&states[l], &lanes[l][at[l]]);
            at[l] += 1;
            match lanes[l].get(at[l]) {
                Some(next) => {
                    let segment = &program.segments[segment_of[next]];
                    (states[l].place, states[l].in_stub) = (segment.place, segment.in_stub);
                    (states[l].pc, states[l].segment) = (next.pc, segment_of[next]);
                    if comes_back[l][at[l]] {
                        come_back(&mut states[l]);
                    }
                }
                None => live.remove(lane),
            }
        }
        let ran = Ran {
            lanes: chosen,
            instructions: 1,
            since_chosen: 1,
            segment: state.segment,
            level: state.level,
            last_pc: instruction.pc,
            last_kind: instruction.kind,
            falls_to: instruction.next_pc(),
        };
        let now = groups(&states, live);
        heuristic.executed(&WarpView::new(&states, &now, live, live, LaneSet::EMPTY, &seats, &program), &ran);
    }
    (fetches.join(" "), heuristic.tally())
}
