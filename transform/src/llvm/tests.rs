//! The layer's rules: what it refuses, and that what was refused did no harm. `scripts/check-memory` runs these under
//! valgrind, which sees each access to what LLVM deleted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Block, Instruction, Lent, Module};

/// `one` and `sum` in the entry, a choice by `c`, a join with a phi of both.
const DIAMOND: &str = "define i32 @f(i1 %c, i32 %a) {
entry:
  %one = add i32 %a, 1
  %spare = mul i32 %a, 5
  br i1 %c, label %then, label %else
then:
  %x = add i32 %one, 2
  br label %join
else:
  %y = add i32 %one, 3
  br label %join
join:
  %p = phi i32 [ %x, %then ], [ %y, %else ]
  ret i32 %p
}
define i32 @g(i32 %b) {
  %q = call i32 @f(i1 true, i32 %b)
  ret i32 %q
}
";

fn diamond() -> Module {
    Module::parse(DIAMOND.as_bytes(), "diamond.ll").unwrap()
}

fn blocks<'m>(module: &'m Module, function: &str) -> Vec<Block<'m>> {
    module.functions().into_iter().find(|f| f.name() == function).unwrap().blocks()
}

/// The instruction of this name in `f`.
fn named<'m>(module: &'m Module, name: &str) -> Instruction<'m> {
    let mut all = blocks(module, "f").into_iter().flat_map(Block::instructions);
    all.find(|i| i.as_value().name() == name).unwrap()
}

/// That this panics, and says so.
#[track_caller]
fn refused(says: &str, act: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(act)) else { panic!("it was allowed; it should say {says:?}") };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let said = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap();
    assert!(said.contains(says), "{said:?} does not say {says:?}");
}

/// An instruction that was erased, in a module that is otherwise as it was.
fn erased(module: &Module) -> Instruction<'_> {
    let spare = named(module, "spare");
    spare.erase();
    spare
}

/// An erased block that was the `then` side, with the edge that led there moved.
fn erased_block(module: &Module) -> Block<'_> {
    let [entry, then, other, join] = blocks(module, "f")[..] else { panic!("four blocks") };
    entry.terminator().set_successor(0, other);
    let phi = join.phis()[0];
    let y = named(module, "y").as_value();
    let new = join.add_phi_in_front(&[(y, other)], "");
    phi.as_value().replace_all_uses_with(new.as_value());
    phi.erase();
    then.erase();
    then
}

/// That what was refused left nothing behind by which the module could not go on.
fn lives_on(mut module: Module) {
    module.verify().unwrap();
    module.sweep();
    module.run_passes("function(mem2reg,simplifycfg)").unwrap();
    assert!(module.to_text().contains("define i32 @f"));
    let bitcode = module.to_bitcode();
    drop(module);
    Module::parse(&bitcode, "again.bc").unwrap().verify().unwrap();
}

#[test]
fn an_instruction_is_erased_once() {
    let module = diamond();
    let gone = erased(&module);
    refused("was erased", || gone.erase());
    lives_on(module);
}

#[test]
fn a_block_is_erased_once() {
    let module = diamond();
    let gone = erased_block(&module);
    refused("block that was erased", || gone.erase());
    lives_on(module);
}

#[test]
fn what_was_erased_with_its_block_is_erased_too() {
    let module = diamond();
    let x = named(&module, "x");
    erased_block(&module);
    refused("was erased", || x.erase());
    refused("was erased", || x.move_before(named(&module, "y")));
    lives_on(module);
}

#[test]
fn an_erased_instruction_is_not_moved_back() {
    let module = diamond();
    let (gone, x) = (erased(&module), named(&module, "x"));
    refused("was erased", || gone.move_before(x));
    refused("was erased", || gone.move_to_end_of(x.block().unwrap()));
    refused("was erased", || _ = gone.copy_before(x));
    refused("was erased", || _ = gone.copy_to_end_of(x.block().unwrap()));
    refused("was erased", || x.move_before(gone));
    refused("was erased", || _ = x.copy_before(gone));
    lives_on(module);
}

