//! Each rule of the paper's figure 4 by itself, on a function of a few values.

use divergence::{
    Analysis, Binary, Builder, Decision, Kind, Memory, Op, Options, Predicate, Promise, Return, Rule, ValueId,
};
use flowgraph::NodeId;

const WORD: Kind = Kind::Bits(32);
const ENTRY: NodeId = NodeId(0);

struct Maker(Builder);

impl Maker {
    fn new(blocks: usize) -> Maker {
        Maker(Builder::new(blocks))
    }

    fn add(&mut self, op: Op) -> ValueId {
        self.0.add(ENTRY, WORD, op, "")
    }

    fn tid(&mut self) -> ValueId {
        self.add(Op::Thread { dimension: 0, scale: 1 })
    }

    fn binary(&mut self, op: Binary, a: ValueId, b: ValueId) -> ValueId {
        self.add(Op::Binary(op, a, b, Promise::default()))
    }

    /// Rule and fact of a value.
    fn told(self, value: ValueId) -> (Rule, String) {
        let function = self.0.build();
        let analysis = Analysis::of(&function, &Options::default());
        (analysis.rule(value), analysis.text_of(&analysis.fact(value)))
    }
}

#[track_caller]
fn says(make: impl FnOnce(&mut Maker) -> ValueId, rule: Rule, fact: &str) {
    let mut maker = Maker::new(1);
    let value = make(&mut maker);
    assert_eq!(maker.told(value), (rule, fact.to_owned()));
}

#[test]
fn tida_a_multiple_of_the_thread_number_is_affine() {
    says(|m| m.add(Op::Thread { dimension: 0, scale: 4 }), Rule::Tida, "4·tid");
}

#[test]
fn asga_a_copy_is_what_it_copies() {
    says(
        |m| {
            let t = m.tid();
            m.add(Op::Copy(t))
        },
        Rule::Asga,
        "tid",
    );
}

#[test]
fn atma_an_atomic_operation_is_divergent() {
    says(
        |m| {
            let u = m.add(Op::Uniform);
            m.add(Op::Atomic(vec![u]))
        },
        Rule::Atma,
        "⊥",
    );
}

#[test]
fn cnta_a_constant_is_itself() {
    says(|m| m.add(Op::Number(7)), Rule::Cnta, "7");
}

#[test]
fn guza_of_a_uniform_operand_the_result_is_uniform() {
    says(
        |m| {
            let u = m.add(Op::Uniform);
            m.add(Op::General(vec![u]))
        },
        Rule::Guza,
        "v1",
    );
}

#[test]
fn guna_of_another_operand_the_result_is_divergent() {
    says(
        |m| {
            let t = m.tid();
            m.add(Op::General(vec![t]))
        },
        Rule::Guna,
        "⊥",
    );
}

#[test]
fn ldua_a_load_from_one_address_is_uniform() {
    says(
        |m| {
            let u = m.add(Op::Uniform);
            m.add(Op::Load(u, Memory::Shared))
        },
        Rule::Ldua,
        "v1",
    );
}

#[test]
fn ldda_a_load_from_different_addresses_is_divergent() {
    says(
        |m| {
            let t = m.tid();
            m.add(Op::Load(t, Memory::Shared))
        },
        Rule::Ldda,
        "⊥",
    );
}

#[test]
fn suma_adds_coefficients() {
    says(
        |m| {
            let (t, n) = (m.tid(), m.add(Op::Number(3)));
            let a = m.binary(Binary::Add, t, n);
            m.binary(Binary::Add, a, t)
        },
        Rule::Suma,
        "2·tid + 3",
    );
}

#[test]
fn suma_of_opposite_strides_is_uniform() {
    says(
        |m| {
            let t = m.tid();
            m.binary(Binary::Sub, t, t)
        },
        Rule::Suma,
        "0",
    );
}

#[test]
fn mlva_a_product_of_affine_values_is_divergent() {
    says(
        |m| {
            let t = m.tid();
            m.binary(Binary::Mul, t, t)
        },
        Rule::Mlva,
        "⊥",
    );
}

#[test]
fn mlca_a_product_with_a_uniform_value_is_affine() {
    says(
        |m| {
            let (t, u) = (m.tid(), m.add(Op::Uniform));
            m.binary(Binary::Mul, u, t)
        },
        Rule::Mlca,
        "v1·tid",
    );
}

#[test]
fn diva_a_quotient_by_what_divides_the_stride_is_affine() {
    says(
        |m| {
            let (t, four) = (m.tid(), m.add(Op::Number(4)));
            let product = m.binary(Binary::Mul, t, four);
            let two = m.add(Op::Number(2));
            m.binary(Binary::Udiv, product, two)
        },
        Rule::Diva,
        "2·tid",
    );
    says(
        |m| {
            let (t, two) = (m.tid(), m.add(Op::Number(2)));
            m.binary(Binary::Udiv, t, two)
        },
        Rule::Diva,
        "⊥",
    );
}

#[test]
fn gbza_of_two_uniform_operands_the_result_is_uniform() {
    says(
        |m| {
            let (a, b) = (m.add(Op::Number(12)), m.add(Op::Number(10)));
            m.binary(Binary::And, a, b)
        },
        Rule::Gbza,
        "8",
    );
}

#[test]
fn gbna_one_operand_that_is_not_uniform_is_enough() {
    for swapped in [false, true] {
        says(
            |m| {
                let (t, u) = (m.tid(), m.add(Op::Uniform));
                let (a, b) = if swapped { (u, t) } else { (t, u) };
                m.binary(Binary::Xor, a, b)
            },
            Rule::Gbna,
            "⊥",
        );
    }
    // ⊥ counts as not uniform.
    says(
        |m| {
            let (d, u) = (m.add(Op::Divergent), m.add(Op::Uniform));
            m.binary(Binary::And, d, u)
        },
        Rule::Gbna,
        "⊥",
    );
}

