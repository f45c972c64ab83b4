//! Work grows as the function does: counted, not timed.

use divergence::{Analysis, Binary, Builder, Decision, Gates, Kind, Op, Options, Predicate, Promise};
use flowgraph::NodeId;

const WORD: Kind = Kind::Bits(32);

/// So many loops in a row, each with a divergent `if` in it: values, and how often a rule was applied.
fn applied(parts: usize) -> (usize, u64) {
    let mut b = Builder::new(4 * parts + 1);
    let tid = b.free(WORD, Op::Thread { dimension: 0, scale: 1 }, "tid");
    let n = b.free(WORD, Op::Uniform, "n");
    let [zero, one] = [0, 1].map(|k| b.free(WORD, Op::Number(k), ""));
    let mut x = tid;
    for part in 0..parts {
        let [head, arm, join, next] = std::array::from_fn(|k| NodeId((4 * part + 1 + k) as u32));
        let before = NodeId(4 * part as u32);
        b.edge(before, head).edge(head, arm).edge(head, join).edge(arm, join).edge(join, head).edge(join, next);
        let i = b.add(head, WORD, Op::Undefined, "");
        let sum = b.add(head, WORD, Op::Undefined, "");
        let c = b.add(head, Kind::Bits(1), Op::Compare(Predicate::Equality { equal: true }, sum, tid), "");
        b.decide(head, Decision::By(c));
        let y = b.add(arm, WORD, Op::Binary(Binary::Mul, sum, n, Promise::default()), "");
        let z = b.add(join, WORD, Op::Phi(vec![(head, sum), (arm, y)]), "");
        let more = b.add(join, WORD, Op::Binary(Binary::Add, z, i, Promise::default()), "");
        let k = b.add(join, WORD, Op::Binary(Binary::Add, i, one, Promise::default()), "");
        let less = Predicate::Order { signed: false, less: true, or_equal: false };
        let d = b.add(join, Kind::Bits(1), Op::Compare(less, k, n), "");
        b.decide(join, Decision::By(d));
        b.set(i, Op::Phi(vec![(before, zero), (join, k)]));
        b.set(sum, Op::Phi(vec![(before, x), (join, more)]));
        x = more;
    }
    let function = b.build();
    (function.values().len(), Analysis::of(&function, &Options::default()).evaluations())
}

#[test]
fn a_function_ten_times_as_large_takes_ten_times_as_many_rules() {
    let per_value = [10, 100, 1000, 5000].map(|parts| {
        let (values, applied) = applied(parts);
        applied as f64 / values as f64
    });
    assert!(per_value.iter().all(|&each| each >= 1.0), "{per_value:?}");
    assert!(per_value[3] <= 1.1 * per_value[1], "{per_value:?}");
}

/// So many ifs with two arms in each other, with another if in each arm but the innermost: blocks, and how many were
/// looked at to find what decides at the joins.
fn looked_at(depth: usize) -> (usize, u64) {
    let mut b = Builder::new(6 * depth + 1);
    let node = |level: usize, k: usize| NodeId((6 * level + k) as u32);
    for level in 0..depth {
        // A head, an arm with an if of its own, and the join.
        let [head, arm, one, other, met, join] = std::array::from_fn(|k| node(level, k));
        b.edge(head, node(level + 1, 0)).edge(head, arm);
        b.edge(arm, one).edge(arm, other).edge(one, met).edge(other, met).edge(met, join);
        b.edge(if level + 1 == depth { node(depth, 0) } else { node(level + 1, 5) }, join);
        for block in [head, arm] {
            b.decide(block, Decision::Unknown);
        }
    }
    (6 * depth + 1, Gates::of(&b.build()).visited())
}

#[test]
fn ifs_ten_times_as_deep_have_ten_times_as_many_blocks_to_look_at() {
    let per_block = [100, 1000].map(|depth| {
        let (blocks, looked_at) = looked_at(depth);
        looked_at as f64 / blocks as f64
    });
    assert!(per_block[0] > 1.0 && per_block[1] <= 1.1 * per_block[0], "{per_block:?}");
}
