//! The program of the paper's figures 2 and 3, rebuilt from its sections 2 and 3: each thread sums the odd cells of its
//! column of a triangular matrix, thread n visits n + 1 cells.

use std::sync::Arc;

use divergence::{
    Analysis, Binary, Boolean, Builder, Class, Decision, Function, Gated, Kind, Memory, Mode, Op, Options, Predicate,
    Promise, Rule, ValueId,
};
use flowgraph::NodeId;

/// ```text
/// entry: i0 = tid × 1; limit = (tid + 1) × c + tid; sum0 = 0; d0 = 0
/// l5:    [i1, sum1, d1] = μ[(i0, sum0, d0), (i2, sum3, d2)]
///        p = i1 < limit
/// l6:    bz p, l15
/// l7:    p1 = d1 % 2
/// l8:    bz p1, l12
/// l9:    x = ↓i1; sum2 = sum1 + x
/// l12:   sum3 = γ(p1, sum2, sum1); d2 = d1 + 1; i2 = i1 + c; jump l5
/// l15:   sum4 = η(p, sum1); d3 = η(p, d1); ↑tid = sum4 + d3
/// ```
struct Figure {
    function: Arc<Function>,
    named: Vec<(&'static str, ValueId)>,
}

impl Figure {
    fn new() -> Figure {
        let word = Kind::Bits(32);
        let [entry, l5, l7, l9, l12, l15] = [0, 1, 2, 3, 4, 5].map(NodeId);
        let mut b = Builder::new(6);
        for (from, to) in [(entry, l5), (l5, l7), (l5, l15), (l7, l9), (l7, l12), (l9, l12), (l12, l5)] {
            b.edge(from, to);
        }
        let plain = Promise::default();
        let number = |b: &mut Builder, n: i64| b.free(word, Op::Number(n), "");
        let (zero, one, two) = (number(&mut b, 0), number(&mut b, 1), number(&mut b, 2));
        let c = b.free(word, Op::Uniform, "c");
        let tid = b.add(entry, word, Op::Thread { dimension: 0, scale: 1 }, "tid");
        let i0 = b.add(entry, word, Op::Binary(Binary::Mul, tid, one, plain), "i0");
        let next = b.add(entry, word, Op::Binary(Binary::Add, tid, one, plain), "next");
        let cells = b.add(entry, word, Op::Binary(Binary::Mul, next, c, plain), "cells");
        let limit = b.add(entry, word, Op::Binary(Binary::Add, cells, tid, plain), "limit");
        let i1 = b.add(l5, word, Op::Undefined, "i1");
        let sum1 = b.add(l5, word, Op::Undefined, "sum1");
        let d1 = b.add(l5, word, Op::Undefined, "d1");
        let less = Predicate::Order { signed: true, less: true, or_equal: false };
        let p = b.add(l5, Kind::Bits(1), Op::Compare(less, i1, limit), "p");
        b.decide(l5, Decision::By(p));
        let p1 = b.add(l7, word, Op::Binary(Binary::Srem, d1, two, plain), "p1");
        b.decide(l7, Decision::By(p1));
        let x = b.add(l9, word, Op::Load(i1, Memory::Shared), "x");
        let sum2 = b.add(l9, word, Op::Binary(Binary::Add, sum1, x, plain), "sum2");
        let sum3 = b.add(l12, word, Op::Phi(vec![(l9, sum2), (l7, sum1)]), "sum3");
        let d2 = b.add(l12, word, Op::Binary(Binary::Add, d1, one, plain), "d2");
        let i2 = b.add(l12, word, Op::Binary(Binary::Add, i1, c, plain), "i2");
        b.set(i1, Op::Phi(vec![(entry, i0), (l12, i2)]));
        b.set(sum1, Op::Phi(vec![(entry, zero), (l12, sum3)]));
        b.set(d1, Op::Phi(vec![(entry, zero), (l12, d2)]));
        let out = b.add(l15, word, Op::Binary(Binary::Add, sum1, d1, plain), "out");
        b.add(l15, Kind::Opaque, Op::Store(tid, out), "store");
        let named = vec![
            ("tid", tid),
            ("i0", i0),
            ("limit", limit),
            ("i1", i1),
            ("sum1", sum1),
            ("d1", d1),
            ("p", p),
            ("p1", p1),
            ("x", x),
            ("sum2", sum2),
            ("sum3", sum3),
            ("d2", d2),
            ("i2", i2),
            ("out", out),
        ];
        Figure { function: b.build(), named }
    }

