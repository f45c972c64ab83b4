//! Programs built here are run by LLVM's own `lli`, whose exit status is compared with what Rust works out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use super::*;

/// A program whose `main` has one block, which returns `%a`, 7, and is given `%b`, 3.
const MAIN: &str = "define i32 @twice(i32 %x) {
  %r = mul i32 %x, 2
  ret i32 %r
}
define i32 @work(i32 %a, i32 %b, ptr %p) {
entry:
  ret i32 %a
}
define i32 @main() {
  %p = alloca i32
  store i32 40, ptr %p
  %r = call i32 @work(i32 7, i32 3, ptr %p)
  ret i32 %r
}
";

fn module() -> Module {
    Module::parse(MAIN.as_bytes(), "main.ll").unwrap()
}

/// The exit status of the module as a program.
fn status(module: &Module) -> i32 {
    module.verify().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bc");
    std::fs::write(&path, module.to_bitcode()).unwrap();
    Command::new("lli-19").arg(&path).status().expect("lli-19").code().expect("an exit status")
}

/// `work`, its parameters, and its only instruction.
fn work(module: &Module) -> (Function<'_>, [Value<'_>; 3], Instruction<'_>) {
    let function = module.functions()[1];
    let call = module.functions()[2].blocks()[0].instructions()[2];
    assert_eq!(call.callee().map(|callee| callee.name()).as_deref(), Some("work"));
    let end = function.blocks()[0].terminator();
    (function, function.parameters().try_into().ok().expect("three parameters"), end)
}

/// What `work` returns once it returns what this makes of its parameters.
fn returned(make: impl for<'m> FnOnce(Builder<'m>, Function<'m>, [Value<'m>; 3]) -> Value<'m>) -> i32 {
    let module = module();
    let (function, parameters, end) = work(&module);
    end.set_operand(0, make(Builder::before(end), function, parameters));
    status(&module)
}

#[track_caller]
fn refused(says: &str, act: impl FnOnce()) {
    let payload = catch_unwind(AssertUnwindSafe(act)).expect_err("it was allowed");
    let said = payload.downcast_ref::<String>().cloned();
    let said = said.or_else(|| payload.downcast_ref().map(|s: &&str| (*s).to_owned())).unwrap();
    assert!(said.contains(says), "{said:?} does not say {says:?}");
}

#[test]
fn arithmetic_is_what_rust_says() {
    let expected = [
        (Binary::Add, 10),
        (Binary::Sub, 4),
        (Binary::Mul, 21),
        (Binary::UDiv, 2),
        (Binary::SDiv, 2),
        (Binary::URem, 1),
        (Binary::SRem, 1),
        (Binary::Shl, 7 << 3),
        (Binary::LShr, 0),
        (Binary::AShr, 0),
        (Binary::And, 7 & 3),
        (Binary::Or, 7 | 3),
        (Binary::Xor, 7 ^ 3),
    ];
    for (operation, result) in expected {
        assert_eq!(returned(|builder, _, [a, b, _]| builder.binary(operation, a, b)), result, "{operation:?}");
    }
    let bits = returned(|builder, _, [a, b, _]| builder.and(builder.not(a), builder.or(b, a.type_of().number(24))));
    assert_eq!(bits, !7 & (3 | 24));
}

#[test]
fn comparisons_are_what_rust_says() {
    use Comparison::*;
    // 7 and 3, and -7 and 3, with and without a sign.
    let all = [
        (Equal, [false, false]),
        (NotEqual, [true, true]),
        (ULess, [false, false]),
        (ULessEqual, [false, false]),
        (UGreater, [true, true]),
        (UGreaterEqual, [true, true]),
        (SLess, [false, true]),
        (SLessEqual, [false, true]),
        (SGreater, [true, false]),
        (SGreaterEqual, [true, false]),
    ];
    for (comparison, expected) in all {
        let got = [false, true].map(|negative| {
            let chosen = returned(|builder, function, [a, b, _]| {
                let zero = function.integer_type(32).number(0);
                let a = if negative { builder.binary(Binary::Sub, zero, a) } else { a };
                let holds = builder.compare(comparison, a, b);
                builder.select(holds, function.integer_type(32).number(1), zero)
            });
            chosen == 1
        });
        assert_eq!(got, expected, "{comparison:?}");
    }
}