#[test]
fn an_erased_instruction_is_nobodys_operand() {
    let module = diamond();
    let (gone, x) = (erased(&module), named(&module, "x"));
    let [entry, then, other, join] = blocks(&module, "f")[..] else { panic!("four blocks") };
    let c = entry.terminator().condition().unwrap();
    let slot = entry.function().add_slot(x.type_of());
    refused("was erased", || x.set_operand(0, gone.as_value()));
    refused("was erased", || gone.set_operand(0, x.as_value()));
    refused("was erased", || x.as_value().replace_all_uses_with(gone.as_value()));
    refused("was erased", || gone.as_value().replace_all_uses_with(x.as_value()));
    refused("was erased", || _ = then.select(c, gone.as_value(), x.as_value()));
    refused("was erased", || _ = join.add_phi_in_front(&[(gone.as_value(), then), (x.as_value(), other)], ""));
    let phi = join.begin_phi(x.type_of(), "");
    refused("was erased", || phi.add_incoming(gone.as_value(), then));
    refused("joins nothing", || x.add_incoming(x.as_value(), then));
    refused("two types", || phi.add_incoming(c, then));
    phi.erase();
    refused("was erased", || phi.add_incoming(x.as_value(), then));
    refused("was erased", || slot.store_before(gone.as_value(), x));
    refused("was erased", || slot.store_before(x.as_value(), gone));
    refused("was erased", || _ = slot.load_before(gone));
    lives_on(module);
}

#[test]
fn an_erased_condition_or_variable_is_nobodys() {
    let module = diamond();
    let [entry, then, other, _] = blocks(&module, "f")[..] else { panic!("four blocks") };
    let c = entry.terminator().condition().unwrap();
    let not = then.select(c, entry.function().truth(false), entry.function().truth(true));
    not.as_instruction().unwrap().move_before(then.instructions()[0]);
    let slot = entry.function().add_slot(c.type_of());
    let variable = entry.instructions().into_iter().find(|i| i.opcode() == super::Opcode::LLVMAlloca).unwrap();
    not.as_instruction().unwrap().erase();
    variable.erase();
    refused("was erased", || _ = then.branch_on(not, other, other));
    refused("was erased", || slot.store_before(c, then.terminator()));
    refused("was erased", || _ = slot.load_before(then.terminator()));
    lives_on(module);
}

#[test]
fn nothing_is_put_into_an_erased_block_and_nothing_leads_there() {
    let module = diamond();
    let gone = erased_block(&module);
    let [entry, other, join] = blocks(&module, "f")[..] else { panic!("three blocks") };
    let c = entry.terminator().condition().unwrap();
    let y = named(&module, "y");
    refused("block that was erased", || _ = gone.branch_to(join));
    refused("block that was erased", || _ = other.branch_to(gone));
    refused("block that was erased", || _ = other.branch_on(c, gone, join));
    refused("block that was erased", || entry.terminator().set_successor(0, gone));
    refused("block that was erased", || y.move_to_end_of(gone));
    refused("block that was erased", || _ = y.copy_to_end_of(gone));
    refused("block that was erased", || _ = gone.select(c, c, c));
    refused("block that was erased", || _ = gone.add_phi(&[(y.as_value(), other)], ""));
    refused("block that was erased", || _ = join.add_phi(&[(y.as_value(), gone)], ""));
    refused("block that was erased", || _ = gone.begin_phi(y.type_of(), ""));
    refused("block that was erased", || join.phis()[0].add_incoming(y.as_value(), gone));
    refused("block that was erased", || _ = gone.insert_before(""));
    refused("block that was erased", || gone.move_after(join));
    refused("block that was erased", || join.move_after(gone));
    refused("block that was erased", || other.move_entries_to(gone));
    refused("block that was erased", || _ = gone.function());
    lives_on(module);
}

#[test]
fn where_erased_jumps_lead_is_handed_to_nobody_for_use() {
    let module = diamond();
    let then = blocks(&module, "f")[1];
    let jump = then.terminator();
    erased_block(&module);
    let nowhere = jump.successors()[0];
    refused("block that was erased", || _ = nowhere.branch_to(blocks(&module, "f")[1]));
    refused("block that was erased", || nowhere.erase());
    lives_on(module);
}

