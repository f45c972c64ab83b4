//! A layered drawing of a control-flow graph.
//!
//! The steps of Sugiyama, Tagawa and Toda (*Methods for visual understanding of hierarchical system structures*, IEEE
//! Trans. SMC 11, 1981): edges that lead back are turned round; each node's layer is the length of the longest path to
//! it; edges over several layers are cut at each by a point; in each layer nodes are ordered by the mean place of their
//! neighbours; and x is the mean of the neighbours' as far as neighbours in the layer leave room.

use std::collections::VecDeque;

/// The width and height of a node.
pub const NODE: (f64, f64) = (150.0, 44.0);
/// Between two nodes of a layer, and between two layers.
const GAP: (f64, f64) = (26.0, 46.0);
/// The width that a cut edge takes.
const POINT: f64 = 14.0;
/// Rounds of ordering, down and up.
const ROUNDS: usize = 8;

/// Where everything is.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Width and height.
    pub size: (f64, f64),
    /// The middle of each node.
    pub nodes: Vec<(f64, f64)>,
    /// The points of each edge, from its source to its target.
    pub edges: Vec<Vec<(f64, f64)>>,
}

/// A node, or a point at which an edge is cut.
struct Item {
    layer: usize,
    width: f64,
    x: f64,
    up: Vec<usize>,
    down: Vec<usize>,
}

/// Draws the graph of so many nodes; node 0 is where it is entered.
#[must_use]
pub fn lay_out(nodes: usize, edges: &[(usize, usize)]) -> Drawing {
    let back = back_edges(nodes, edges);
    let layer = layers(nodes, edges, &back);
    let (mut items, chains) = cut(&layer, edges, &back);
    let mut rows = rows(&items);
    order(&mut items, &mut rows);
    place(&mut items, &rows);
    finish(&items, &chains, edges, &back, nodes)
}

/// Which edges lead back to a node from which the walk has come; a loop to itself does.
fn back_edges(nodes: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        Open,
        Done,
    }
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    edges.iter().enumerate().for_each(|(e, (from, _))| out[*from].push(e));
    let mut seen = vec![Seen::Not; nodes];
    let mut back = vec![false; edges.len()];
    for start in 0..nodes {
        if seen[start] != Seen::Not {
            continue;
        }
        seen[start] = Seen::Open;
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            let Some(edge) = out[*node].get(*next).copied() else {
                seen[*node] = Seen::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let to = edges[edge].1;
            match seen[to] {
                Seen::Open => back[edge] = true,
                Seen::Not => {
                    seen[to] = Seen::Open;
                    path.push((to, 0));
                }
                Seen::Done => {}
            }
        }
    }
    back
}

/// By node: the most edges on a way to it.
fn layers(nodes: usize, edges: &[(usize, usize)], back: &[bool]) -> Vec<usize> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    let mut waiting = vec![0; nodes];
    for ((from, to), _) in edges.iter().zip(back).filter(|(_, back)| !**back) {
        out[*from].push(*to);
        waiting[*to] += 1;
    }
    let mut layer = vec![0; nodes];
    let mut ready: VecDeque<usize> = (0..nodes).filter(|n| waiting[*n] == 0).collect();
    while let Some(node) = ready.pop_front() {
        for to in &out[node] {
            layer[*to] = layer[*to].max(layer[node] + 1);
            waiting[*to] -= 1;
            if waiting[*to] == 0 {
                ready.push_back(*to);
            }
        }
    }
    layer
}

/// Nodes and points, and by edge those that it runs through from the upper layer to the lower.
fn cut(layer: &[usize], edges: &[(usize, usize)], back: &[bool]) -> (Vec<Item>, Vec<Vec<usize>>) {
    let item = |layer, width| Item { layer, width, x: 0.0, up: Vec::new(), down: Vec::new() };
    let mut items: Vec<Item> = layer.iter().map(|l| item(*l, NODE.0)).collect();
    let mut chains = Vec::new();
    for ((from, to), back) in edges.iter().zip(back) {
        let (upper, lower) = if *back { (*to, *from) } else { (*from, *to) };
        let mut chain = vec![upper];
        if upper != lower {
            for between in layer[upper] + 1..layer[lower] {
                chain.push(items.len());
                items.push(item(between, POINT));
            }
            chain.push(lower);
        }
        for pair in chain.windows(2) {
            items[pair[0]].down.push(pair[1]);
            items[pair[1]].up.push(pair[0]);
        }
        chains.push(chain);
    }
    (items, chains)
}

