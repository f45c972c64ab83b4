//! The surgery that merges two rows of instructions into one: what `branch-fusion` and `meld` have in common.
//!
//! ```text
//!   x = a * 3      y = b * 3            s = select c, a, b
//!   x2 = x + i                          x = s * 3
//!                                       branch c, only.then, next
//!                                     only.then: x2 = x + i
//! ```

use crate::alike;
use crate::context::Context;
use crate::llvm::{Block, Instruction, Opcode, Value};

/// Intrinsics that mark or assume something of a variable, which must then be named.
const MARKS: [&str; 4] = ["llvm.lifetime", "llvm.invariant", "llvm.assume", "llvm.experimental"];

/// Where the next instruction goes.
#[derive(Clone, Copy)]
pub(crate) struct Place<'m> {
    pub(crate) block: Block<'m>,
    /// The two blocks that lead here, by the sides of the condition, where instructions of one side came before.
    pub(crate) sides: Option<[Block<'m>; 2]>,
}

impl<'m> Place<'m> {
    /// The end of a block.
    pub(crate) fn at(block: Block<'m>) -> Place<'m> {
        Place { block, sides: None }
    }

    /// The value of one side or of the other, which differ: right behind instructions of one side by a phi, which costs
    /// nothing where each side made its value; elsewhere by a select.
    pub(crate) fn choose(self, condition: Value<'m>, [yes, no]: [Value<'m>; 2]) -> Value<'m> {
        let made_here = |v: Value<'m>| v.as_instruction().is_some_and(|made| made.block() == Some(self.block));
        let Some(sides) = self.sides.filter(|_| !made_here(yes) && !made_here(no)) else {
            return self.block.select(condition, yes, no);
        };
        let incoming = [(yes, sides[0]), (no, sides[1])];
        if self.block.is_empty() {
            return self.block.add_phi(&incoming, "").as_value();
        }
        self.block.add_phi_in_front(&incoming, "").as_value()
    }

    /// Instructions of one side each, in a block of their own under a branch on the condition; where both go on: at
    /// `next`, an empty block.
    pub(crate) fn apart(
        self,
        condition: Value<'m>,
        [one, other]: [Vec<Instruction<'m>>; 2],
        next: Block<'m>,
        context: &mut Context<'m>,
    ) -> Place<'m> {
        let at = self.block;
        let side = |instructions: Vec<Instruction<'m>>, name: &str| {
            if instructions.is_empty() {
                return next;
            }
            let block = next.insert_before(name);
            instructions.into_iter().for_each(|i| i.move_to_end_of(block));
            block.branch_to(next);
            block
        };
        let sides = [side(one, "only.then"), side(other, "only.else")];
        at.branch_on(condition, sides[0], sides[1]);
        context.joined(at, next);
        Place { block: next, sides: Some(sides.map(|side| if side == next { at } else { side })) }
    }
}

/// Makes one instruction of two, at the end of `at`: the first, with what `choose` makes of their operands, as
/// `operands` puts them beside each other.
pub(crate) fn pair<'m>(
    [a, b]: [Instruction<'m>; 2],
    at: Block<'m>,
    operands: Vec<(Value<'m>, Value<'m>)>,
    mut choose: impl FnMut([Value<'m>; 2]) -> Value<'m>,
) {
    for (i, (x, y)) in operands.into_iter().enumerate() {
        let operand = choose([x, y]);
        if operand != a.operands()[i] {
            a.set_operand(i as u32, operand);
        }
    }
    a.move_to_end_of(at);
    alike::keep_what_both_promise(a, b);
    a.join_locations(a, b);
    if !b.type_of().is_void() {
        b.as_value().replace_all_uses_with(a.as_value());
    }
    b.erase();
}

/// Whether operands in which two instructions that are alike differ can be chosen; `index` says about which operands of
/// an address computation that may be.
pub(crate) fn can_be_chosen<'m>(
    a: Instruction<'m>,
    b: Instruction<'m>,
    index: impl Fn(usize, Value<'m>, Value<'m>) -> bool,
) -> bool {
    let (mine, others) = (a.operands(), b.operands());
    let mut differing = mine.into_iter().zip(others).enumerate().filter(|(_, (x, y))| x != y);
    if differing.clone().any(|(_, (x, y))| x.is_swift_error() || y.is_swift_error()) {
        return false;
    }
    match a.opcode() {
        Opcode::LLVMCall => {
            let callee = a.callee().filter(|callee| callee.is_intrinsic());
            let marks = callee.is_some_and(|callee| MARKS.iter().any(|name| callee.name().starts_with(name)));
            differing.all(|(i, (x, _))| !marks && x.type_of().is_first_class() && !a.must_stay_constant(i))
        }
        Opcode::LLVMGetElementPtr => differing.all(|(i, (x, y))| x.type_of().is_first_class() && index(i, x, y)),
        _ => differing.all(|(_, (x, _))| x.type_of().is_first_class()),
    }
}

/// Whether the operands of a pair may be exchanged, those of sums and their like aside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    No,
    May,
    Must,
}

/// The operands of a pair beside each other, in the order of the first: those of the second are exchanged where they
/// must be, and where more of them are the same then and they may be: in a sum and its like.
pub(crate) fn beside_each_other<'m>(
    a: Instruction<'m>,
    b: Instruction<'m>,
    exchange: Exchange,
    same: &dyn Fn(Value<'m>, Value<'m>) -> bool,
) -> Vec<(Value<'m>, Value<'m>)> {
    use Opcode::*;
    let (mine, mut others) = (a.operands(), b.operands());
    let commutes = matches!(a.opcode(), LLVMAdd | LLVMFAdd | LLVMMul | LLVMFMul | LLVMAnd | LLVMOr | LLVMXor);
    if commutes || exchange != Exchange::No {
        let alike = |i: usize, j: usize| usize::from(same(mine[i], others[j]));
        if exchange == Exchange::Must || alike(0, 1) + alike(1, 0) > alike(0, 0) + alike(1, 1) {
            others.swap(0, 1);
        }
    }
    mine.into_iter().zip(others).collect()
}
