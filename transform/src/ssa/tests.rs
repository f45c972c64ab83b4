//! What `repair` makes, against LLVM's `mem2reg` over variables.

use std::fmt::Write;

use super::*;
use crate::llvm::{Function, Module, Slot};

/// As `repair`, with a variable for each value: stored after the definition, and as undefined where it is forgotten;
/// loaded at the uses. `mem2reg` has to follow.
fn through_variables<'m>(context: &mut Context<'m>, joined: &[Joined<'m>]) {
    let (flow, dominators) = (context.flow(), context.dominators());
    let open = OpenBranches::of(&flow, &dominators, joined);
    for value in broken_values(&flow, &dominators) {
        let (instruction, block) = (value.instruction, flow.block(value.node));
        let slot = block.function().add_slot(instruction.type_of());
        slot.store_before(instruction.as_value(), after(instruction, block));
        for branch in open.at(value.node) {
            slot.store_before(slot.holds().undef(), flow.block(branch).terminator());
        }
        let mut at_end: FxHashMap<Block<'m>, Value<'m>> = FxHashMap::default();
        for u in value.uses {
            u.user.set_operand(u.operand, load_for(u, slot, &mut at_end));
        }
    }
}

/// The value for a use. A phi may name a block twice, and then wants the same value for both.
fn load_for<'m>(u: Use<'m>, slot: Slot<'m>, at_end: &mut FxHashMap<Block<'m>, Value<'m>>) -> Value<'m> {
    match u.needed_in() {
        Some(block) if u.user.is_phi() => *at_end.entry(block).or_insert_with(|| slot.load_before(block.terminator())),
        _ => slot.load_before(u.user),
    }
}

/// The first instruction at which the value is there.
fn after<'m>(instruction: Instruction<'m>, block: Block<'m>) -> Instruction<'m> {
    if instruction.opcode() == Opcode::LLVMInvoke {
        return instruction.successors()[0].first_insertion_point();
    }
    if instruction.is_phi() { block.first_insertion_point() } else { instruction.next().expect("no terminator") }
}

/// Numbers below a bound, always the same for a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A function of so many blocks, with values that are used wherever that may be: in other blocks, by their terminators,
/// by phis; some made by invokes.
fn random_function(draws: &mut Draws, count: usize) -> String {
    let mut leads: Vec<Vec<usize>> = vec![vec![1]];
    // What an invoke makes is there in a block of its own, just behind.
    let mut invokes = vec![false];
    for i in 1..count {
        let near = |draws: &mut Draws| 1 + (i + draws.below(7) + count - 3) % (count - 1);
        leads.push(match draws.below(9) {
            0 => Vec::new(),
            1 | 2 => vec![near(draws)],
            3 => (0..3).map(|_| near(draws)).collect(),
            _ => vec![near(draws), near(draws)],
        });
        invokes.push(draws.below(8) == 0);
    }
    let mut reached = vec![false; count];
    let mut open = vec![0];
    while let Some(i) = open.pop() {
        if !std::mem::replace(&mut reached[i], true) {
            open.extend(&leads[i]);
        }
    }
    let values: Vec<usize> = (1..count).filter(|&i| reached[i]).collect();
    let any = |draws: &mut Draws, but: usize| match values[draws.below(values.len())] {
        v if v == but => "%a".to_owned(),
        v => format!("%v{v}"),
    };
    let end = |i: usize| if invokes[i] { format!("%n{i}") } else { format!("%b{i}") };
    let mut text = "declare i32 @g(i32)\ndeclare i32 @p(...)\ndefine i32 @f(i32 %a, i1 %c) personality ptr @p {\n\
         entry:\n  br label %b1\n"
        .to_owned();
    for i in 1..count {
        writeln!(text, "b{i}:").unwrap();
        let from: Vec<usize> =
            (0..count).flat_map(|p| leads[p].iter().filter(|&&to| to == i).map(move |_| p)).collect();
        if !from.is_empty() && draws.below(2) == 0 {
            let mut taken: FxHashMap<usize, String> = FxHashMap::default();
            let joins: Vec<String> = from
                .iter()
                .map(|&p| {
                    let value = taken.entry(p).or_insert_with(|| any(draws, i)).clone();
                    let from = if p == 0 { "%entry".to_owned() } else { end(p) };
                    format!("[ {value}, {from} ]")
                })
                .collect();
            writeln!(text, "  %w{i} = phi i32 {}", joins.join(", ")).unwrap();
        }
        for k in 0..draws.below(3) {
            writeln!(text, "  %u{i}.{k} = add i32 {}, {}", any(draws, i), any(draws, i)).unwrap();
        }
        if invokes[i] {
            writeln!(text, "  %v{i} = invoke i32 @g(i32 {}) to label %n{i} unwind label %l{i}", any(draws, i)).unwrap();
            writeln!(text, "l{i}:\n  %e{i} = landingpad i32 cleanup\n  ret i32 {}\nn{i}:", any(draws, i)).unwrap();
        } else {
            writeln!(text, "  %v{i} = call i32 @g(i32 {})", any(draws, i)).unwrap();
        }
        text += &match leads[i][..] {
            [] => format!("  ret i32 {}\n", any(draws, i)),
            [to] => format!("  br label %b{to}\n"),
            [to, other] => format!("  br i1 %c, label %b{to}, label %b{other}\n"),
            [to, other, third] => format!(
                "  switch i32 {}, label %b{to} [ i32 1, label %b{other} i32 2, label %b{third} ]\n",
                any(draws, i)
            ),
            _ => unreachable!(),
        };
    }
    text + "}\n"
}

/// The function after a repair, where each drawn branch is taken for one whose paths were joined in a drawn block.
fn repaired(text: &str, seed: u64, repair: impl for<'m> FnOnce(&mut Context<'m>, &[Joined<'m>])) -> Module {
    let module = Module::parse(text.as_bytes(), "random.ll").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let function: Function = module.functions()[0];
    let mut draws = Draws(seed);
    let blocks = function.blocks();
    let mut joined = Vec::new();
    for &branch in &blocks {
        if branch.terminator().successors().len() > 1 && draws.below(2) == 0 {
            joined.push(Joined { branch, meets: blocks[draws.below(blocks.len())] });
        }
    }
    let mut context = Context::new("none", &parameters::Settings::of(&[]), &crate::cost::X86_64);
    context.begin(function);
    repair(&mut context, &joined);
    drop(context);
    module
}

#[test]
fn phis_are_those_that_mem2reg_makes_of_variables() {
    let (mut phis, mut values) = (0, 0);
    for seed in 1..=1000_u64 {
        let mut draws = Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let count = 4 + draws.below(24);
        let text = random_function(&mut draws, count);
        let mut broken = 0;
        let ours = repaired(&text, draws.0, |context, joined| broken = repair(context, joined));
        let mut theirs = repaired(&text, draws.0, through_variables);
        ours.verify().unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}\n{}", ours.to_text()));
        theirs.run_passes("function(mem2reg)").unwrap();
        let (ours, theirs) = (ours.to_text(), theirs.to_text());
        assert!(ours == theirs, "seed {seed}:\n{text}\nbecomes\n{ours}\nand not\n{theirs}");
        phis += ours.matches("%.").count();
        values += broken;
    }
    assert!(phis > 5000 && values > 2500, "{phis} phis for {values} values");
}
