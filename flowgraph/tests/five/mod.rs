//! Graphs of five nodes, for tests.

/// All graphs of five nodes, each of at most two ways, whose first is the entry and whose last the only exit, all on
/// paths from the one to the other.
pub(crate) fn all(mut visit: impl FnMut(&[(u32, u32)])) {
    let ways: Vec<Vec<u32>> = (0_u32..32)
        .filter(|w| (1..=2).contains(&w.count_ones()))
        .map(|w| (0..5).filter(|i| w >> i & 1 == 1).collect())
        .collect();
    for number in 0..ways.len().pow(4) {
        let mut rest = number;
        let mut edges = Vec::new();
        for from in 0..4 {
            edges.extend(ways[rest % ways.len()].iter().map(|&to| (from, to)));
            rest /= ways.len();
        }
        let closure = |start: u32, forward: bool| {
            let mut seen = 1_u32 << start;
            for _ in 0..5 {
                for &(from, to) in &edges {
                    let (a, b) = if forward { (from, to) } else { (to, from) };
                    seen |= (seen >> a & 1) << b;
                }
            }
            seen == 31
        };
        if edges.iter().all(|&(_, to)| to != 0) && closure(0, true) && closure(4, false) {
            visit(&edges);
        }
    }
}
