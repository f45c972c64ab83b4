//! Code for a GPU: a region in which lanes wait at a predicted place, as a loop of turns that its lanes take together.
//!
//! ```text
//! before                         after
//! join:                          join:   who = the lanes that are here; stands = at start
//! outer:  prolog                 turn:   phi stands
//!         branch skip, epilog            any lane at a stop?  those go on there, others back to turn
//! place:  body                   ask:    any lane at place?   those go on there, others back to turn
//!         branch more, place     behind: switch stands: the ways out
//! epilog: branch again, outer    start:  → outer
//! out:                           outer:  prolog; branch skip, epilog, place.next
//!                                place:  body; branch more, place.next, epilog
//!                                epilog: branch again, outer.next, out.next
//!                                place.next, outer.next, out.next: → turn, with another `stands` each
//! ```
//!
//! A lane that comes to the place, to another stop, or to a way out of the region *stands* there, and comes to `turn`.
//! There all lanes of the region are asked who goes on: those at stops first, so that all reach the place before
//! anyone goes on from there. That is the paper's barrier: join is `who`, wait is `turn`, and a lane cancels by coming
//! to `turn` with a way out. Lanes that left wait there for the others, which is the paper's barrier behind the region.
//!
//! Stops are where the region begins and the headers of loops around the place that have iterations without it: all
//! cycles through the place then lead through `turn`, and what is left has no more entries than before. With a number
//! of lanes that is enough (the paper's soft barrier, figure 6), lanes also stop where they leave the place's innermost
//! loop. Those at the place go first while they are enough; else those at the stops do, together.
//!
//! Of several predictions whose lanes come from each one's place to the other's, the places are of one region: those at
//! the place with most lanes go on, and those at another wait there, without being waited for.
//!
//! # Why the meaning is kept
//! Each lane runs the instructions that it ran before, in that order. A question is asked of the lanes in `who` alone,
//! which came in together and have the same mask. All get the same answer, so all ask the same next; none goes on
//! behind the region before each has left it. So a turn ends if each lane's way through it does, and it does where no
//! lane waits for another: regions are refused that could (see [`obstacle`]).

use flowgraph::{CollectingRegion, LoopId, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::warp::Warp;
use crate::context::Context;
use crate::flow::Flow;
use crate::llvm::{Block, Builder, Comparison, Instruction, Value};
use crate::passes::linearize::prepare::replace_phi;
use crate::remark::Turns;
use crate::waits::obstacle;

/// What is asked for.
pub(super) struct Wanted<'m> {
    /// Where lanes join: an instruction, or several of which one is to dominate the region. If there is none, it is
    /// where the outermost loop around the place is entered.
    pub(super) joins: Vec<Instruction<'m>>,
    /// Where they wait: at one or another.
    pub(super) places: Vec<Instruction<'m>>,
    /// How many at a place are enough.
    pub(super) enough: Option<usize>,
}

impl<'m> Wanted<'m> {
    /// Has blocks begin where lanes join and wait, which joins the first time decides.
    fn begin(&mut self, context: &mut Context<'m>) -> Result<(), &'static str> {
        if self.joins.is_empty() {
            self.joins.push(before_loops(context, block_of(&self.places[0]))?);
        }
        self.joins.iter().chain(&self.places).for_each(|first| begin_block_at(*first));
        Ok(())
    }

    fn region(&self, flow: &Flow<'m>) -> Option<CollectingRegion> {
        let nodes = |of: &[Instruction<'m>]| of.iter().map(|i| flow.node(block_of(i))).collect::<Vec<_>>();
        CollectingRegion::of(flow.graph(), &nodes(&self.places), &nodes(&self.joins))
    }

    /// Takes the places of another that is of the same region: lanes come from places of each to places of the other
    /// without joining again, or join for one on their way to the other, not between two visits of it.
    pub(super) fn takes(&mut self, mut other: Wanted<'m>, context: &mut Context<'m>) -> Result<(), Wanted<'m>> {
        if self.enough != other.enough || self.begin(context).and(other.begin(context)).is_err() {
            return Err(other);
        }
        let (flow, dominators) = (context.flow(), context.dominators());
        let holds = |of: &Wanted<'m>, any: &[Instruction<'m>]| {
            of.region(&flow).is_some_and(|of| any.iter().any(|i| of.holds(flow.node(block_of(i)))))
        };
        let joins_on_the_way = |a: &Wanted<'m>, b: &Wanted<'m>| holds(a, &b.joins) && !holds(a, &b.places);
        let is_mutual = holds(self, &other.places) && holds(&other, &self.places);
        if !is_mutual && !joins_on_the_way(self, &other) && !joins_on_the_way(&other, self) {
            return Err(other);
        }
        let is_above = |a: &Wanted<'m>, b: &Wanted<'m>| {
            let nodes = |of: &Wanted<'m>| of.joins.iter().map(|join| flow.node(block_of(join))).collect::<Vec<_>>();
            nodes(b).into_iter().all(|join| nodes(a).into_iter().any(|above| dominators.dominates(above, join)))
        };
        if is_above(&other, self) {
            std::mem::swap(&mut self.joins, &mut other.joins);
        } else if !is_above(self, &other) {
            return Err(other);
        }
        self.places.append(&mut other.places);
        Ok(())
    }
}

