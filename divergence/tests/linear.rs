//! How often rules are applied grows as the function does: counted, not timed.

use divergence::{Analysis, Binary, Builder, Decision, Kind, Op, Options, Predicate, Promise};
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
