//! `dwf`: dynamic warp formation, threads of any warp that stand at one pc form a warp.
//!
//! Fung, Sham, Yuan and Aamodt, *Dynamic warp formation and scheduling for efficient GPU control flow* (MICRO 2007),
//! sections 4 and 5.
//!
//! Rule: every lane of a block has a pc. The lanes at one pc form warps in the order in which they reached it (lower
//! lanes first). Each warp takes, from each home, the first lane that is left. One instruction is fetched for the first
//! warp of a pc; then `policy` chooses a pc again:
//!
//! - *majority*: the pc at which most lanes stand; it stays chosen until no lane is left there;
//! - *minority*: the pc at which fewest lanes stand;
//! - *time*: the pc of the lane that came first;
//! - *pc*: the smallest.
//!
//! Among equals the smallest pc is chosen, for *time* the lowest lane.
//!
//! It reconverges where the policy brings lanes to one pc at one time, whatever warp they were in before: with *pc* as
//! `minpc` does, with the others by chance. It fails where lanes of one home reach one pc, and where the policy lets
//! some run ahead: under *majority* a few stragglers starve and run the rest alone. Lanes never wait for each other, so
//! it never deadlocks.
//!
//! Worked example: two warps of two lanes, `1b 2b 5`, `1b 4 5`, `1b 4 5` and `1b 2b 5` under *pc*: 1 (lanes 0 and 1), 1
//! (2 and 3), 2 (0 and 3, whose homes are 0 and 1), 4 (1 and 2), 5 (0 and 3), 5 (1 and 2). 6 fetches, each warp alone
//! makes 4.

use std::cmp::{Ordering, Reverse};

use trace_format::Pc;

use crate::{
    Choice, Entry, Extent, Family, Group, Heuristic, Lane, LaneSet, Lead, Order, Parameter, Ran, Seats, Together,
    Values, WarpView,
};

pub(crate) const ENTRY: Entry = Entry {
    name: "dwf",
    family: Family::SeveralWarps,
    rule: "Lanes of all warps of a block that stand at one pc form a warp, if their home lanes differ; a policy \
         picks the pc.",
    source: "Fung et al. 2007",
    file: file!(),
    parameters: &[Parameter {
        name: "policy",
        values: Values::OneOf(&["majority", "minority", "time", "pc"]),
        default: 0,
        help: "which pc is fetched: that of the most lanes, of the fewest, of the lane that waits longest, or the \
             smallest",
    }],
    needs_control_flow: false,
    runs_blocks: true,
    build: |settings, lanes, _| {
        let policy = [Policy::Majority, Policy::Minority, Policy::Time, Policy::Pc][settings.choice("policy")];
        Box::new(Dwf { policy, came: vec![0; lanes], standing: LaneSet::EMPTY, time: 0, last_pc: None })
    },
};

#[derive(Clone, Copy)]
enum Policy {
    Majority,
    Minority,
    Time,
    Pc,
}

struct Dwf {
    policy: Policy,
    /// By lane: when it reached the place where it stands, counted in fetches.
    came: Vec<u64>,
    /// The lanes whose `came` is known.
    standing: LaneSet,
    time: u64,
    last_pc: Option<Pc>,
}

impl Dwf {
    /// The lanes that can run and could not, or stood elsewhere, come now.
    fn come(&mut self, ready: LaneSet) {
        for lane in ready - self.standing {
            self.came[lane.index()] = self.time;
        }
        self.standing = ready;
    }

    fn pick<'a>(&self, groups: &'a [Group]) -> Option<&'a Group> {
        let first_came = |group: &Group| group.lanes.iter().map(|l| (self.came[l.index()], l)).min();
        match self.policy {
            Policy::Majority => groups
                .iter()
                .find(|g| Some(g.pc) == self.last_pc)
                .or_else(|| groups.iter().min_by_key(|g| (Reverse(g.lanes.len()), g.pc))),
            Policy::Minority => groups.iter().min_by_key(|g| (g.lanes.len(), g.pc)),
            Policy::Time => groups.iter().min_by_key(|g| first_came(g)),
            Policy::Pc => groups.iter().min_by_key(|g| g.pc),
        }
    }

    /// Whether it matters when lanes came: to the policy, or to which of the lanes at a pc run first.
    fn counts_time(&self, seats: &Seats) -> bool {
        seats.warps().len() > 1 || matches!(self.policy, Policy::Time)
    }
}

