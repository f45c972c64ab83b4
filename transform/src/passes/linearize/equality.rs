//! Equality of floating-point numbers as a value, on x86.
//!
//! x86 tells by two flags whether two floating-point numbers are equal; one of them stands for NaN. A branch on `fcmp
//! oeq` or `fcmp une` is then two jumps to one place, which is `if (a || b)` again, and so is a choice between values
//! for which there is no conditional move. LLVM undoes whatever it can analyse: a conjunction of `fcmp ord` and `fcmp
//! ueq`, a conversion, `freeze`. So the answer passes through inline assembly without text, which takes a byte in a
//! register and returns the same one. A branch then costs five instructions (`cmpeqsd`, `movq`, `and`, `test`, `je`)
//! where it took three (`ucomisd`, `jne`, `jp`), and one jump less.

use crate::llvm::{Block, Builder, Comparison, Function, Instruction, Opcode, Shape, Value};

/// Makes values of the equalities that would become two jumps; how many. Branches that `agree` holds of are left.
pub(super) fn make_values<'m>(function: Function<'m>, agree: impl Fn(Block<'m>) -> bool) -> usize {
    if !["x86_64", "i386", "i486", "i586", "i686"].iter().any(|name| function.module().target().starts_with(name)) {
        return 0;
    }
    let mut made = 0;
    for block in function.blocks() {
        let end = block.terminator();
        let choices = block.instructions().into_iter().filter(|i| i.opcode() == Opcode::LLVMSelect && jumps(*i));
        let branch = (!agree(block) && end.opcode() == Opcode::LLVMBr && end.condition().is_some()).then_some(end);
        for user in choices.chain(branch) {
            // A branch's condition is its operand 0, too.
            let condition = user.operand(0);
            if is_equality(condition) {
                user.set_operand(0, opaque(condition, user));
                made += 1;
            }
        }
    }
    made
}

/// Whether a value says that floating-point numbers are equal, or that they are not.
fn is_equality(value: Value<'_>) -> bool {
    value.as_instruction().is_some_and(|i| match i.opcode() {
        Opcode::LLVMFCmp => i.compares_floats_for_equality(),
        Opcode::LLVMFreeze | Opcode::LLVMXor => is_equality(i.operand(0)),
        _ => false,
    })
}

/// Whether a choice becomes jumps: integers and addresses have conditional moves, and masks choose between numbers of
/// the same type as those that are compared.
fn jumps(choice: Instruction<'_>) -> bool {
    let (condition, of_type) = (choice.operand(0), choice.type_of());
    let compared = condition.as_instruction().filter(|i| i.opcode() == Opcode::LLVMFCmp);
    let by_mask = compared.is_some_and(|i| i.operand(0).type_of() == of_type);
    match of_type.shape() {
        Shape::Integer(_) | Shape::Pointer => false,
        Shape::Float(32 | 64) if by_mask => false,
        _ => matches!(condition.type_of().shape(), Shape::Integer(1)),
    }
}

/// The same truth value, in a form that LLVM cannot trace back.
fn opaque<'m>(condition: Value<'m>, user: Instruction<'m>) -> Value<'m> {
    let function = user.block().expect("an instruction that was not erased").function();
    let byte = function.integer_type(8);
    let builder = Builder::before(user);
    let as_byte = builder.select(condition, byte.number(1), byte.number(0));
    let of_call = function.function_type(Some(byte), &[byte]);
    let assembly = builder.inline_assembly(of_call, "", "=r,0");
    let same = builder.call(of_call, assembly, &[as_byte]).as_value();
    builder.compare(Comparison::NotEqual, same, byte.number(0))
}