#[test]
fn two_modules_do_not_mix() {
    let (module, other) = (diamond(), diamond());
    {
        let (x, theirs) = (named(&module, "x"), named(&other, "x"));
        let [entry, then, ..] = blocks(&module, "f")[..] else { panic!("four blocks") };
        let their_block = theirs.block().unwrap();
        let c = entry.terminator().condition().unwrap();
        let their_c = blocks(&other, "f")[0].terminator().condition().unwrap();
        let slot = entry.function().add_slot(x.type_of());
        let says = "two modules";
        refused(says, || x.move_before(theirs));
        refused(says, || x.move_to_end_of(their_block));
        refused(says, || _ = x.copy_before(theirs));
        refused(says, || _ = x.copy_to_end_of(their_block));
        refused(says, || x.set_operand(0, theirs.as_value()));
        refused(says, || x.set_operand(1, theirs.operand(1)));
        refused(says, || x.as_value().replace_all_uses_with(theirs.as_value()));
        refused(says, || entry.terminator().set_successor(0, their_block));
        refused(says, || then.move_entries_to(their_block));
        refused(says, || then.move_after(their_block));
        refused(says, || _ = then.branch_to(their_block));
        refused(says, || _ = then.branch_on(c, then, their_block));
        refused(says, || _ = then.branch_on(their_c, then, then));
        refused(says, || _ = then.select(c, x.as_value(), theirs.as_value()));
        refused(says, || _ = then.add_phi_in_front(&[(theirs.as_value(), entry)], ""));
        refused(says, || _ = then.add_phi_in_front(&[(x.as_value(), their_block)], ""));
        refused(says, || _ = then.begin_phi(theirs.type_of(), ""));
        let phi = named(&module, "p");
        refused(says, || phi.add_incoming(theirs.as_value(), then));
        refused(says, || phi.add_incoming(x.as_value(), their_block));
        refused(says, || _ = entry.function().add_slot(theirs.type_of()));
        refused(says, || slot.store_before(theirs.as_value(), x));
        refused(says, || slot.store_before(x.as_value(), theirs));
        refused(says, || _ = slot.load_before(theirs));
        refused(says, || x.take_location(theirs));
        refused(says, || x.join_locations(x, theirs));
        refused(says, || x.join_locations(theirs, x));
        refused(says, || x.intersect_flags(theirs));
        refused(says, || x.combine_metadata(theirs));
        let calls = [&module, &other].map(|m| blocks(m, "g")[0].instructions()[0]);
        refused(says, || calls[0].intersect_attributes(calls[1]));
    }
    lives_on(module);
    lives_on(other);
}

#[test]
fn edges_stay_inside_their_function() {
    let module = diamond();
    let (f, g) = (blocks(&module, "f"), blocks(&module, "g"));
    let says = "one of another function";
    refused(says, || _ = f[1].branch_to(g[0]));
    refused(says, || f[1].terminator().set_successor(0, g[0]));
    refused(says, || f[1].move_entries_to(g[0]));
    refused("to another function", || f[1].move_after(g[0]));
    lives_on(module);
}

#[test]
fn what_llvm_takes_for_a_constant_stays_one() {
    let text = "%s = type { i32, [4 x i32] }
define i32 @f(i32 %a, ptr %p) {
  %field = getelementptr %s, ptr %p, i64 0, i32 1, i64 2
  switch i32 %a, label %one [ i32 7, label %two ]
one:
  ret i32 1
two:
  ret i32 2
}
";
    let module = Module::parse(text.as_bytes(), "constants.ll").unwrap();
    let [field, choice] = blocks(&module, "f")[0].instructions()[..] else { panic!("two instructions") };
    let a = choice.operand(0);
    refused("must stay a constant", || choice.set_operand(2, a));
    refused("must stay a constant", || field.set_operand(2, a));
    refused("no value of the program", || choice.set_operand(1, choice.operand(3)));
    refused("no operand number 9", || _ = choice.operand(9));
    refused("another type", || field.set_operand(1, a));
    refused("a constant is replaced", || choice.operand(2).replace_all_uses_with(a));
    choice.set_operand(0, choice.operand(2));
    lives_on(module);
}

