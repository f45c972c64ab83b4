//! `lee`: within a call, lanes that went back wait for those that did not.
//!
//! As the simulator of Milanez et al. (Parallel Computing 40, 2014) runs it under this name.
//!
//! Rule: a frame per call holds the lanes that are in it, some of them *current*. The current lane with the smallest pc
//! runs, with the lanes of the frame at its pc, which all become current. After an instruction that transferred
//! control, lanes that went to a lower pc stop being current in the top frame. When no current lane is ready, all of
//! the frame are current again. A call opens a frame of the lanes that make it, a return takes them out, and an empty
//! frame is removed.
//!
//! A stub of the linkage table is not a function. It is a part of the call that leads there: lanes in a stub run on at
//! once.
//!
//! It reconverges loops at their exit: lanes that go round again wait until the others have gone as far as they can. It
//! fails where loops should reconverge in their body, and it serialises calls made from different places.
//!
//! Worked example: `1 2b 1 2b 3 4b 9` and `1 2b 3 4b 9` (lane 0 goes round once more): after 2, lane 0 has gone back
//! and waits while lane 1 runs 3, 4 and 9; then lane 0 runs 1, 2, 3, 4 and 9 alone.

use trace_format::Pc;

use crate::models::min_pc;
use crate::models::round_robin::next_after;
use crate::{Choice, Entry, Family, Heuristic, LaneSet, Lead, Order, Ran, WarpView};

pub(crate) const ENTRY: Entry = Entry {
    name: "lee",
    family: Family::MinPc,
    rule: "Within a call the smallest pc runs; lanes that jumped back wait until the others can't go on.",
    source: "Milanez et al. 2014",
    file: file!(),
    parameters: &[],
    needs_control_flow: false,
    runs_blocks: false,
    build: |_, lanes, _| Box::new(Lee::new(lanes)),
};

#[derive(Clone, Copy)]
struct Frame {
    lanes: LaneSet,
    current: LaneSet,
}

struct Lee {
    /// The bottom frame is never popped; the top is last.
    frames: Vec<Frame>,
    /// The frame in which the lanes chosen last ran.
    ran_in: usize,
    /// Whether they were chosen because they stood in a stub of the linkage table.
    ran_in_stub: bool,
    /// The lanes' levels before they ran, to see calls and returns.
    levels: Vec<u32>,
    /// Of lanes in a stub of the linkage table: the pc of what led there.
    sent_from: Vec<Pc>,
}

impl Lee {
    fn new(lanes: usize) -> Lee {
        let all = LaneSet::first(lanes);
        Lee {
            frames: vec![Frame { lanes: all, current: all }],
            ran_in: 0,
            ran_in_stub: false,
            levels: vec![1; lanes],
            sent_from: vec![Pc(0); lanes],
        }
    }

    /// The highest frame that has a ready lane. It has one: the bottom frame holds every live lane that no other holds.
    fn frame_to_run(&self, ready: LaneSet) -> usize {
        self.frames.iter().rposition(|f| !(f.lanes & ready).is_empty()).unwrap_or(0)
    }

    /// Lanes whose level fell by this many leave as many of the frames that hold them, highest first.
    fn leave(&mut self, lanes: LaneSet, returns: u32) {
        let mut left = returns;
        for i in (1..=self.ran_in.min(self.frames.len() - 1)).rev() {
            if left == 0 {
                break;
            }
            if !self.frames[i].lanes.is_disjoint(&lanes) {
                self.frames[i].lanes = self.frames[i].lanes - lanes;
                self.frames[i].current = self.frames[i].current - lanes;
                left -= 1;
            }
        }
    }
}

