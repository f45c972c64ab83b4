//! Notes in the code how many instructions a GPU has for each of its basic blocks, for `replay` to count. It runs last,
//! over what code is generated from.
//!
//! ```text
//! before:  body:  %x = phi …; …; call @g(); …
//! after:   body:  %x = phi …; call asm sideeffect "nopl …"; …; call @g(); call asm sideeffect "nopl …"; …
//! ```
//!
//! # Steps
//! 1. Count the instructions of each block, as far as its end and each of its calls, with the copies that the phis of
//!    the blocks behind it need.
//! 2. Fold short arms into their branches, from the inside out: ptxas predicates them, so that all lanes that come to
//!    the branch are issued the arm; and where nothing else is left of the branch, it is none.
//! 3. Put a note at the start of each block and behind each call. A block that does nothing but go on has none.
//!
//! # Why the meaning is kept
//! A note is an instruction that does nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use super::gpu;
use crate::llvm::{Block, Builder, Function, Instruction, Module, Opcode, Value};

/// What one note can hold.
const MOST: u32 = 0x7fff;

/// Arms of at most so many tenths of an instruction are predicated: by ptxas's listings of 62 kernels.
const ARM: u32 = 50;

/// What a branch costs that is not made.
const BRANCH: u32 = 10;

/// A part of a block: up to its end, or the call in which other code runs.
struct Part<'m> {
    begin: Instruction<'m>,
    tenths: u32,
}

/// Blocks that run one after the other.
struct Node {
    blocks: Vec<usize>,
    successors: Vec<usize>,
    predecessors: Vec<usize>,
    /// Whether nothing stands in the way of running it predicated.
    is_plain: bool,
}

/// Notes the costs of all code, unless it is for another processor.
pub(crate) fn note(module: &Module) {
    if !module.target().starts_with("x86_64") {
        return;
    }
    // What is all assembly has none.
    module.functions().into_iter().filter(|function| !function.has_attribute("naked")).for_each(of_function);
}

fn of_function(function: Function<'_>) {
    let blocks = function.blocks();
    let mut parts: Vec<Vec<Part<'_>>> = blocks.iter().map(|block| parts_of(*block)).collect();
    fold(&blocks, &mut parts);
    for (block, parts) in blocks.iter().zip(&parts) {
        let end = block.terminator();
        let goes_on = |part: &Part<'_>| part.begin == end && part.tenths == 0 && end.successors().len() == 1;
        parts.iter().filter(|part| !goes_on(part)).for_each(put);
    }
}

fn parts_of(block: Block<'_>) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut part = Part { begin: block.first_insertion_point(), tenths: 0 };
    let mut each = Some(part.begin);
    while let Some(instruction) = each {
        each = instruction.next();
        part.tenths += gpu::tenths(instruction);
        if let Some(begin) = each.filter(|next| comes_back(instruction) && next.opcode() != Opcode::LLVMRet) {
            parts.push(std::mem::replace(&mut part, Part { begin, tenths: 0 }));
        }
    }
    part.tenths += gpu::copies(block);
    parts.push(part);
    parts
}

/// Whether it is a call of a function that runs code of its own.
fn comes_back(instruction: Instruction<'_>) -> bool {
    let is_function = |callee: Value<'_>| !callee.is_intrinsic() && !callee.is_inline_assembly();
    instruction.opcode() == Opcode::LLVMCall && instruction.callee().is_none_or(is_function)
}

/// Has branches issue their short arms, which cost nothing then.
fn fold(blocks: &[Block<'_>], parts: &mut [Vec<Part<'_>>]) {
    let numbers: FxHashMap<Block<'_>, usize> = blocks.iter().enumerate().map(|(at, block)| (*block, at)).collect();
    let mut nodes: Vec<Node> = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let mut successors: Vec<usize> = block.terminator().successors().iter().map(|to| numbers[to]).collect();
        successors.dedup();
        let is_plain = parts[at].len() == 1 && matches!(block.terminator().opcode(), Opcode::LLVMBr);
        nodes.push(Node { blocks: vec![at], successors, predecessors: Vec::new(), is_plain });
    }
    for from in 0..nodes.len() {
        for to in nodes[from].successors.clone() {
            nodes[to].predecessors.push(from);
        }
    }
    let mut left: Vec<usize> = (0..nodes.len()).collect();
    while let Some(at) = left.pop() {
        if join(&mut nodes, at) || predicate(&mut nodes, at, parts) {
            left.push(at);
            left.extend(nodes[at].predecessors.iter().copied());
        }
    }
}

