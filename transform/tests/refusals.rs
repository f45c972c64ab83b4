//! What the layer over LLVM refuses, and what becomes of a module whose pass is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};

use transform::llvm::{Instruction, Module};
use transform::{Error, Pipeline, Reason, Result};

const SUM: &str = "source_filename = \"sum.c\"
define i32 @sum(i32 %a, i32 %b) {
  %one = add i32 %a, 1
  %sum = add i32 %one, %b
  br label %end
end:
  ret i32 %sum
}
";

fn module() -> Result<Module> {
    Module::parse(SUM.as_bytes(), "sum.ll")
}

fn instructions(module: &Module) -> Vec<Instruction<'_>> {
    module.functions()[0].blocks().into_iter().flat_map(|block| block.instructions()).collect()
}

/// The words of the panic that this must end with.
fn panic_of(act: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(act)).expect_err("it was allowed");
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref().map(|s: &&str| (*s).to_owned()))
        .unwrap()
}

#[test]
fn erasing_what_is_still_used_is_refused_and_changes_nothing() {
    let module = module().unwrap();
    let before = module.to_text();
    let said = panic_of(|| instructions(&module)[0].erase());
    assert!(said.contains("%one = add i32 %a, 1 is erased, though %sum = add i32 %one, %b uses it"), "{said}");
    assert_eq!(module.to_text(), before);
}

#[test]
fn what_was_erased_is_neither_erased_nor_moved_again() {
    let mut module = module().unwrap();
    {
        let [one, sum, jump, end] = instructions(&module)[..] else { panic!("four instructions") };
        end.set_operand(0, one.as_value());
        sum.erase();
        assert!(panic_of(|| sum.erase()).contains("erased"));
        assert!(panic_of(|| sum.move_before(jump)).contains("erased"));
        assert!(panic_of(|| sum.move_to_end_of(end.block().unwrap())).contains("erased"));
    }
    module.sweep();
    module.verify().unwrap();
}

#[test]
fn a_block_is_erased_only_when_nothing_outside_uses_what_it_makes() {
    let text = "define i32 @f() {\n  br label %b\na:\n  %x = add i32 1, 2\n  %y = add i32 %x, 2\n  br label %b\nb:\n  ret i32 0\n}\n";
    let module = Module::parse(text.as_bytes(), "f.ll").unwrap();
    let blocks = module.functions()[0].blocks();
    let (y, end) = (blocks[1].instructions()[1], blocks[2].terminator());
    let zero = end.operands()[0];
    end.set_operand(0, y.as_value());
    let said = panic_of(|| blocks[1].erase());
    assert!(said.contains("erased with its block, though ret i32 %y uses it"), "{said}");
    end.set_operand(0, zero);
    blocks[1].erase();
    module.verify().unwrap();
}

#[test]
fn a_refused_pass_is_an_error_that_names_it_and_tells_why() {
    let refused = Pipeline::parse("refused").unwrap();
    let error = refused.run(&mut module().unwrap()).unwrap_err();
    assert!(matches!(error, Error::Refused { pass: "refused", .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("%one = add i32 %a, 1 is erased, though") && said.contains("refused.rs:"), "{said}");
}

#[test]
fn the_code_of_a_module_whose_pass_is_refused_is_the_untransformed_one() {
    let passes = Pipeline::parse("layout,refused,fcs").unwrap();
    let (after, remarks) = passes.apply(module).unwrap();
    assert_eq!(after.to_text(), module().unwrap().to_text());
    let [refusal] = &remarks[..] else { panic!("{remarks:?}") };
    assert!(matches!(refusal.reason, Reason::Refused(_)), "{refusal}");
    assert!(refusal.to_string().starts_with("refused refused: sum.c: the whole file: %one = "), "{refusal}");
}

#[test]
fn passes_that_are_always_refused_are_not_listed() {
    assert!(transform::REGISTRY.iter().all(|pass| !["refused", "spoilt"].contains(&pass.name)));
}