#[test]
fn what_is_asked_of_calls_is_asked_of_calls_only() {
    let module = diamond();
    let (x, call) = (named(&module, "x"), blocks(&module, "g")[0].instructions()[0]);
    refused("only calls", || _ = call.call_differs_from(x));
    refused("only calls", || _ = x.call_differs_from(call));
    refused("only calls", || call.intersect_attributes(x));
    refused("of calls for what is no call", || x.forbid_duplication());
    assert!(!x.call_has("noreturn") && x.callee().is_none() && x.arguments().is_empty() && x.called_type().is_none());
    lives_on(module);
}

#[test]
fn passes_and_bitcode_are_made_of_well_formed_modules_only() {
    let mut module = diamond();
    named(&module, "one").move_before(named(&module, "y"));
    assert!(module.verify().unwrap_err().contains("does not dominate"));
    assert!(module.run_passes("function(mem2reg)").unwrap_err().to_string().contains("not well formed"));
    refused("not well formed", || _ = module.to_bitcode());
    named(&module, "one").move_before(named(&module, "spare"));
    lives_on(module);
}

#[test]
fn an_instruction_of_another_function_is_no_operand_that_goes_unnoticed() {
    let module = diamond();
    let q = blocks(&module, "g")[0].instructions()[0];
    let (x, one) = (named(&module, "x"), named(&module, "one"));
    x.set_operand(0, q.as_value());
    refused("not well formed", || _ = module.to_bitcode());
    x.set_operand(0, one.as_value());
    lives_on(module);
}