fn block_of<'m>(first: &Instruction<'m>) -> Block<'m> {
    first.block().expect("what is asked for is erased last")
}

/// What was made in a function.
#[derive(Default)]
pub(super) struct Made<'m> {
    /// Where turns begin.
    turns: Vec<Block<'m>>,
    /// The blocks in which lanes ask, and nothing else.
    asking: FxHashSet<Block<'m>>,
}

/// A region that can take turns.
struct Plan<'m> {
    join: Block<'m>,
    places: Vec<Block<'m>>,
    blocks: FxHashSet<Block<'m>>,
    /// Besides the places, and where the region begins.
    stops: Vec<Block<'m>>,
    enough: Option<usize>,
}

/// Makes the lanes of a region take turns; why not.
pub(super) fn take<'m>(
    context: &mut Context<'m>,
    warp: Warp,
    mut wanted: Wanted<'m>,
    made: &mut Made<'m>,
) -> Result<Turns, &'static str> {
    wanted.begin(context)?;
    let plan = plan(context, warp, &wanted, made)?;
    let done = Surgery::of(context, plan, warp, made).run();
    // Where the region begins, no value of it exists yet.
    context.joined(done.entered_from, done.turn);
    context.settle();
    Ok(done.turns)
}

/// The end of the block before the outermost loop around a place.
fn before_loops<'m>(context: &mut Context<'m>, place: Block<'m>) -> Result<Instruction<'m>, &'static str> {
    let (flow, loops, dominators) = (context.flow(), context.loops(), context.dominators());
    let innermost = loops.innermost(flow.node(place));
    let outermost = std::iter::successors(innermost, |of| loops.parent(*of)).last().ok_or(ONCE)?;
    let before = dominators.idom(loops.header(outermost)).ok_or("no lane comes to the place")?;
    Ok(flow.block(before).terminator())
}

/// Why lanes need not wait where no loop is.
const ONCE: &str = "lanes come to the place once: they meet without that";

/// Has a block begin with an instruction: what stood before it gets one of its own.
fn begin_block_at(first: Instruction<'_>) {
    let block = block_of(&first);
    if block.first() != Some(first) {
        _ = block.split_before(first, "before");
    }
}