    fn id(&self, name: &str) -> ValueId {
        self.named.iter().find(|(n, _)| *n == name).unwrap().1
    }
}

#[test]
fn d_is_uniform_inside_of_the_loop_and_divergent_after_it() {
    let figure = Figure::new();
    let analysis = Analysis::of(&figure.function, &Options::default());
    let facts = |name: &str| analysis.text_of(&analysis.fact(figure.id(name)));
    assert_eq!(facts("tid"), "tid");
    assert_eq!(facts("i0"), "tid");
    assert_eq!(facts("limit"), "(c+1)·tid + c");
    assert_eq!(facts("i1"), "tid + base(i1)");
    assert_eq!(facts("i2"), "tid + base(i2)");
    let class = |name: &str| analysis.class(figure.id(name));
    for name in ["d1", "d2", "p1"] {
        assert_eq!(class(name), Class::Uniform, "{name}");
    }
    for name in ["p", "x", "sum1", "sum2", "sum3", "out"] {
        assert_eq!(class(name), Class::Divergent, "{name}");
    }
    // Behind the loop: η(p, sum1) and η(p, d1).
    let operands = analysis.operands(figure.id("out"));
    let names: Vec<String> = operands.iter().map(|(node, _)| analysis.gated().name(*node)).collect();
    assert_eq!(names, ["sum1'", "d1'"]);
    assert!(operands.iter().all(|(_, fact)| fact.class() == Class::Divergent));
    assert_eq!(analysis.rule(operands[1].0), Rule::Pdva);
}

#[test]
fn the_branch_in_l8_is_uniform_and_the_one_in_l6_divergent() {
    let figure = Figure::new();
    let analysis = Analysis::of(&figure.function, &Options::default());
    assert_eq!(analysis.branch(NodeId(2)), Some(Class::Uniform), "l8");
    assert_eq!(analysis.branch(NodeId(1)), Some(Class::Divergent), "l6");
    assert_eq!(analysis.branch(NodeId(0)), None);
}

#[test]
fn the_gated_form_has_the_functions_of_figure_3() {
    let figure = Figure::new();
    let text = Gated::of(&figure.function).text();
    for line in [
        "i1 = μ(i0, i2)",
        "sum1 = μ(0, sum3)",
        "d1 = μ(0, d2)",
        "sum3 = γ(p1; sum2, sum1)",
        "sum1' = η(p; sum1)",
        "d1' = η(p; d1)",
    ] {
        assert!(text.lines().any(|l| l.trim() == line), "{line} is not in\n{text}");
    }
}

#[test]
fn the_boolean_analysis_agrees_about_what_is_uniform_and_calls_the_rest_divergent() {
    let figure = Figure::new();
    let gated = Gated::of(&figure.function);
    let boolean = Boolean::of(&gated, Mode::Simt);
    for (name, id) in &figure.named {
        let uniform = ["d1", "d2", "p1"].contains(name);
        let class = if uniform { Class::Uniform } else { Class::Divergent };
        assert_eq!(boolean.class(*id), class, "{name}");
    }
}

#[test]
fn an_explanation_names_the_rules_from_the_value_to_the_thread_number() {
    let figure = Figure::new();
    let analysis = Analysis::of(&figure.function, &Options::default());
    let text = analysis.explain(figure.id("limit"), 10);
    assert!(text.starts_with("limit = cells + tid: (c+1)·tid + c (affine by SUMA)\n"), "{text}");
    assert!(text.contains("(affine by TIDA)") && text.contains("(affine by MLCA)"), "{text}");
}
