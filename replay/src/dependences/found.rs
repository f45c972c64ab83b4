//! The result of a walk.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::sites::{Flow, Pair, Site};
use super::walk::Walker;
use super::{Dependence, Dependences, Kind};
use machine::Operator;

/// Updates that take on what each other made, in a circle: those of one accumulator.
struct Accumulators {
    /// By update: the number of its accumulator.
    of: FxHashMap<u32, usize>,
    /// By accumulator: its updates.
    updates: Vec<Vec<u32>>,
}

/// The dependences that a walk has seen, those that hinder most first.
pub(super) fn of(walker: &Walker) -> Dependences {
    let accumulators = Accumulators::of(walker);
    let flows = &walker.flows;
    // What is used of an accumulator is said with it; all else that updates made is a value like others.
    let is_within = |pair: &Pair| accumulators.of.contains_key(&pair.0);
    let of_updates = flows.of_updates.iter().chain(&flows.updates).filter(|(pair, _)| !is_within(pair));
    let mut carried: BTreeMap<Pair, Flow> = flows.carried.clone();
    for (pair, flow) in of_updates {
        let known = carried.entry(*pair).or_insert(Flow { count: 0, ..*flow });
        known.count += flow.count;
        known.distance = known.distance.min(flow.distance);
    }
    let mut guarded: BTreeMap<Pair, Flow> = flows.guarded.clone();
    for (pair, flow) in flows.of_updates_guarded.iter().filter(|(pair, _)| !is_within(pair)) {
        let known = guarded.entry(*pair).or_insert(Flow { count: 0, ..*flow });
        known.count += flow.count;
        known.distance = known.distance.min(flow.distance);
    }
    let mut all: Vec<Dependence> =
        carried.iter().map(|(pair, flow)| of_flow(walker, Kind::Carried, *pair, flow)).collect();
    all.extend(guarded.iter().map(|(pair, flow)| of_flow(walker, Kind::Guarded, *pair, flow)));
    all.extend((0..accumulators.updates.len()).map(|number| accumulators.judge(number, walker)));
    // Makers of values that were used by others, and accumulators: what they overwrite is no private place.
    let makers = carried.keys().chain(guarded.keys()).map(|pair| pair.0);
    let makers: FxHashSet<u32> = makers.chain(accumulators.of.keys().copied()).collect();
    for (number, site) in walker.sites.iter().enumerate() {
        let overwrites = site.overwrote.0 > 0 && !site.is_atomic && !makers.contains(&(number as u32));
        all.extend(overwrites.then_some(Dependence {
            kind: Kind::Private,
            from: site.pc,
            to: site.pc,
            count: site.overwrote.0,
            lanes: None,
            distance: None,
            address: Some(site.overwrote.1),
        }));
    }
    let is_private = |address: Option<u64>| all.iter().any(|one| one.kind == Kind::Private && one.address == address);
    let overwritten = flows.overwritten.iter();
    let overwritten = overwritten.filter(|((_, writer), flow)| !makers.contains(writer) && !is_private(flow.address));
    let overwritten: Vec<Dependence> =
        overwritten.map(|(pair, flow)| of_flow(walker, Kind::Overwritten, *pair, flow)).collect();
    all.extend(overwritten);
    all.sort_by_key(|one| (one.kind, std::cmp::Reverse(one.count), one.from, one.to));
    Dependences { all, is_partial: walker.shadow.is_full }
}

fn of_flow(walker: &Walker, kind: Kind, (from, to): Pair, flow: &Flow) -> Dependence {
    Dependence {
        kind,
        from: walker.sites[from as usize].pc,
        to: walker.sites[to as usize].pc,
        count: flow.count,
        lanes: Some((flow.lanes.0 as usize, flow.lanes.1 as usize)),
        distance: Some(flow.distance),
        address: flow.address,
    }
}

impl Accumulators {
    /// The circles of updates through which a value goes from lane to lane.
    fn of(walker: &Walker) -> Accumulators {
        let mut next: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (from, to) in walker.chains.keys() {
            next.entry(*from).or_default().push(*to);
        }
        let mut found = Accumulators { of: FxHashMap::default(), updates: Vec::new() };
        // Each value that goes on is in the circle from its user back to its maker, if there is one.
        for (maker, user) in walker.flows.updates.keys() {
            if found.of.contains_key(maker) {
                continue;
            }
            let behind = reached(&next, *user);
            if !behind.contains(maker) {
                continue;
            }
            let mut circle: Vec<u32> =
                behind.into_iter().filter(|one| one == maker || reached(&next, *one).contains(maker)).collect();
            circle.sort_unstable();
            found.of.extend(circle.iter().map(|update| (*update, found.updates.len())));
            found.updates.push(circle);
        }
        found
    }

    /// What kind of dependence the updates of an accumulator are.
    fn judge(&self, number: usize, walker: &Walker) -> Dependence {
        let updates = &self.updates[number];
        let sites = || updates.iter().map(|site| &walker.sites[*site as usize]);
        let is_own = |site: &u32| self.of.get(site) == Some(&number);
        let taken_on = walker.flows.updates.iter().filter(|((from, to), _)| is_own(from) && is_own(to));
        let (mut count, mut most) = (0, (0, updates[0]));
        for ((_, to), flow) in taken_on {
            count += flow.count;
            most = most.max((flow.count, *to));
        }
        // A store that always goes to one place leaves there what the last lane made.
        let is_use = |user: &u32| {
            let user = &walker.sites[*user as usize];
            !(user.stores_to_one() && user.operator.is_none())
        };
        let by_others =
            sites().flat_map(|site| &site.uses).filter(|(user, _)| is_use(user)).map(|(user, n)| (*n, *user));
        let by_updates = walker.chains.iter().filter(|((from, to), _)| is_own(from) && !is_own(to));
        let user = by_others.chain(by_updates.map(|((_, to), n)| (*n, *to))).max();
        let operator = sites().find_map(|site| site.operator.filter(|operator| *operator != Operator::Add));
        let operator = operator.unwrap_or(Operator::Add);
        let is_several = sites().any(Site::has_homes);
        let is_regular = !is_several && sites().all(|site| !site.is_taking()) && walker.are_regular(updates);
        let kind = match user {
            _ if sites().all(|site| site.is_atomic) => Kind::Atomic,
            _ if is_regular => Kind::Induction,
            Some(_) => Kind::Partial(operator),
            None if is_several => Kind::Scattered(operator),
            None => Kind::Reduction(operator),
        };
        let from = walker.sites[most.1 as usize].pc;
        let user = user.filter(|_| matches!(kind, Kind::Partial(_)));
        Dependence {
            kind,
            from,
            to: user.map_or(from, |(_, user)| walker.sites[user as usize].pc),
            count,
            lanes: None,
            distance: None,
            address: sites().find_map(Site::a_home),
        }
    }
}

/// What updates behind this one take on what it made, itself included.
fn reached(next: &BTreeMap<u32, Vec<u32>>, from: u32) -> FxHashSet<u32> {
    let mut seen = FxHashSet::default();
    let mut left = vec![from];
    while let Some(one) = left.pop() {
        if seen.insert(one) {
            left.extend(next.get(&one).into_iter().flatten());
        }
    }
    seen
}