fn rows(items: &[Item]) -> Vec<Vec<usize>> {
    let count = items.iter().map(|i| i.layer + 1).max().unwrap_or(0);
    let mut rows = vec![Vec::new(); count];
    items.iter().enumerate().for_each(|(i, item)| rows[item.layer].push(i));
    rows
}

/// Orders each row by the mean place of the neighbours in the row before, down and up again.
fn order(items: &mut [Item], rows: &mut [Vec<usize>]) {
    let mut at: Vec<f64> = vec![0.0; items.len()];
    let number = |row: &[usize], at: &mut Vec<f64>| row.iter().enumerate().for_each(|(n, i)| at[*i] = n as f64);
    rows.iter().for_each(|row| number(row, &mut at));
    for round in 0..ROUNDS {
        let down = round % 2 == 0;
        let count = rows.len();
        for n in 0..count {
            let row = &mut rows[if down { n } else { count - 1 - n }];
            let mean = |i: usize| {
                let neighbours = if down { &items[i].up } else { &items[i].down };
                let sum: f64 = neighbours.iter().map(|n| at[*n]).sum();
                if neighbours.is_empty() { at[i] } else { sum / neighbours.len() as f64 }
            };
            let mut keyed: Vec<(f64, usize)> = row.iter().map(|i| (mean(*i), *i)).collect();
            // The sort is stable: equals stay as they are.
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|(_, i)| i).collect();
            number(row, &mut at);
        }
    }
}

/// Each item at the mean of its neighbours, as far as the row leaves room.
fn place(items: &mut [Item], rows: &[Vec<usize>]) {
    for row in rows {
        let mut x = 0.0;
        for i in row {
            items[*i].x = x + items[*i].width / 2.0;
            x += items[*i].width + GAP.0;
        }
    }
    for round in 0..ROUNDS * 2 {
        let down = round % 2 == 0;
        let count = rows.len();
        for n in 0..count {
            let row = &rows[if down { n } else { count - 1 - n }];
            let wanted: Vec<f64> = row.iter().map(|i| wanted(items, *i, down)).collect();
            settle(items, row, &wanted);
        }
    }
    let left = items.iter().map(|i| i.x - i.width / 2.0).fold(f64::INFINITY, f64::min);
    items.iter_mut().for_each(|i| i.x -= left - GAP.0);
}

fn wanted(items: &[Item], i: usize, down: bool) -> f64 {
    let neighbours = if down { &items[i].up } else { &items[i].down };
    let sum: f64 = neighbours.iter().map(|n| items[*n].x).sum();
    if neighbours.is_empty() { items[i].x } else { sum / neighbours.len() as f64 }
}

/// As near to where they want to be as their order and widths allow: neighbours that would overlap stand side by side
/// around their mean.
fn settle(items: &mut [Item], row: &[usize], wanted: &[f64]) {
    // Each run: its items' number, the sum of where they want its left end to be, and its width.
    let mut runs: Vec<(usize, f64, f64)> = Vec::new();
    for (i, wanted) in row.iter().zip(wanted) {
        let width = items[*i].width + GAP.0;
        runs.push((1, wanted - width / 2.0, width));
        while let [.., (n, sum, width), (m, more, wide)] = runs[..] {
            if sum / n as f64 + width <= more / m as f64 {
                break;
            }
            runs.pop();
            runs.pop();
            runs.push((n + m, sum + more - width * m as f64, width + wide));
        }
    }
    let mut next = row.iter();
    for (count, sum, _) in runs {
        let mut x = sum / count as f64;
        for i in next.by_ref().take(count) {
            let width = items[*i].width + GAP.0;
            items[*i].x = x + width / 2.0;
            x += width;
        }
    }
}