/// Looks at the region and at what it takes.
fn plan<'m>(
    context: &mut Context<'m>,
    warp: Warp,
    wanted: &Wanted<'m>,
    made: &Made<'m>,
) -> Result<Plan<'m>, &'static str> {
    let (flow, dominators, loops) = (context.flow(), context.dominators(), context.loops());
    let graph = flow.graph();
    let points: Vec<NodeId> = wanted.places.iter().map(|place| flow.node(block_of(place))).collect();
    let region = wanted.region(&flow).ok_or("no path leads from where lanes join to the place")?;
    let is_above = |at: &&NodeId| region.nodes().all(|node| dominators.dominates(**at, node));
    let [join] = region.beginnings(graph)[..] else { return Err("lanes join at several places") };
    if !is_above(&&join) {
        return Err("lanes can come to the place that have not joined");
    }
    let own: Vec<NodeId> = made.turns.iter().filter_map(|turn| flow.find(*turn)).filter(|n| region.holds(*n)).collect();
    let mut stops: Vec<NodeId> = Vec::new();
    for point in &points {
        let in_region = |of: &LoopId| region.holds(loops.header(*of));
        let innermost = loops.innermost(*point).filter(in_region).ok_or(ONCE)?;
        for of in std::iter::successors(Some(innermost), |of| loops.parent(*of)).take_while(in_region) {
            let always = |point: &NodeId| loops.latches(of).iter().all(|latch| dominators.dominates(*point, *latch));
            if !points.iter().any(always) {
                stops.push(loops.header(of));
            }
        }
        if wanted.enough.is_some() {
            let left = loops.members(innermost).iter().flat_map(|node| graph.successors(*node));
            stops.extend(left.filter(|to| !loops.contains(innermost, **to) && region.holds(**to)));
        }
    }
    stops.sort_unstable();
    stops.dedup();
    stops.retain(|stop| *stop != join && !points.contains(stop));
    let is_in_turn = |turn: &NodeId| {
        let holds = |inside: LoopId| stops.iter().chain(&points).any(|stop| loops.contains(inside, *stop));
        loops.headed_by(*turn).is_none_or(holds)
    };
    if own.iter().any(is_in_turn) {
        return Err("lanes wait at another predicted place between two visits");
    }
    let ids = loops.ids().filter(|of| region.holds(loops.header(*of)));
    let needs_reducible = warp.needs_reducible(flow.block(join).function());
    if needs_reducible && ids.into_iter().any(|of| loops.is_irreducible(of)) {
        return Err("a loop of the region has several entries");
    }
    let blocks: Vec<Block<'m>> = region.nodes().map(|node| flow.block(node)).collect();
    if let Some(why) = obstacle(blocks.iter().filter(|block| !made.asking.contains(block))) {
        return Err(why);
    }
    let of_nodes = |nodes: Vec<NodeId>| nodes.into_iter().map(|node| flow.block(node)).collect();
    let (join, places, stops) = (flow.block(join), of_nodes(points), of_nodes(stops));
    Ok(Plan { join, places, blocks: blocks.into_iter().collect(), stops, enough: wanted.enough })
}

/// What became of a region.
struct Done<'m> {
    entered_from: Block<'m>,
    turn: Block<'m>,
    turns: Turns,
}

struct Surgery<'a, 'm> {
    context: &'a mut Context<'m>,
    plan: Plan<'m>,
    warp: Warp,
    made: &'a mut Made<'m>,
    /// Where lanes can stand: the stops, of which the first is where the region begins; the places; the ways out.
    stands: Vec<Block<'m>>,
    /// How many stops there are: the number of the first place.
    stops: usize,
    /// The number of the first way out.
    outs: usize,
    numbers: FxHashMap<Block<'m>, usize>,
}

impl<'a, 'm> Surgery<'a, 'm> {
    fn of(context: &'a mut Context<'m>, plan: Plan<'m>, warp: Warp, made: &'a mut Made<'m>) -> Surgery<'a, 'm> {
        let mut stands = vec![plan.join];
        stands.extend(&plan.stops);
        let stops = stands.len();
        stands.extend(&plan.places);
        let outs = stands.len();
        Surgery { context, plan, warp, made, stands, stops, outs, numbers: FxHashMap::default() }
    }