/// `if (by) x = a; else x = b; x`, where `by` is uniform or not.
fn join(uniform: bool, values: [i64; 2]) -> (Rule, String) {
    let mut m = Maker::new(4);
    let by = if uniform { m.add(Op::Uniform) } else { m.tid() };
    let nodes = [1, 2, 3].map(NodeId);
    m.0.decide(ENTRY, Decision::By(by));
    for (from, to) in [(ENTRY, nodes[0]), (ENTRY, nodes[1]), (nodes[0], nodes[2]), (nodes[1], nodes[2])] {
        m.0.edge(from, to);
    }
    let tid = m.tid();
    let arms: Vec<(NodeId, ValueId)> = [0, 1]
        .map(|i| {
            let number = m.add(Op::Number(values[i]));
            (nodes[i], m.0.add(nodes[i], WORD, Op::Binary(Binary::Add, tid, number, Promise::default()), ""))
        })
        .to_vec();
    let x = m.0.add(nodes[2], WORD, Op::Phi(arms), "x");
    m.told(x)
}

#[test]
fn gama_a_join_under_a_uniform_predicate_is_the_meet() {
    assert_eq!(join(true, [3, 3]), (Rule::Gama, "tid + 3".to_owned()));
    assert_eq!(join(true, [3, 5]), (Rule::Gama, "tid + base(x)".to_owned()));
}

#[test]
fn pdva_a_join_under_another_predicate_is_divergent() {
    assert_eq!(join(false, [3, 5]), (Rule::Pdva, "⊥".to_owned()));
}

#[test]
fn idna_equal_arms_are_one_value_whatever_decides() {
    assert_eq!(join(false, [3, 3]), (Rule::Idna, "tid + 3".to_owned()));
}

/// `do { i = μ(tid, i + 2); } while (p); i'`: rule and fact of i, and of its η.
fn turns(uniform: bool) -> [(Rule, String); 2] {
    let mut m = Maker::new(3);
    let (head, out) = (NodeId(1), NodeId(2));
    m.0.edge(ENTRY, head).edge(head, head).edge(head, out);
    let (tid, two, bound) = (m.tid(), m.add(Op::Number(2)), m.add(Op::Uniform));
    let i = m.0.add(head, WORD, Op::Undefined, "i");
    let next = m.0.add(head, WORD, Op::Binary(Binary::Add, i, two, Promise::default()), "next");
    m.0.set(i, Op::Phi(vec![(ENTRY, tid), (head, next)]));
    let equal = Predicate::Equality { equal: true };
    let by = if uniform { Op::Compare(equal, two, bound) } else { Op::Compare(equal, i, bound) };
    let p = m.0.add(head, Kind::Bits(1), by, "p");
    m.0.decide(head, Decision::By(p));
    let used = m.0.add(out, WORD, Op::Copy(i), "used");
    let function = m.0.build();
    let analysis = Analysis::of(&function, &Options::default());
    let eta = analysis.operands(used)[0].0;
    [i, eta].map(|node| (analysis.rule(node), analysis.text_of(&analysis.fact(node))))
}

#[test]
fn rmua_the_head_of_a_loop_is_the_meet() {
    assert_eq!(turns(true)[0], (Rule::Rmua, "tid + base(i)".to_owned()));
}

#[test]
fn etaa_a_value_that_leaves_a_loop_with_all_threads_is_what_it_was() {
    assert_eq!(turns(true)[1], (Rule::Etaa, "tid + base(i)".to_owned()));
}

#[test]
fn pdva_a_value_that_leaves_a_loop_in_different_turns_is_divergent() {
    assert_eq!(turns(false)[1], (Rule::Pdva, "⊥".to_owned()));
}

#[test]
fn cmpa_values_of_one_stride_compare_alike_in_all_threads() {
    let compared = |a: i64, b: i64, predicate: Predicate| {
        let mut m = Maker::new(1);
        let (t, n) = (m.tid(), [a, b].map(|n| m.0.free(WORD, Op::Number(n), "")));
        let (x, y) = (m.binary(Binary::Add, t, n[0]), m.binary(Binary::Add, t, n[1]));
        let c = m.0.add(ENTRY, Kind::Bits(1), Op::Compare(predicate, x, y), "c");
        m.told(c)
    };
    let less = Predicate::Order { signed: true, less: true, or_equal: false };
    assert_eq!(compared(1, 5, Predicate::Equality { equal: true }), (Rule::Cmpa, "c".to_owned()));
    assert_eq!(compared(1, 5, less), (Rule::Cmpa, "c".to_owned()));
    // Where one may wrap, an order of the sums is none of the numbers.
    assert_eq!(compared(1, i64::from(i32::MAX), less), (Rule::Gbna, "⊥".to_owned()));
}

#[test]
fn cala_a_summary_is_applied_to_arguments() {
    says(
        |m| {
            let t = m.tid();
            m.add(Op::Call(Return::Fact(divergence::Fact::of_argument(0)), vec![t]))
        },
        Rule::Cala,
        "tid",
    );
    says(
        |m| {
            let t = m.tid();
            m.add(Op::Call(Return::Function, vec![t]))
        },
        Rule::Cala,
        "⊥",
    );
    says(
        |m| {
            let t = m.tid();
            m.add(Op::Call(Return::Uniform, vec![t]))
        },
        Rule::Cala,
        "v1",
    );
}