fn finish(items: &[Item], chains: &[Vec<usize>], edges: &[(usize, usize)], back: &[bool], nodes: usize) -> Drawing {
    let y = |layer: usize| GAP.1 / 2.0 + NODE.1 / 2.0 + layer as f64 * (NODE.1 + GAP.1);
    let at = |i: usize| (items[i].x, y(items[i].layer));
    let half = NODE.1 / 2.0;
    let way = |e: usize| -> Vec<(f64, f64)> {
        let (from, to) = edges[e];
        if from == to {
            let (x, y) = at(from);
            let right = x + NODE.0 / 2.0;
            // A curve: where it begins, two points that it bends towards, where it ends.
            let (out, over) = (right + 26.0, half + 20.0);
            return vec![(right - 24.0, y + half), (out, y + over), (out, y - over), (right - 24.0, y - half)];
        }
        let chain = &chains[e];
        let (first, last) = (at(chain[0]), at(chain[chain.len() - 1]));
        // What leads back leaves the nodes beside what leads on.
        let beside = if back[e] { 30.0 } else { 0.0 };
        let mut points = vec![(first.0 + beside, first.1 + half)];
        points.extend(chain[1..chain.len() - 1].iter().map(|i| at(*i)));
        points.push((last.0 + beside, last.1 - half));
        if back[e] {
            points.reverse();
        }
        points
    };
    let width = items.iter().map(|i| i.x + i.width / 2.0).fold(0.0, f64::max) + GAP.0;
    let layers = items.iter().map(|i| i.layer + 1).max().unwrap_or(0);
    let height = layers as f64 * (NODE.1 + GAP.1);
    Drawing { size: (width, height), nodes: (0..nodes).map(at).collect(), edges: (0..edges.len()).map(way).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(drawing: &Drawing) -> bool {
        let all = &drawing.nodes;
        (0..all.len()).any(|i| (0..i).any(|j| all[i].1 == all[j].1 && (all[i].0 - all[j].0).abs() < NODE.0))
    }

    #[test]
    fn two_arms_stand_side_by_side_under_their_branch() {
        let drawing = lay_out(4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
        let [branch, one, other, join] = [0, 1, 2, 3].map(|n| drawing.nodes[n]);
        assert!(branch.1 < one.1 && one.1 == other.1 && other.1 < join.1 && !overlap(&drawing));
        assert!((branch.0 - (one.0 + other.0) / 2.0).abs() < 1.0 && (join.0 - branch.0).abs() < 1.0);
    }

    #[test]
    fn an_edge_that_leads_back_runs_upwards() {
        let drawing = lay_out(3, &[(0, 1), (1, 2), (2, 1), (1, 1)]);
        let back = &drawing.edges[2];
        assert!(back[0].1 > back[back.len() - 1].1);
        assert_eq!(drawing.edges[3].len(), 4);
    }

    #[test]
    fn an_edge_over_several_layers_passes_beside_the_nodes() {
        let drawing = lay_out(4, &[(0, 1), (1, 2), (2, 3), (0, 3)]);
        for (x, y) in &drawing.edges[3][1..drawing.edges[3].len() - 1] {
            assert!(drawing.nodes.iter().all(|n| n.1 != *y || (n.0 - x).abs() > NODE.0 / 2.0));
        }
    }

    #[test]
    fn nodes_of_a_large_random_graph_do_not_overlap() {
        let mut state = 1u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let edges: Vec<(usize, usize)> = (0..300).map(|_| (next(120), next(120))).collect();
        let drawing = lay_out(120, &edges);
        assert!(!overlap(&drawing));
        let inside = |p: &(f64, f64)| p.0 >= 0.0 && p.1 >= 0.0 && p.1 <= drawing.size.1;
        assert!(drawing.nodes.iter().all(inside));
    }
}