#[test]
fn what_is_erased_lets_go_of_all_that_it_used() {
    // Each is erased after what it uses; tokens, handlers and metadata among it.
    let text = "declare token @llvm.call.preallocated.setup(i32)
declare void @callee()
declare i32 @personality(...)
declare void @llvm.assume(i1)
define void @f(i1 %c) personality ptr @personality {
entry:
  %t = call token @llvm.call.preallocated.setup(i32 0)
  call void @llvm.assume(i1 %c) [\"preallocated\"(token %t)]
  br i1 %c, label %try, label %end
try:
  invoke void @callee() to label %end unwind label %handler
handler:
  %pad = landingpad { ptr, i32 } cleanup
  br label %end
end:
  ret void
}
";
    let mut module = Module::parse(text.as_bytes(), "tokens.ll").unwrap();
    {
        let [entry, attempt, handler, end] = blocks(&module, "f")[..] else { panic!("four blocks") };
        let [token, user, _] = entry.instructions()[..] else { panic!("three instructions") };
        refused("though call void @llvm.assume", || token.erase());
        user.erase();
        token.erase();
        entry.terminator().set_successor(0, end);
        attempt.erase();
        handler.erase();
        assert!([token, user].into_iter().all(|i| i.block().is_none()));
    }
    module.sweep();
    module.verify().unwrap();
    assert!(module.to_text().contains("br i1 %c, label %end, label %end"));
}

#[test]
fn erased_things_can_still_be_compared_and_printed() {
    let module = diamond();
    let x = named(&module, "x");
    let gone = erased(&module);
    let block = erased_block(&module);
    assert!(gone != x && gone == gone && gone.block().is_none() && gone.as_value().uses().is_empty());
    assert!(gone.to_string().starts_with("%0 = mul i32") || gone.to_string().contains("mul i32"), "{gone}");
    assert!(block.is_empty() && block.entering().is_empty() && block.name() == "then", "{}", block.name());
    lives_on(module);
}

/// A join whose first instruction has a debug record: its variable `v` is `a` from there on.
const WITH_RECORD: &str = "define i32 @f(i1 %c, i32 %a) !dbg !4 {
entry:
  br i1 %c, label %then, label %join
then:
  br label %join
join:
    #dbg_value(i32 %a, !8, !DIExpression(), !9)
  %r = add i32 %a, 1
  ret i32 %r
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C11, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: \"f.c\", directory: \"/\")
!2 = !{i32 2, !\"Debug Info Version\", i32 3}
!4 = distinct !DISubprogram(name: \"f\", file: !1, line: 1, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DISubroutineType(types: !6)
!6 = !{!7}
!7 = !DIBasicType(name: \"int\", size: 32, encoding: DW_ATE_signed)
!8 = !DILocalVariable(name: \"v\", scope: !4, file: !1, line: 1, type: !7)
!9 = !DILocation(line: 1, scope: !4)
";

#[test]
fn a_phi_comes_before_the_debug_records_of_its_block() {
    let module = Module::parse(WITH_RECORD.as_bytes(), "record.ll").unwrap();
    let [entry, then, join] = blocks(&module, "f")[..] else { panic!("three blocks") };
    let value = named(&module, "r").operands()[0];
    let begun = join.begin_phi(value.type_of(), "begun");
    begun.add_incoming(value, entry);
    begun.add_incoming(value, then);
    join.add_phi_in_front(&[(value, entry), (value, then)], "front");
    let _ = begun.copy_before(named(&module, "r"));
    begun.move_before(named(&module, "r"));
    assert_eq!(module.verify(), Ok(()));
}

/// A store on the way through `then`, and in `then` what debug information says about it.
const WITH_ASSIGNMENT: &str = "define i32 @f(i1 %c, i32 %a) !dbg !4 {
entry:
  %v = alloca i32, !DIAssignID !10
  store i32 %a, ptr %v, !DIAssignID !11
  br i1 %c, label %then, label %join
then:
    #dbg_assign(i32 %a, !8, !DIExpression(), !11, ptr %v, !DIExpression(), !9)
  br label %join
join:
  %r = add i32 %a, 1
  ret i32 %r
}
!10 = distinct !DIAssignID()
!11 = distinct !DIAssignID()
";

#[test]
fn a_block_is_erased_with_its_debug_records() {
    let metadata = WITH_RECORD.split_once("}\n").unwrap().1;
    let module = Module::parse((WITH_ASSIGNMENT.to_owned() + metadata).as_bytes(), "assign.ll").unwrap();
    let [entry, then, join] = blocks(&module, "f")[..] else { panic!("three blocks") };
    entry.terminator().set_successor(0, join);
    then.terminator().erase();
    then.erase();
    assert_eq!(module.verify(), Ok(()));
    assert!(!module.to_text().contains("#dbg_assign"));
}

#[test]
fn what_is_no_text_is_refused_without_being_quoted() {
    let fault = |bytes: &[u8]| Module::parse(bytes, "a.ll").err().expect("it is no IR").to_string();
    assert!(fault(b"define i32 @f( {").contains("define i32 @f( {"));
    let said = fault(b"\x1b[2J\xff\xfe\x07 and more");
    assert!(said.contains("a.ll") && !said.contains(char::is_control) && !said.contains("more"), "{said:?}");
}

#[test]
fn a_module_that_was_lent_is_its_owner_s_again_without_what_was_erased() {
    let text = "define i32 @f(i1 %c, i32 %a) {
entry:
  %spare = mul i32 %a, 5
  br i1 %c, label %then, label %join
then:
  br label %join
join:
  ret i32 %a
}
";
    let owner = Module::parse(text.as_bytes(), "f.ll").unwrap();
    // SAFETY: the owner is looked at again only when the other is gone.
    let mut lent = unsafe { Lent::new(owner.raw()) };
    assert!(lent.copy().to_text().contains("%spare"));
    let module = lent.module();
    named(module, "spare").erase();
    let [entry, then, join] = blocks(module, "f")[..] else { panic!("three blocks") };
    entry.terminator().set_successor(0, join);
    then.terminator().erase();
    then.erase();
    drop(lent);
    assert_eq!(owner.verify(), Ok(()));
    let left = owner.to_text();
    assert!(!left.contains("%spare") && !left.contains("then:"), "{left}");
    assert_eq!(owner.functions().len(), 1);
}
