//! Divergence analysis on processors: what threads find in the records that they get when they are started.

use transform::llvm::Module;
use transform::spmd::{Options, Program, ValueId};

const DECLARED: &str = "
%record = type { i64, i32, ptr, i64 }
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @mystery(ptr)
@table = internal global ptr null
@n = internal global i64 0
@data = internal global [64 x %record] zeroinitializer
@other = internal global ptr null
";

/// What is known about `%x` in the routine, whose body is given; `turn` is the body of the loop that starts threads.
fn fact(turn: &str, behind: &str, work: &str) -> String {
    let main = format!(
        "entry:
  store i64 64, ptr @n
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  {turn}
  br label %latch
latch:
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, 8
  br i1 %c, label %loop, label %out
out:
  {behind}
  ret i32 0"
    );
    in_threads(work, &main)
}

/// What is known about `%x` in a routine, whose body is given, beside that of main.
fn in_threads(work: &str, main: &str) -> String {
    let routine = format!("define internal ptr @work(ptr %p) {{\n  {work}\n  ret ptr null\n}}");
    known(&format!("{DECLARED}\n{routine}\ndefine i32 @main() {{\n{main}\n}}"), "work", "%x")
}

/// What is known about a value of a function, by its name.
fn known(text: &str, function: &str, name: &str) -> String {
    let module = Module::parse(text.as_bytes(), "test.ll").unwrap();
    module.verify().unwrap();
    let program = Program::of(&module, &Options::default()).unwrap();
    let facts = program.functions().iter().find(|f| f.function().name() == function).unwrap();
    let gated = facts.analysis().gated();
    let value = (0..gated.count() as u32).map(ValueId).find(|&n| gated.name(n) == name).unwrap();
    facts.analysis().text_of(&facts.analysis().fact(value))
}

const FILL: &str = "%at = getelementptr %record, ptr @data, i64 %i
  %id = getelementptr %record, ptr @data, i64 %i, i32 1
  %narrow = trunc i64 %i to i32
  %three = mul i32 %narrow, 3
  store i32 %three, ptr %id
  %size = getelementptr i8, ptr %at, i64 16
  %loaded = load ptr, ptr @table
  store ptr %loaded, ptr %size";
const START: &str = "%1 = call i32 @pthread_create(ptr %at, ptr null, ptr @work, ptr %at)";
const ID: &str = "%a = getelementptr i8, ptr %p, i64 8\n  %x = load i32, ptr %a";

fn plain(more: &str, work: &str) -> String {
    fact(&format!("{FILL}\n  {more}\n  {START}"), "", work)
}

#[test]
fn a_number_in_a_record_is_the_threads_number() {
    assert_eq!(plain("", ID), "3·tid");
}

#[test]
fn what_is_the_same_in_all_records_is_uniform() {
    assert_eq!(plain("", "%a = getelementptr i8, ptr %p, i64 16\n  %x = load ptr, ptr %a"), "%x");
    // The library writes the thread's own name there.
    assert_eq!(plain("", "%x = load i64, ptr %p"), "⊥");
    // Nobody fills this.
    assert_eq!(plain("", "%a = getelementptr i8, ptr %p, i64 24\n  %x = load i64, ptr %a"), "⊥");
}

#[test]
fn a_record_that_is_new_in_each_turn_needs_no_stride() {
    let new = "%at = call ptr @malloc(i64 32)
  %id = getelementptr i8, ptr %at, i64 8
  %narrow = trunc i64 %i to i32
  store i32 %narrow, ptr %id";
    let work = format!("{ID}\n  call void @free(ptr %p)");
    assert_eq!(fact(&format!("{new}\n  {START}"), "", &work), "tid");
    // One record for all is overwritten while threads read it.
    let one = new.replace("call ptr @malloc(i64 32)", "getelementptr i8, ptr @data, i64 0");
    assert_eq!(fact(&format!("{one}\n  {START}"), "", ID), "⊥");
}

#[test]
fn records_that_overlap_are_not_known() {
    let close = "%at = getelementptr i8, ptr @data, i64 %i
  %id = getelementptr i8, ptr %at, i64 8
  %narrow = trunc i64 %i to i32
  store i32 %narrow, ptr %id";
    assert_eq!(fact(&format!("{close}\n  {START}"), "", ID), "⊥");
}

#[test]
fn another_write_to_the_same_place_spoils_it() {
    assert_eq!(plain("store i32 7, ptr %id", ID), "⊥");
    assert_eq!(plain("store i64 7, ptr %id", ID), "⊥");
    assert_eq!(plain("%next_one = getelementptr i8, ptr %at, i64 12\n  store i32 7, ptr %next_one", ID), "3·tid");
    // By the thread itself: elsewhere in its record, or there; through an address that is not known.
    assert_eq!(plain("", &format!("{ID}\n  %b = getelementptr i8, ptr %p, i64 24\n  store i64 1, ptr %b")), "3·tid");
    assert_eq!(plain("", &format!("{ID}\n  store i32 1, ptr %a")), "⊥");
    let unknown = "%k = load i64, ptr %p\n  %b = getelementptr i8, ptr %p, i64 %k\n  store i8 1, ptr %b";
    assert_eq!(plain("", &format!("{ID}\n  {unknown}")), "⊥");
    assert_eq!(plain("", &format!("{ID}\n  %l = call i32 @pthread_mutex_lock(ptr %p)")), "⊥");
    assert_eq!(plain("call void @mystery(ptr %at)", ID), "⊥");
}