impl Heuristic for Dwf {
    /// The lanes of one warp that stand at one pc run together. Inside of a segment no others join them, and none stand
    /// at a pc between its first and its last: the other policies pick them again. Where lanes stand at the pc that ran
    /// last, a segment begins and ends there.
    fn extent(&self, seats: &Seats) -> Extent {
        if self.counts_time(seats) { Extent::Instruction } else { Extent::Segment }
    }

    fn choose(&mut self, warp: &WarpView) -> Choice {
        let counts_time = self.counts_time(warp.seats());
        if counts_time {
            self.come(warp.ready());
        }
        let Some(group) = self.pick(warp.groups()) else { return Choice::Deadlock(warp.live()) };
        if warp.seats().warps().len() == 1 {
            return Choice::Run(group.lanes);
        }
        let mut order: Vec<Lane> = group.lanes.iter().collect();
        order.sort_by_key(|lane| (self.came[lane.index()], *lane));
        Choice::Run(warp.seats().one_of_each_home(order.into_iter()))
    }

    fn executed(&mut self, _warp: &WarpView, ran: &Ran) {
        self.last_pc = Some(ran.last_pc);
        self.time += 1;
        self.standing = self.standing - ran.lanes;
    }

    fn runs_on(&self, warp: &WarpView, lanes: LaneSet, lead: &mut Lead) -> bool {
        lead.restart(Order::Pc);
        let size = lanes.len();
        let others = warp.groups().iter().filter(|group| group.lanes != lanes);
        match self.policy {
            Policy::Pc => others.for_each(|group| lead.stop_behind_pc(group.pc)),
            Policy::Majority | Policy::Minority => {
                let is_majority = matches!(self.policy, Policy::Majority);
                lead.stop_at_others();
                for group in others {
                    match group.lanes.len().cmp(&size) {
                        Ordering::Equal => lead.stop_behind_pc(group.pc),
                        // They were chosen because they stand at the pc that ran last.
                        Ordering::Greater if is_majority => return false,
                        _ => (),
                    }
                }
            }
            Policy::Time => return false,
        }
        true
    }

    /// Every policy picks the only pc at which lanes stand.
    fn stays_together(&self, warp: &WarpView) -> bool {
        warp.seats().warps().len() == 1
    }

    fn ran(&mut self, run: &Together) {
        self.last_pc = Some(run.segments[run.last()].last().pc);
        self.time += 1;
        self.standing = self.standing - run.lanes;
    }
}

#[cfg(test)]
mod tests {
    use crate::example::{schedule, schedule_block};

    const CROSSED: [&str; 4] = ["1b 2b 5", "1b 4 5", "1b 4 5", "1b 2b 5"];

    #[test]
    fn lanes_of_two_warps_fill_one() {
        assert_eq!(schedule_block("dwf:policy=pc", 2, &CROSSED), "1:0-1 1:2-3 2:0,3 4:1-2 5:0,3 5:1-2");
    }

    #[test]
    fn majority_stays_at_a_pc_until_nobody_stands_there() {
        // 4 is not chosen before 1 is empty; then 4 has three lanes, of two homes.
        let lanes = ["1b 2b 5", "1b 4 5", "1b 4 5", "1b 4 5"];
        assert_eq!(schedule_block("dwf", 2, &lanes), "1:0-1 1:2-3 4:1-2 4:3 5:1-2 5:3 2:0 5:0");
    }

    #[test]
    fn minority_lets_the_few_catch_up() {
        let lanes = ["1b 2b 5", "1b 4 5", "1b 4 5", "1b 4 5"];
        assert_eq!(schedule_block("dwf:policy=minority", 4, &lanes), "1:0-3 2:0 5:0 4:1-3 5:1-3");
    }

    #[test]
    fn time_runs_who_came_first() {
        let lanes = ["1b 4 5 6", "1b 2b 5 6"];
        assert_eq!(schedule("dwf:policy=time", &lanes), "1:0-1 4:0 2:1 5:0-1 6:0-1");
    }

    #[test]
    fn lanes_of_one_home_cannot_share() {
        assert_eq!(schedule_block("dwf:policy=pc", 1, &["1 2", "1 2"]), "1:0 1:1 2:0 2:1");
    }
}
