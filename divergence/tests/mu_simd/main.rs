//! The paper's own language: its programs run by its semantics, its figure 2 as text, and its theorem 3.1 on programs
//! drawn by chance, whose control flow need not be structured. No compiler has a part in it.

mod generate;
mod language;
mod machine;
mod ssa;

use divergence::{Analysis, Class, Fact, Options, Rule, ValueId};
use language::Program;
use machine::Machine;
use ssa::Ssa;

/// Figure 2: each thread sums the cells of its column of a triangular matrix with odd numbers; thread n visits n + 1.
const FIGURE_2: &str = "
    l0:  i = tid × 1
         t = tid + 1
         t = t × c
         limit = t + tid
         sum = 0
         d = 0
    l5:  p = i < limit
    l6:  bz p, l15
    l7:  p1 = d % 2
    l8:  bz p1, l12
    l9:  x = ↓i
         sum = sum + x
    l12: d = d + 1
         i = i + c
         jump l5
    l15: sync
         x = d
         s = sum + x
         ↑tid = s
         stop";

#[test]
fn in_figure_2_thread_n_visits_n_plus_1_cells_and_all_meet_behind_the_loop() {
    let program = Program::read(FIGURE_2);
    let mut machine = Machine::new(&program, &[0, 1, 2, 3], |_| 4);
    let place = |label: &str| program.labels[label];
    let (mut visits, mut loads, mut behind) = ([0; 4], [0; 4], Vec::new());
    while let Some((at, active)) = machine.step() {
        if at == place("l7") {
            active.iter().for_each(|&thread| visits[thread] += 1);
        }
        if at == place("l9") {
            active.iter().for_each(|&thread| loads[thread] += 1);
        }
        if at == place("l15") {
            behind.push(active);
        }
    }
    assert_eq!(visits, [1, 2, 3, 4]);
    assert_eq!(loads, [0, 1, 1, 2], "the second and fourth cells");
    assert_eq!(behind, [vec![0, 1, 2, 3]], "all together, once");
    for tid in 0..4 {
        let cells = (0..=tid).filter(|d| d % 2 == 1).map(|d| machine::cell(tid + 4 * d));
        assert_eq!(machine.sigma[&tid], cells.sum::<i64>() + tid + 1);
    }
}

#[test]
fn in_figure_2_thread_0_waits_when_the_branch_is_reached_for_the_second_time() {
    let program = Program::read(FIGURE_2);
    let mut machine = Machine::new(&program, &[0, 1, 2, 3], |_| 4);
    let mut at_l7 = Vec::new();
    while let Some((at, active)) = machine.step() {
        if at == program.labels["l7"] {
            at_l7.push(active);
        }
    }
    assert_eq!(at_l7, [vec![0, 1, 2, 3], vec![1, 2, 3], vec![2, 3], vec![3]]);
}

#[test]
fn in_figure_2_d_is_uniform_inside_of_the_loop_and_divergent_behind_it() {
    let program = Program::read(FIGURE_2);
    let ssa = Ssa::of(&program);
    let analysis = Analysis::of(&ssa.function, &Options::default());
    let class = |label: &str, further: usize| analysis.class(ssa.assigned[&(program.labels[label] + further)]);
    assert_eq!(class("l12", 0), Class::Uniform, "d inside");
    assert_eq!(class("l7", 0), Class::Uniform, "p1");
    assert_eq!(class("l12", 1), Class::Affine, "i");
    assert_eq!(class("l5", 0), Class::Divergent, "p");
    assert_eq!(class("l15", 1), Class::Divergent, "d behind");
    assert_eq!(analysis.text_of(&analysis.fact(ssa.assigned[&3])), "(c+1)·tid + c", "limit");
}