/// Joins a node with the only one behind it, if nobody else comes there.
fn join(nodes: &mut [Node], at: usize) -> bool {
    let [next] = nodes[at].successors[..] else { return false };
    if next == at || nodes[next].predecessors != [at] {
        return false;
    }
    let successors = std::mem::take(&mut nodes[next].successors);
    for to in &successors {
        let before = nodes[*to].predecessors.iter_mut().filter(|from| **from == next);
        before.for_each(|from| *from = at);
    }
    let blocks = std::mem::take(&mut nodes[next].blocks);
    nodes[next].predecessors.clear();
    nodes[at].is_plain &= nodes[next].is_plain;
    nodes[at].blocks.extend(blocks);
    nodes[at].successors = successors;
    true
}

/// Predicates the arms of a node's branch that are short.
fn predicate(nodes: &mut [Node], at: usize, parts: &mut [Vec<Part<'_>>]) -> bool {
    let [one, other] = nodes[at].successors[..] else { return false };
    let is_arm = |arm: usize, to: usize| {
        let node = &nodes[arm];
        let tenths: u32 = node.blocks.iter().flat_map(|block| &parts[*block]).map(|part| part.tenths).sum();
        arm != at && node.is_plain && node.predecessors == [at] && node.successors == [to] && tenths <= ARM
    };
    let only = |node: usize| if let [to] = nodes[node].successors[..] { Some(to) } else { None };
    let is_block = |node: usize| nodes[node].blocks.len() == 1;
    let (arms, to) = match (only(one), only(other)) {
        _ if is_arm(one, other) => (vec![one], other),
        _ if is_arm(other, one) => (vec![other], one),
        (Some(to), _) if is_arm(one, to) && is_arm(other, to) => (vec![one, other], to),
        // Behind the end of a block those that ran it jump over the other side.
        (Some(to), _) if is_arm(one, to) && is_block(one) && comes_to(nodes, other, to, at) => (vec![one], to),
        (_, Some(to)) if is_arm(other, to) && is_block(other) && comes_to(nodes, one, to, at) => (vec![other], to),
        _ => return false,
    };
    let mut tenths = 0;
    for arm in &arms {
        for block in std::mem::take(&mut nodes[*arm].blocks) {
            tenths += parts[block].iter_mut().map(|part| std::mem::take(&mut part.tenths)).sum::<u32>();
        }
        nodes[*arm].successors.clear();
        nodes[*arm].predecessors.clear();
    }
    let left: Vec<usize> =
        nodes[at].successors.iter().copied().filter(|next| *next != to && !arms.contains(next)).collect();
    if let Some(part) = nodes[at].blocks.last().and_then(|block| parts[*block].last_mut()) {
        let saved = if left.is_empty() { BRANCH } else { 0 };
        part.tenths = (part.tenths + tenths).saturating_sub(saved);
    }
    nodes[to].predecessors.retain(|from| *from != at && !arms.contains(from));
    nodes[to].predecessors.push(at);
    nodes[at].successors = [to].into_iter().chain(left).collect();
    true
}

/// Whether control comes from one node to another without passing a third.
fn comes_to(nodes: &[Node], from: usize, to: usize, without: usize) -> bool {
    let (mut seen, mut left) = (FxHashSet::from_iter([from, to, without]), vec![from]);
    while let Some(node) = left.pop() {
        if nodes[node].successors.contains(&to) {
            return true;
        }
        left.extend(nodes[node].successors.iter().copied().filter(|next| seen.insert(*next)));
    }
    false
}

fn put(part: &Part<'_>) {
    let mut tenths = part.tenths;
    loop {
        let noted = tenths.min(MOST);
        // As `trace_format::BlockCost` knows it.
        let text = format!("nopl 0x{noted:04x}6b4c(%rcx,%rcx)");
        Builder::before(part.begin).marker(&text).take_location(part.begin);
        tenths -= noted;
        if tenths == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The notes of a function with this body, in tenths, in order.
    fn notes(body: &str) -> Vec<u32> {
        let text = format!(
            "target triple = \"x86_64-pc-linux-gnu\"\ndeclare void @g()\ndefine void @f(ptr %p, i32 %n) {{\n{body}\n}}\n"
        );
        let module = Module::parse(text.as_bytes(), "f.ll").unwrap();
        note(&module);
        let text = module.well_formed().unwrap().to_text();
        let noted = text.split("\"nopl 0x").skip(1).map(|rest| &rest[..4]);
        noted.map(|digits| u32::from_str_radix(digits, 16).unwrap()).collect()
    }

    /// Loads, compares, and branches to an arm or behind it: 30.
    const BRANCHES: &str = "%a = load i32, ptr %p\n%c = icmp eq i32 %a, %n\nbr i1 %c, label %arm, label ";
    const STORE: &str = "store volatile i32 7, ptr %p\n";

    #[test]
    fn a_short_arm_is_issued_with_its_branch_which_is_none_then() {
        let with = |arm: &str| notes(&format!("{BRANCHES}%end\narm:\n{arm}br label %end\nend:\nret void"));
        assert_eq!(with(STORE), [30 + 10 - BRANCH, 0, 10]);
        assert_eq!(with(&STORE.repeat(6)), [30, 60, 10]);
        // Control does not come back from a call as it went.
        assert_eq!(with("call void @g()\n"), [30, 10, 10]);
    }

    #[test]
    fn behind_a_short_arm_lanes_jump_over_a_long_one() {
        let long = STORE.repeat(6);
        let both = |one: &str, other: &str| {
            notes(&format!("{BRANCHES}%other\narm:\n{one}br label %end\nother:\n{other}br label %end\nend:\nret void"))
        };
        assert_eq!(both(STORE, STORE), [30 + 20 - BRANCH, 0, 0, 10]);
        assert_eq!(both(STORE, &long), [30 + 10, 0, 60, 10]);
        assert_eq!(both(&long, STORE), [30 + 10, 60, 0, 10]);
        assert_eq!(both(&long, &long), [30, 60, 60, 10]);
    }

    #[test]
    fn the_way_into_a_loop_is_no_arm() {
        let body = format!(
            "{BRANCHES}%end\narm:\n{STORE}br label %loop\nloop:\n{}\n%d = load i32, ptr %p\n%e = icmp eq i32 %d, %n\n\
             br i1 %e, label %loop, label %end\nend:\nret void",
            STORE.repeat(6)
        );
        assert_eq!(notes(&body), [30, 10, 90, 10]);
    }

    #[test]
    fn arms_in_arms_are_folded_from_the_inside_out() {
        let body = format!(
            "{BRANCHES}%end\narm:\n{STORE}%b = icmp eq i32 %a, 3\nbr i1 %b, label %inner, label %behind\ninner:\n{STORE}\
             br label %behind\nbehind:\nbr label %end\nend:\nret void"
        );
        // The outer arm is a store, a comparison and a store; the block behind them does nothing but go on.
        assert_eq!(notes(&body), [30 + 30 - BRANCH, 0, 0, 10]);
    }

    #[test]
    fn what_one_note_cannot_hold_is_in_two() {
        let loads = STORE.repeat(4_000);
        assert_eq!(notes(&format!("{loads}ret void")), [MOST, 40_010 - MOST]);
    }

    #[test]
    fn phis_need_copies_of_constants_and_of_what_others_use() {
        let body = "%a = load volatile i32, ptr %p\n%c = icmp eq i32 %a, %n\nbr i1 %c, label %one, label %two\n\
                    one:\ncall void @g()\nbr label %end\ntwo:\ncall void @g()\n%k = add i32 %a, 3\nbr label %end\n\
                    end:\n%x = phi i32 [ 5, %one ], [ %k, %two ]\n%y = phi i32 [ %a, %one ], [ %n, %two ]\n\
                    %z = add i32 %x, %y\n%w = add i32 %z, %a\nstore i32 %w, ptr %p\nret void";
        // A constant and a value that lives on; a sum that nobody else has, and one that others have.
        assert_eq!(notes(body), [30, 10, 10, 10, 10 + 5, 40]);
    }

    #[test]
    fn code_for_other_processors_has_no_notes() {
        let module =
            Module::parse(b"target triple = \"aarch64-linux-gnu\"\ndefine void @f() {\nret void\n}", "f.ll").unwrap();
        note(&module);
        assert!(!module.well_formed().unwrap().to_text().contains("nopl"));
    }
}
