//! Divergence analysis on processors: what nobody writes between two barriers is loaded the same by all.

use transform::llvm::Module;
use transform::spmd::{Class, Options, Program, ValueId};

const DECLARED: &str = "
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_barrier_init(ptr, ptr, i32)
declare i32 @pthread_barrier_wait(ptr)
@all = internal global [32 x i8] zeroinitializer
@n = internal global i64 0
@m = internal global i64 0
";

const START: &str = "  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = inttoptr i64 %i to ptr
  %1 = call i32 @pthread_create(ptr null, ptr null, ptr @work, ptr %p)
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, 8
  br i1 %c, label %loop, label %out
out:";

/// What `%x` is in the routine; `main` is what runs behind the loop that starts threads.
fn class(functions: &str, work: &str, main: &str) -> Class {
    let text = format!(
        "{DECLARED}{functions}
define internal ptr @work(ptr %p) {{
entry:
  %id = ptrtoint ptr %p to i64
{work}
  ret ptr null
}}
define i32 @main() {{
entry:
  %0 = call i32 @pthread_barrier_init(ptr @all, ptr null, i32 8)
{START}
{main}
  ret i32 0
}}"
    );
    let module = Module::parse(text.as_bytes(), "test.ll").unwrap();
    module.verify().unwrap();
    let program = Program::of(&module, &Options::default()).unwrap();
    let facts = program.functions().iter().find(|f| f.function().name() == "work").unwrap();
    let gated = facts.analysis().gated();
    let x = (0..gated.count() as u32).map(ValueId).find(|&n| gated.name(n) == "%x").unwrap();
    facts.analysis().class(x)
}

const WAIT: &str = "  call i32 @pthread_barrier_wait(ptr @all)\n";
const LOAD: &str = "  %x = load i64, ptr @n\n";
const STORE: &str = "  store i64 %id, ptr @n\n";

fn plain(parts: &[&str]) -> Class {
    class("", &parts.concat(), "")
}

#[test]
fn what_is_written_behind_another_barrier_is_the_same_for_all() {
    assert_eq!(plain(&[STORE, WAIT, LOAD]), Class::Uniform);
    assert_eq!(plain(&[LOAD, WAIT, STORE]), Class::Uniform);
    assert_eq!(plain(&[STORE, WAIT, LOAD, WAIT, STORE]), Class::Uniform);
}

#[test]
fn what_is_written_between_the_same_barriers_is_not() {
    assert_eq!(plain(&[STORE, LOAD]), Class::Divergent);
    assert_eq!(plain(&[WAIT, LOAD, STORE, WAIT]), Class::Divergent);
    assert_eq!(plain(&[STORE, LOAD, WAIT]), Class::Divergent);
    assert_eq!(plain(&[WAIT, STORE, LOAD, WAIT]), Class::Divergent);
    let elsewhere = "  store i64 %id, ptr @m\n";
    assert_eq!(plain(&[STORE, WAIT, elsewhere, LOAD]), Class::Uniform);
}

#[test]
fn a_loop_brings_a_store_round_unless_there_is_a_barrier_on_both_sides() {
    let turns = |body: &[&str]| {
        format!(
            "  br label %turn\nturn:\n  %k = phi i64 [ 0, %entry ], [ %more, %turn ]\n{}  %more = add i64 %k, 1
  %again = icmp ult i64 %more, 9\n  br i1 %again, label %turn, label %end\nend:\n",
            body.concat()
        )
    };
    assert_eq!(plain(&[&turns(&[LOAD, WAIT, STORE])]), Class::Divergent);
    assert_eq!(plain(&[&turns(&[LOAD, WAIT, STORE, WAIT])]), Class::Uniform);
    // As many turns as the thread has a number: threads are not behind the same barrier.
    let uneven = turns(&[LOAD, WAIT, STORE, WAIT]).replace("%more, 9", "%more, %id");
    assert_eq!(plain(&[&uneven]), Class::Divergent);
}

#[test]
fn a_barrier_that_some_threads_leave_out_does_not_count() {
    let some = format!(
        "{STORE}  %odd = trunc i64 %id to i1\n  br i1 %odd, label %yes, label %no\n\
         yes:\n{WAIT}  br label %no\nno:\n{LOAD}"
    );
    assert_eq!(plain(&[&some]), Class::Divergent);
}

#[test]
fn stores_and_barriers_in_callees_count_where_they_are_called() {
    let set = "define internal void @set(i64 %v) {\n  store i64 %v, ptr @n\n  ret void\n}\n";
    let wait = "define internal void @wait() {\n  %w = call i32 @pthread_barrier_wait(ptr @all)\n  ret void\n}\n";
    let both = format!("{set}{wait}");
    let (put, meet) = ("  call void @set(i64 %id)\n", "  call void @wait()\n");
    assert_eq!(class(&both, &[put, meet, LOAD].concat(), ""), Class::Uniform);
    assert_eq!(class(&both, &[put, LOAD, meet].concat(), ""), Class::Divergent);
    assert_eq!(class(&both, &[meet, LOAD, put].concat(), ""), Class::Divergent);
}

#[test]
fn what_main_writes_meanwhile_is_written_at_any_time() {
    let work = [STORE, WAIT, LOAD].concat();
    assert_eq!(class("", &work, "  store i64 3, ptr @n"), Class::Divergent);
    assert_eq!(class("", &work, "  store i64 3, ptr @m"), Class::Uniform);
    // Main may be a thread itself.
    assert_eq!(class("", &work, "  %r = call ptr @work(ptr null)"), Class::Uniform);
}

#[test]
fn a_second_generation_of_threads_is_not_behind_the_first_ones_barrier() {
    let work = [STORE, WAIT, LOAD].concat();
    let again = "  %j = call i32 @pthread_join(i64 0, ptr null)
  %s = call i32 @pthread_create(ptr null, ptr null, ptr @work, ptr null)";
    assert_eq!(class("", &work, again), Class::Divergent);
    let own = "  %w = call i32 @pthread_barrier_init(ptr @all, ptr null, i32 4)";
    assert_eq!(class("", &work, own), Class::Divergent);
}