/// What lanes with these identifiers and values show to be wrong of a fact.
fn fault(fact: &Fact, lanes: &[(i64, i64)]) -> Option<String> {
    let affine = fact.affine()?;
    let stride = affine.strides[0].as_number();
    for pair in lanes.windows(2) {
        let [(t, v), (u, w)] = [pair[0], pair[1]];
        if let Some(stride) = stride
            && w.wrapping_sub(v) != stride.wrapping_mul(u - t)
        {
            return Some(format!("{t} and {u} have {v} and {w}: no stride {stride}"));
        }
    }
    for three in lanes.windows(3) {
        let [(t, v), (u, w), (x, y)] = [three[0], three[1], three[2]];
        if w.wrapping_sub(v).wrapping_mul(x - t) != y.wrapping_sub(v).wrapping_mul(u - t) {
            return Some(format!("{t}, {u} and {x} have {v}, {w} and {y}: not affine"));
        }
    }
    let (&(t, v), base) = (lanes.first()?, affine.base.as_number()?);
    let found = v.wrapping_sub(stride?.wrapping_mul(t));
    (found != base).then(|| format!("{t} has {v}: base {found}, not {base}"))
}

/// What came of comparing claims with a run.
#[derive(Default)]
struct Compared {
    checks: usize,
    uniform: usize,
    affine: usize,
    wrong: Vec<String>,
}

/// Runs a program, and compares each claim with what active elements have, instruction by instruction.
fn compare(text: &str, broken: Option<Rule>, all: &mut Compared) {
    const MOST_STEPS: usize = 2000;
    let program = Program::read(text);
    let ssa = Ssa::of(&program);
    let analysis = Analysis::of(&ssa.function, &Options { broken, ..Options::default() });
    let tids: Vec<i64> = (8..16).collect();
    let mut machine = Machine::new(&program, &tids, |v| 3 + v as i64);
    let mut look = |variable: usize, id: ValueId, active: &[usize], machine: &Machine| {
        let fact = analysis.fact(id);
        if active.len() < 2 || fact.class() == Class::Divergent || fact == Fact::Top {
            return;
        }
        all.checks += 1;
        all.uniform += usize::from(fact.class() == Class::Uniform);
        all.affine += usize::from(fact.class() == Class::Affine);
        let lanes: Vec<(i64, i64)> = active.iter().map(|&e| (tids[e], machine.theta[e][variable])).collect();
        if let Some(fault) = fault(&fact, &lanes) {
            let name = &program.names[variable];
            all.wrong.push(format!("{name}: {}: {fault}\n{text}", analysis.text_of(&fact)));
        }
    };
    for _ in 0..MOST_STEPS {
        let values = machine.theta.clone();
        let Some((at, active)) = machine.step() else { break };
        // What φs have joined, before the first instruction of a block runs.
        let after = std::mem::replace(&mut machine.theta, values);
        for &(variable, id) in ssa.joined.get(&at).map_or(&[][..], |all| all) {
            look(variable, id, &active, &machine);
        }
        machine.theta = after;
        if let (Some(&id), Some(variable)) = (ssa.assigned.get(&at), program.instructions[at].assigns()) {
            look(variable, id, &active, &machine);
        }
    }
}

#[test]
fn theorem_3_1_holds_on_random_programs() {
    let mut all = Compared::default();
    for seed in 0..3000 {
        compare(&generate::program(seed), None, &mut all);
    }
    assert!(all.wrong.is_empty(), "{} wrong, the first: {}", all.wrong.len(), all.wrong[0]);
    println!("{} checks, {} uniform, {} affine", all.checks, all.uniform, all.affine);
    assert!(all.checks > 50_000 && all.affine > 5_000, "{} checks, {} affine", all.checks, all.affine);
}

#[test]
fn each_rule_of_figure_4_that_is_broken_is_noticed() {
    let is_noticed = |rule: &Rule| {
        (0..1000).any(|seed| {
            let mut all = Compared::default();
            compare(&generate::program(seed), Some(*rule), &mut all);
            !all.wrong.is_empty()
        })
    };
    let unnoticed: Vec<Rule> = Rule::PAPER.into_iter().filter(|rule| !is_noticed(rule)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?}");
}