impl Heuristic for Lee {
    fn choose(&mut self, warp: &WarpView) -> Choice {
        let in_stub = warp.in_stub();
        self.ran_in_stub = in_stub.is_some();
        if let Some(lanes) = in_stub {
            self.ran_in = self.frames.iter().rposition(|f| !f.lanes.is_disjoint(&lanes)).unwrap_or(0);
            return Choice::Run(lanes);
        }
        self.ran_in = self.frame_to_run(warp.ready());
        let frame = &mut self.frames[self.ran_in];
        if (frame.current & warp.ready()).is_empty() {
            frame.current = frame.lanes;
        }
        let candidates = frame.current & warp.ready();
        if candidates.is_empty() {
            // Only a lane that left the bottom frame by a return too many is in none: it runs as if it were there.
            return Choice::Run(next_after(warp.ready(), None).map_or(LaneSet::EMPTY, |l| warp.mates(l)));
        }
        let (_, mates) = min_pc::among(warp, candidates);
        let lanes = mates & frame.lanes;
        frame.current = frame.current | lanes;
        Choice::Run(lanes)
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        let frame = &self.frames[self.ran_in];
        let Some(lowest) = lanes.lowest() else { return false };
        if !lanes.is_subset(&frame.lanes) || self.ran_in_stub {
            return false;
        }
        // A level that changed while a lane waited opens or leaves a frame after the next segment.
        if lanes.iter().any(|lane| warp.lane(lane).level != self.levels[lane.index()]) {
            return false;
        }
        lead.restart(Order::Pc);
        // Calls and returns change the frames, and a way back those that are current.
        lead.stay_at_level(warp.lane(lowest).level);
        lead.stop_going_back();
        lead.stop_at_stubs();
        lead.stop_at_others();
        for group in warp.groups().iter().filter(|group| group.lanes != lanes) {
            let rivals = (group.lanes & frame.current) - lanes;
            rivals.lowest().into_iter().for_each(|lane| warp.stop_behind(lane, lead));
        }
        true
    }

    fn executed(&mut self, warp: &WarpView, ran: &Ran) {
        let live = ran.lanes & warp.live();
        let was_in_stub = warp.segment(ran.segment).in_stub;
        if !was_in_stub {
            live.iter().for_each(|lane| self.sent_from[lane.index()] = ran.last_pc);
        }
        // Where a call by the linkage table leads is known behind the stub.
        let settled: LaneSet = live.iter().filter(|l| !warp.lane(*l).in_stub).collect();
        let (mut called, mut some_left) = (LaneSet::EMPTY, false);
        for lane in settled {
            let (before, after) = (self.levels[lane.index()], warp.lane(lane).level);
            self.levels[lane.index()] = after;
            if after > before {
                called.insert(lane);
            } else if after < before {
                self.leave(LaneSet::only(lane), before - after);
                some_left = true;
            }
        }
        if !called.is_empty() {
            self.frames.push(Frame { lanes: called, current: called });
        }
        for lane in ran.lanes - warp.live() {
            for frame in &mut self.frames {
                frame.lanes.remove(lane);
                frame.current.remove(lane);
            }
            some_left = true;
        }
        if some_left {
            let mut bottom = true;
            self.frames.retain(|f| std::mem::take(&mut bottom) || !f.lanes.is_empty());
        }
        let top = self.frames.last_mut().expect("the bottom frame stays");
        for lane in settled {
            let state = warp.lane(lane);
            if state.starts_block && state.pc < self.sent_from[lane.index()] {
                top.current.remove(lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::example::schedule;

    #[test]
    fn a_lane_that_goes_round_again_waits() {
        let lanes = ["1 2b 1 2b 3 4b 9", "1 2b 3 4b 9"];
        assert_eq!(schedule("lee", &lanes), "1:0-1 2:0-1 3:1 4:1 9:1 1:0 2:0 3:0 4:0 9:0");
    }

    #[test]
    fn a_stub_is_a_part_of_its_call() {
        // The stub at 30 leads to a function at 20, the one at 0 out of the replay, so that no level is opened; neither
        // is a way back.
        let lanes = ["1 2b 3c 30s 20 21r 5", "1 2b 5"];
        assert_eq!(schedule("lee", &lanes), "1:0-1 2:0-1 3:0 30:0 20:0 21:0 5:0-1");
        let lanes = ["1 2b 3c 0s 4- 5", "1 2b 5"];
        assert_eq!(schedule("lee", &lanes), "1:0-1 2:0-1 3:0 0:0 4:0 5:0-1");
    }

    #[test]
    fn a_call_is_finished_before_its_caller_goes_on() {
        let lanes = ["1 2b 3c 20 21r 5", "1 2b 5"];
        assert_eq!(schedule("lee", &lanes), "1:0-1 2:0-1 3:0 20:0 21:0 5:0-1");
    }
}