#[test]
fn memory_calls_and_assembly_work() {
    let sum = returned(|builder, function, [a, b, p]| {
        let of_type = a.type_of();
        let own = builder.alloca(of_type);
        builder.store(a, own);
        builder.store(builder.binary(Binary::Add, builder.load(of_type, p), b), p);
        let twice = function.module().functions()[0];
        let call = builder.call(twice.type_of_calls(), twice.as_value(), &[builder.load(of_type, own)]);
        builder.binary(Binary::Add, call.as_value(), builder.load(of_type, p))
    });
    assert_eq!(sum, 2 * 7 + 40 + 3);
    let assembled = returned(|builder, function, [a, b, _]| {
        let of_type = function.function_type(Some(a.type_of()), &[a.type_of(), b.type_of()]);
        let text = builder.inline_assembly(of_type, "leal 1($1,$2), $0", "=r,r,r");
        builder.call(of_type, text, &[a, b]).as_value()
    });
    assert_eq!(assembled, 7 + 3 + 1);
}

#[test]
fn a_switch_leads_to_its_cases() {
    let module = module();
    let (function, [a, ..], end) = work(&module);
    let blocks = [11, 22, 33].map(|result| {
        let block = function.add_block("case");
        end.copy_to_end_of(block).set_operand(0, a.type_of().number(result));
        block
    });
    end.erase();
    Builder::at_end_of(function.entry()).switch(a, blocks[0], &[(7, blocks[1]), (8, blocks[2])]);
    assert_eq!(status(&module), 22);
}

#[test]
fn blocks_are_copied_with_all_that_they_use_of_each_other() {
    let text = "define i32 @main() {
entry:
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %next, %body ]
  %sum = phi i32 [ 5, %entry ], [ %more, %body ]
  %go = icmp slt i32 %i, 4
  br i1 %go, label %body, label %end
body:
  %more = add i32 %sum, %i
  %next = add i32 %i, 1
  br label %head
end:
  %result = phi i32 [ %sum, %head ]
  ret i32 %result
}
";
    let module = Module::parse(text.as_bytes(), "loop.ll").unwrap();
    let function = module.functions()[0];
    let [entry, head, body, end] = function.blocks()[..] else { panic!("four blocks") };
    let copies = function.copy_blocks(&[head, body], &[(entry, entry)]);
    // The copy of the loop runs instead: control could reach either.
    entry.terminator().erase();
    entry.branch_on(function.truth(false), head, copies.of_block(head));
    let sum = head.phis()[1].as_value();
    assert!(copies.of(sum) != sum && copies.of_block(end) == end && copies.of_block(body) != body);
    assert!(end.phis()[0].incoming_from(copies.of_block(head)) == Some(copies.of(sum)));
    assert!(module.to_text().contains("head.copy:"));
    assert_eq!(status(&module), 5 + 1 + 2 + 3);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (module, other) = (self::module(), self::module());
    let (function, [a, _, p], end) = work(&module);
    let builder = Builder::before(end);
    let long = function.integer_type(64).number(1);
    let theirs = other.functions()[0].parameters()[0];
    refused("no integers of one type", || _ = builder.binary(Binary::Add, a, long));
    refused("no integers of one type", || _ = builder.binary(Binary::Add, p, p));
    refused("no integers or addresses", || _ = builder.compare(Comparison::Equal, a, p));
    refused("two modules", || _ = builder.not(theirs));
    refused("two modules", || _ = builder.load(theirs.type_of(), p));
    refused("no address", || _ = builder.load(a.type_of(), a));
    refused("no address", || _ = builder.store(a, a));
    refused("another number of arguments", || _ = builder.call(function.type_of_calls(), function.as_value(), &[a]));
    refused("of another type", || _ = builder.call(function.type_of_calls(), function.as_value(), &[p, a, p]));
    refused("no type of functions", || _ = builder.call(a.type_of(), function.as_value(), &[a]));
    let of_type = function.function_type(Some(a.type_of()), &[a.type_of()]);
    refused("with the constraints", || _ = builder.inline_assembly(of_type, "nop", "=r,r,r"));
    refused("with the constraints", || _ = builder.inline_assembly(of_type, "nop", "=r,r\"()"));
    let elsewhere = module.functions()[0].entry();
    refused("another function", || _ = builder.switch(a, elsewhere, &[]));
    refused("of another function is copied", || _ = function.copy_blocks(&[elsewhere], &[]));
    let sum = builder.binary(Binary::Add, a, a).as_instruction().unwrap();
    sum.erase();
    refused("was erased", || _ = builder.not(sum.as_value()));
    refused("was erased", || _ = Builder::before(sum));
    assert_eq!(status(&module), 7);
}