    fn run(mut self) -> Done<'m> {
        let function = self.plan.join.function();
        // Lanes that come here again join again.
        let first = self.plan.join.first_insertion_point();
        let entered_from = self.plan.join.split_before(first, "join");
        let turn = function.add_block("turn");
        let leaving = self.leaving(entered_from);
        let landings: Vec<(usize, Block<'m>)> =
            leaving.iter().map(|(number, ..)| (*number, self.landing(*number))).collect();
        let who = self.warp.who(Builder::before(entered_from.terminator()));
        entered_from.terminator().set_successor(0, turn);

        let of_type = function.integer_type(32);
        let number = |number: usize| of_type.number(number as u64);
        let mut incoming = vec![(number(0), entered_from)];
        incoming.extend(landings.iter().map(|(at, landing)| (number(*at), *landing)));
        let stands = turn.add_phi(&incoming, "stands");
        let (run, behind) = self.ask([entered_from, turn], stands, who);
        for back in [run.stops, run.place] {
            let again = back.terminator().successors().into_iter().filter(|to| *to == turn);
            again.for_each(|_| stands.add_incoming(stands.as_value(), back));
        }
        for ((number, edges, from), (_, landing)) in leaving.iter().zip(&landings) {
            let goes_on = match *number {
                number if number < self.stops => run.stops,
                number if number < self.outs => run.places,
                _ => behind,
            };
            self.lead(self.stands[*number], edges, from, [*landing, turn, goes_on]);
        }
        let outs: Vec<(u64, Block<'m>)> =
            self.stands.iter().enumerate().skip(self.outs).map(|(i, out)| (i as u64, *out)).collect();
        match outs.split_last() {
            Some((last, [])) => _ = behind.branch_to(last.1),
            Some((last, others)) => _ = Builder::at_end_of(behind).switch(stands.as_value(), last.1, others),
            None => _ = behind.end_unreachable(),
        }
        self.made.turns.push(turn);
        self.made.asking.extend([entered_from, turn]);
        let turns = Turns { stops: self.stops - 1, exits: outs.len(), enough: self.plan.enough };
        Done { entered_from, turn, turns }
    }

    /// The edges that lead to where lanes stand: its number, the branches with the places among their successors, and
    /// the blocks that they come from.
    #[allow(clippy::type_complexity, reason = "a list of one use")]
    fn leaving(
        &mut self,
        entered_from: Block<'m>,
    ) -> Vec<(usize, Vec<(Instruction<'m>, usize)>, FxHashSet<Block<'m>>)> {
        self.numbers = self.stands.iter().enumerate().map(|(number, block)| (*block, number)).collect();
        // Where the region begins, no edge of it leads any more.
        self.numbers.remove(&self.plan.join);
        let mut found: Vec<(usize, Vec<_>, FxHashSet<_>)> = Vec::new();
        let mut blocks: Vec<Block<'m>> = self.plan.join.function().blocks();
        blocks.retain(|block| self.plan.blocks.contains(block));
        for block in blocks {
            let end = block.terminator();
            for (place, to) in end.successors().into_iter().enumerate() {
                let is_out = to == entered_from || !self.plan.blocks.contains(&to);
                let number = match self.numbers.get(&to) {
                    Some(number) => *number,
                    None if is_out => {
                        self.stands.push(to);
                        self.numbers.insert(to, self.stands.len() - 1);
                        self.stands.len() - 1
                    }
                    None => continue,
                };
                match found.iter_mut().find(|(at, ..)| *at == number) {
                    Some((_, edges, from)) => {
                        edges.push((end, place));
                        from.insert(block);
                    }
                    None => found.push((number, vec![(end, place)], [block].into_iter().collect())),
                }
            }
        }
        found
    }

    fn landing(&self, number: usize) -> Block<'m> {
        let name = format!("{}.next", self.stands[number].name());
        self.plan.join.function().add_block(&name)
    }

    /// Has edges lead to a landing and from there to `turn`, and lanes go on from another block. What the edges bring
    /// to phis is in a variable meanwhile. It holds the phi's value until a lane stands here again, and is not used
    /// then.
    fn lead(
        &mut self,
        to: Block<'m>,
        edges: &[(Instruction<'m>, usize)],
        from: &FxHashSet<Block<'m>>,
        [landing, turn, goes_on]: [Block<'m>; 3],
    ) {
        for (end, place) in edges {
            end.set_successor(*place, landing);
        }
        let mut brought = Vec::new();
        for phi in to.phis() {
            let (moved, kept): (Vec<_>, Vec<_>) =
                phi.incoming().into_iter().partition(|(_, block)| from.contains(block));
            let joined = landing.add_phi(&moved, "");
            joined.take_location(phi);
            if kept.is_empty() {
                brought.push((phi, joined));
            } else {
                replace_phi(to, phi, &[kept, vec![(joined.as_value(), goes_on)]].concat());
            }
        }
        let end = landing.branch_to(turn);
        for (phi, joined) in brought {
            let variable = to.function().add_slot(phi.type_of());
            for used in phi.as_value().uses() {
                let before = match used.user.is_phi() {
                    true => used.user.incoming_block(used.operand).terminator(),
                    false => used.user,
                };
                used.user.set_operand(used.operand, variable.load_before(before));
            }
            variable.store_before(joined.as_value(), end);
            phi.erase();
            self.context.promote(variable);
        }
    }

    /// Asks who goes on, from the end of `turn`. Returns the blocks from which those go on, and where all do when
    /// nobody stands at a stop or the place.
    fn ask(
        &mut self,
        [entered_from, turn]: [Block<'m>; 2],
        stands: Instruction<'m>,
        who: Option<Value<'m>>,
    ) -> (Run<'m>, Block<'m>) {
        let function = turn.function();
        let [stops, place, behind] = ["stops", "place", "behind"].map(|name| function.add_block(name));
        let (at, stands) = (Builder::at_end_of(turn), stands.as_value());
        let number = |number: usize| stands.type_of().number(number as u64);
        let is_before = |at: Builder<'m>, most: usize| at.compare(Comparison::ULess, stands, number(most));
        let is_at = |at: Builder<'m>, place: Value<'m>| at.compare(Comparison::Equal, stands, place);
        // Others than those that go on come back at once.
        let mut back = turn;
        let mut chosen = number(self.stops);
        let is_one = self.plan.places.len() == 1;
        match self.plan.enough {
            // Nobody stands where the region begins but at first, when all do.
            None if is_one && self.stops == 1 => {
                turn.branch_on(self.warp.any(at, who, is_before(at, self.outs)), place, behind);
                back = stops;
            }
            // Mostly all that have not left stand at the place.
            None if is_one => {
                let [few, ask] = ["few", "ask"].map(|name| function.add_block(name));
                self.made.asking.extend([few, ask]);
                let here = self.warp.ballot(at, who, is_at(at, chosen));
                let entered = entered_from.terminator();
                let all = who.unwrap_or_else(|| self.warp.ballot(Builder::before(entered), None, function.truth(true)));
                let left = function.add_slot(here.type_of());
                left.store_before(all, entered);
                let none = here.type_of().number(0);
                let others = turn.branch_to(few);
                let is_all = Builder::before(others).compare(Comparison::Equal, here, left.load_before(others));
                others.erase();
                turn.branch_on(is_all, place, few);
                let at = Builder::at_end_of(few);
                few.branch_on(self.warp.any(at, who, is_before(at, self.stops)), stops, ask);
                let at = Builder::at_end_of(ask);
                let end = ask.branch_on(at.compare(Comparison::NotEqual, here, none), place, behind);
                left.store_before(here, end);
                self.context.promote(left);
            }
            None => {
                let ask = function.add_block("ask");
                self.made.asking.insert(ask);
                turn.branch_on(self.warp.any(at, who, is_before(at, self.stops)), stops, ask);
                let at = Builder::at_end_of(ask);
                let (fullest, count) = self.fullest(at, who, stands);
                chosen = fullest;
                ask.branch_on(at.compare(Comparison::NotEqual, count, count.type_of().number(0)), place, behind);
            }
            Some(enough) => {
                let [few, ask] = ["few", "ask"].map(|name| function.add_block(name));
                self.made.asking.extend([few, ask]);
                let (fullest, count) = self.fullest(at, who, stands);
                chosen = fullest;
                let of_type = count.type_of();
                let is_enough = at.compare(Comparison::UGreaterEqual, count, of_type.number(enough as u64));
                turn.branch_on(is_enough, place, few);
                let at = Builder::at_end_of(few);
                few.branch_on(self.warp.any(at, who, is_before(at, self.stops)), stops, ask);
                let at = Builder::at_end_of(ask);
                ask.branch_on(at.compare(Comparison::NotEqual, count, of_type.number(0)), place, behind);
            }
        }
        let at = Builder::at_end_of(place);
        let places = if is_one {
            place.branch_on(is_at(at, chosen), self.plan.places[0], back);
            place
        } else {
            let places = function.add_block("places");
            place.branch_on(is_at(at, chosen), places, back);
            self.lead_on(places, stands, self.stops..self.outs - 1, self.stands[self.outs - 1]);
            places
        };
        self.lead_on(stops, stands, 0..self.stops, turn);
        (Run { stops, place, places }, behind)
    }

    /// The number of the place at which most lanes stand, and how many do.
    fn fullest(&self, at: Builder<'m>, who: Option<Value<'m>>, stands: Value<'m>) -> (Value<'m>, Value<'m>) {
        let number = |number: usize| stands.type_of().number(number as u64);
        let count = |place| self.warp.count(at, who, at.compare(Comparison::Equal, stands, number(place)));
        let mut best = (number(self.stops), count(self.stops));
        for place in self.stops + 1..self.outs {
            let others = count(place);
            let is_more = at.compare(Comparison::UGreater, others, best.1);
            best = (at.select(is_more, number(place), best.0), at.select(is_more, others, best.1));
        }
        best
    }

    /// Ends a block with the ways of those that stand at some of the numbers, and of all others.
    fn lead_on(&self, from: Block<'m>, stands: Value<'m>, numbers: std::ops::Range<usize>, otherwise: Block<'m>) {
        let cases: Vec<(u64, Block<'m>)> = numbers.map(|number| (number as u64, self.stands[number])).collect();
        Builder::at_end_of(from).switch(stands, otherwise, &cases);
    }
}

/// The blocks from which lanes go on: at stops, and at places by way of another, unless there is one place.
struct Run<'m> {
    stops: Block<'m>,
    place: Block<'m>,
    places: Block<'m>,
}