#[test]
fn what_is_stored_behind_the_start_or_in_some_turns_only_is_not_known() {
    assert_eq!(fact(&format!("{}\n  {START}", FILL.replace("store i32 %three", "store i32 7")), "", ID), "7");
    let late = FILL.replace("store i32 %three, ptr %id", "");
    assert_eq!(fact(&format!("{late}\n  {START}\n  store i32 %three, ptr %id"), "", ID), "⊥");
    let some = format!(
        "{late}\n  %odd = trunc i64 %i to i1\n  br i1 %odd, label %yes, label %no
yes:\n  store i32 %three, ptr %id\n  br label %no\nno:\n  {START}"
    );
    assert_eq!(fact(&some, "", ID), "⊥");
    assert_eq!(
        plain("", ID),
        fact(&format!("{FILL}\n  {START}"), "%l = load i32, ptr getelementptr (i8, ptr @data, i64 8)", ID)
    );
    assert_eq!(fact(&format!("{FILL}\n  {START}"), "store i32 1, ptr getelementptr (i8, ptr @data, i64 40)", ID), "⊥");
}

#[test]
fn a_routine_that_somebody_else_calls_has_records_that_are_not_known() {
    let called = "%r = call ptr @work(ptr null)";
    assert_eq!(fact(&format!("{FILL}\n  {START}"), called, ID), "⊥");
    assert_eq!(fact(&format!("{FILL}\n  {START}"), &START.replace("%1", "%2").replace("%at", "@data"), ID), "⊥");
}

#[test]
fn a_variable_that_is_set_before_the_loop_is_the_same_in_each_turn() {
    let turn = "%at = getelementptr %record, ptr @data, i64 %i
  %last = getelementptr i8, ptr %at, i64 24
  %size = load i64, ptr @n
  %product = mul i64 %size, %i
  store i64 %product, ptr %last";
    let work = "%a = getelementptr i8, ptr %p, i64 24\n  %x = load i64, ptr %a";
    assert_eq!(fact(&format!("{turn}\n  {START}"), "", work), "stride(%x)·tid");
    assert_eq!(fact(&format!("{turn}\n  {START}"), "store i64 1, ptr @n", work), "⊥");
}

/// Threads that are started one by one; `more` comes behind.
fn unrolled(third: &str, more: &str, work: &str) -> String {
    let start = |i: usize, number: &str| {
        let at = |offset: usize| format!("ptr getelementptr (i8, ptr @data, i64 {})", 32 * i + offset);
        format!(
            "store i32 {number}, {}
  store ptr %old, {}
  %t{i} = call i32 @pthread_create({record}, ptr null, ptr @work, {record})
",
            at(8),
            at(16),
            record = at(0)
        )
    };
    let starts = [start(0, "5"), start(1, "7"), start(2, third)].concat();
    in_threads(work, &format!("  %old = load ptr, ptr @table\n  {starts}{more}\n  ret i32 0"))
}

#[test]
fn records_of_an_unrolled_loop_hold_a_progression() {
    assert_eq!(unrolled("9", "", ID), "2·tid + 5");
    assert_eq!(unrolled("8", "", ID), "⊥");
    assert_eq!(unrolled("9", "", "%a = getelementptr i8, ptr %p, i64 16\n  %x = load ptr, ptr %a"), "%x");
    assert_eq!(unrolled("9", "store i32 1, ptr getelementptr (i8, ptr @data, i64 40)", ID), "⊥");
    assert_eq!(unrolled("9", "store i64 1, ptr getelementptr (i8, ptr @data, i64 56)", ID), "2·tid + 5");
    assert_eq!(unrolled("9", "call void @mystery(ptr @data)", ID), "⊥");
}

/// `phase(%round)` starts threads with its parameter, and is called so often.
fn rounds(calls: &str) -> (String, String) {
    let text = format!(
        "{DECLARED}
define internal ptr @work(ptr %p) {{
  %a = getelementptr i8, ptr %p, i64 24
  %x = load i64, ptr %a
  ret ptr null
}}
define internal ptr @plain(ptr %p) {{ ret ptr %p }}
define internal void @phase(i64 %round) {{
entry:
  %wide = inttoptr i64 %round to ptr
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr %record, ptr @data, i64 %i
  %last = getelementptr i8, ptr %at, i64 24
  store i64 %round, ptr %last
  %1 = call i32 @pthread_create(ptr null, ptr null, ptr @work, ptr %at)
  %2 = call i32 @pthread_create(ptr null, ptr null, ptr @plain, ptr %wide)
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, 8
  br i1 %c, label %loop, label %out
out:
  ret void
}}
define i32 @main(i32 %count, ptr %words) {{
  %wide = zext i32 %count to i64
  {calls}
  ret i32 0
}}"
    );
    (known(&text, "work", "%x"), known(&text, "plain", "%p"))
}

#[test]
fn a_round_that_is_run_again_gives_other_values() {
    assert_eq!(rounds("call void @phase(i64 %wide)"), ("%x".to_owned(), "%p".to_owned()));
    let twice = "call void @phase(i64 %wide)\n  %more = add i64 %wide, 1\n  call void @phase(i64 %more)";
    assert_eq!(rounds(twice), ("⊥".to_owned(), "⊥".to_owned()));
}
