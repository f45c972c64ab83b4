//! The walk judged by looking, for each access, at all that came before it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use trace_format::Pc;

use super::code::{Access, Ran, unknown};
use super::walk::Walker;

/// A lane's access: by which instruction, to which address, of how many bytes, and whether it writes.
#[derive(Clone, Copy, Debug)]
struct Accesses {
    site: u8,
    address: u64,
    size: u8,
    writes: bool,
}

fn accesses(sizes: &'static [u8]) -> impl Strategy<Value = Vec<Vec<Accesses>>> {
    let one = (0_u8..6, 0_u64..12, proptest::sample::select(sizes)).prop_map(|(site, address, size)| Accesses {
        site,
        address: 0x1000 + address,
        size,
        // Of an instruction it is always the one or the other.
        writes: site % 2 == 0,
    });
    proptest::collection::vec(proptest::collection::vec(one, 0..6), 1..9)
}

type Counted = BTreeMap<(u64, u64), (u64, u32)>;

/// What the walk says: by instructions, how often and how far apart; what was overwritten so; and whose writes went
/// over those of others.
fn walked(lanes: &[Vec<Accesses>]) -> (Counted, BTreeSet<(u64, u64)>, BTreeMap<u64, u64>) {
    let mut walker = Walker::new();
    walker.begin_launch(0, true);
    for (lane, all) in lanes.iter().enumerate() {
        walker.begin_lane(lane, 0);
        for one in all {
            let access = Access {
                size: one.size,
                reads: !one.writes,
                writes: one.writes,
                in_frame: false,
                is_stack: false,
                is_selected: false,
            };
            let pc = Pc(u64::from(one.site));
            let ran = Ran { accesses: vec![access], ..unknown(pc) };
            let site = walker.site(pc);
            walker.ran(&ran, site, &[one.address]);
        }
        walker.end_lane();
    }
    let pc = |site: u32| walker.sites[site as usize].pc.0;
    let carried = walker.flows.carried.iter();
    let carried = carried.map(|((from, to), flow)| ((pc(*from), pc(*to)), (flow.count, flow.distance))).collect();
    let overwritten = walker.flows.overwritten.keys().map(|(from, to)| (pc(*from), pc(*to))).collect();
    let overwrote = walker.sites.iter().filter(|site| site.overwrote.0 > 0);
    (carried, overwritten, overwrote.map(|site| (site.pc.0, site.overwrote.0)).collect())
}

/// All accesses in a row, each with its lane.
fn in_a_row(lanes: &[Vec<Accesses>]) -> Vec<(usize, Accesses)> {
    lanes.iter().enumerate().flat_map(|(lane, all)| all.iter().map(move |one| (lane, *one))).collect()
}

fn touches(one: &Accesses, byte: u64) -> bool {
    (one.address..one.address + u64::from(one.size)).contains(&byte)
}

fn bytes(one: &Accesses) -> std::ops::Range<u64> {
    one.address..one.address + u64::from(one.size)
}

/// The last write of a byte before an access.
fn writer(all: &[(usize, Accesses)], before: usize, byte: u64) -> Option<(usize, Accesses)> {
    all[..before].iter().rev().find(|(_, one)| one.writes && touches(one, byte)).copied()
}

proptest! {
    #[test]
    fn single_bytes_flow_as_every_earlier_access_says(lanes in accesses(&[1])) {
        let all = in_a_row(&lanes);
        let (mut carried, mut overwrote) = (Counted::new(), BTreeMap::new());
        let mut overwritten = BTreeSet::new();
        for (at, (lane, one)) in all.iter().enumerate() {
            let last = writer(&all, at, one.address);
            match last {
                Some((by, write)) if by != *lane && !one.writes => {
                    let pair = (u64::from(write.site), u64::from(one.site));
                    let flow = carried.entry(pair).or_insert((0, u32::MAX));
                    *flow = (flow.0 + 1, flow.1.min((*lane - by) as u32));
                }
                Some((by, _)) if by != *lane => *overwrote.entry(u64::from(one.site)).or_insert(0) += 1,
                _ => {}
            }
            // The first read since the last write that found there what its own lane had not written.
            if one.writes {
                let first = all[..at].iter().rposition(|(_, o)| o.writes && o.address == one.address).map_or(0, |n| n + 1);
                let mut reads = (first..at).filter(|n| {
                    let (by, read) = all[*n];
                    !read.writes && read.address == one.address
                        && writer(&all, *n, read.address).is_none_or(|(maker, _)| maker != by)
                });
                if let Some((by, read)) = reads.next().map(|n| all[n]) && by != *lane {
                    overwritten.insert((u64::from(read.site), u64::from(one.site)));
                }
            }
        }
        prop_assert_eq!(walked(&lanes), (carried, overwritten, overwrote));
    }

    #[test]
    fn wider_accesses_flow_where_one_of_their_bytes_does(lanes in accesses(&[1, 2, 4, 8])) {
        let all = in_a_row(&lanes);
        let (carried, _, _) = walked(&lanes);
        let mut possible = BTreeSet::new();
        let mut sure: BTreeMap<u64, u64> = BTreeMap::new();
        for (at, (lane, one)) in all.iter().enumerate().filter(|(_, (_, one))| !one.writes) {
            let makers = bytes(one).filter_map(|byte| writer(&all, at, byte)).filter(|(by, _)| by != lane);
            let makers: Vec<u64> = makers.map(|(_, write)| u64::from(write.site)).collect();
            possible.extend(makers.iter().map(|maker| (*maker, u64::from(one.site))));
            *sure.entry(u64::from(one.site)).or_default() += u64::from(!makers.is_empty());
        }
        prop_assert!(carried.keys().all(|pair| possible.contains(pair)));
        for (site, count) in sure {
            let found: u64 = carried.iter().filter(|((_, to), _)| *to == site).map(|(_, (n, _))| n).sum();
            prop_assert_eq!(found, count, "each access that has such a byte is counted once");
        }
    }
}
