//! The memory operands of what lanes run.

use heuristics::{Lane, SegmentId};
use trace_format::Instruction;

use super::{RED_ZONE, Run, Step};
use crate::lanes::brief::Brief;

/// What a lane accesses while it runs instructions with others.
#[derive(Clone, Copy)]
pub(super) struct Accessed<'a> {
    /// Where it sits in the warp that they make up.
    pub home: Lane,
    /// Its memory addresses in the instructions, in order; there may be more behind them.
    pub addresses: &'a [u64],
    /// The address for which its stack pointers stand that are 0, and the end of its stack; none where it is not known.
    stack: Option<(u64, u64)>,
    sp: i64,
    /// Where its stack pointer will be after segments that record it, in order.
    sps: &'a [i64],
    /// The lowest address of its stack.
    lowest: u64,
}

impl<'a> Accessed<'a> {
    fn of(step: &Step<'a>, lane: Lane) -> Accessed<'a> {
        let cursor = &step.standing.cursors[lane.index()];
        let stack = cursor.stack().map(|(zero, above)| (zero, zero.saturating_add(u64::from(above))));
        let mut accessed = Accessed {
            home: Lane(step.seats().home(lane) as u8),
            addresses: &cursor.addresses()[step.addresses_before(lane)..],
            stack,
            sp: step.state(lane).sp,
            sps: cursor.recorded(),
            lowest: 0,
        };
        accessed.sink_to(accessed.sp);
        accessed
    }

    /// How far the address is from the lane's stack's zero, where it is in that stack.
    #[inline]
    pub(super) fn in_stack(&self, address: u64) -> Option<i64> {
        let (zero, end) = self.stack?;
        (self.lowest <= address && address < end).then(|| address.wrapping_sub(zero).cast_signed())
    }

    fn sink_to(&mut self, sp: i64) {
        if let Some((zero, _)) = self.stack {
            self.lowest = zero.wrapping_add_signed(sp.wrapping_sub(RED_ZONE));
        }
    }
}

/// Memory for the lanes of a step, kept from one to the next.
#[derive(Default)]
pub(super) struct Room(Vec<Accessed<'static>>);

impl Room {
    /// Shows what the lanes of a step access, in the order in which they sit.
    pub(super) fn step(&mut self, step: &Step, see: impl FnOnce(&[Accessed])) {
        let lanes = self.fill(step);
        see(&lanes);
        self.keep(lanes);
    }

    /// Shows what lanes access that run segments whole: each segment that accesses memory, its instructions, the
    /// lanes in the order in which they sit, and how many of their addresses are those of segments before it.
    pub(super) fn run(&mut self, run: &Run, mut see: impl FnMut(SegmentId, &[Instruction], &[Accessed], usize)) {
        let accesses = |brief: &Brief| brief.addresses > 0;
        if !run.briefs().any(|(_, brief)| accesses(brief)) {
            return;
        }
        let segments = &run.first.standing.program.segments;
        let mut lanes = self.fill(&run.first);
        let (mut before, mut recorded, mut change, mut moved) = (0, 0, 0, false);
        for (id, brief) in run.briefs() {
            if accesses(brief) {
                if std::mem::take(&mut moved) {
                    for lane in &mut lanes {
                        let sp = if recorded > 0 { lane.sps[recorded - 1] } else { lane.sp };
                        lane.sink_to(sp + change);
                    }
                }
                see(id, &segments[id].instructions, &lanes, before);
                before += brief.addresses as usize;
            }
            if brief.recorded {
                (recorded, change) = (recorded + 1, 0);
            }
            change += i64::from(brief.sp);
            moved |= brief.recorded || brief.sp != 0;
        }
        self.keep(lanes);
    }

    fn fill<'a>(&mut self, step: &Step<'a>) -> Vec<Accessed<'a>> {
        let mut lanes: Vec<Accessed<'a>> = std::mem::take(&mut self.0);
        lanes.extend(step.lanes.iter().map(|lane| Accessed::of(step, lane)));
        // In a block of warps the lanes of a fetch sit elsewhere than their numbers say.
        if !lanes.is_sorted_by_key(|lane| lane.home) {
            lanes.sort_unstable_by_key(|lane| lane.home);
        }
        lanes
    }

    fn keep(&mut self, mut lanes: Vec<Accessed<'_>>) {
        lanes.clear();
        // None is left, and so the same memory serves for lanes of another lifetime.
        self.0 = lanes
            .into_iter()
            .map(|lane| Accessed {
                addresses: &[],
                sps: &[],
                home: lane.home,
                stack: lane.stack,
                sp: lane.sp,
                lowest: lane.lowest,
            })
            .collect();
    }
}
