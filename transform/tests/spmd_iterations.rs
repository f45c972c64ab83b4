//! Divergence analysis where lanes are the iterations of loops that OpenMP shares out to threads.

use transform::llvm::Module;
use transform::spmd::{Options, Program, ValueId};

/// What is known about values of a function of [`SHARED`], by their names.
fn facts(iterations: bool, function: &str, names: &[&str]) -> Vec<String> {
    let module = Module::parse(SHARED.as_bytes(), "shared.ll").unwrap();
    module.verify().unwrap();
    let program = Program::of(&module, &Options { iterations, ..Options::default() }).unwrap();
    let found = program.functions().iter().find(|f| f.function().name() == function).unwrap();
    let gated = found.analysis().gated();
    let fact = |name: &&str| {
        let node = (0..gated.count() as u32).map(ValueId).find(|&n| gated.name(n) == **name);
        found.analysis().text_of(&found.analysis().fact(node.unwrap_or_else(|| panic!("there is no {name}"))))
    };
    names.iter().map(fact).collect()
}

/// A region that shares out a loop by chunks, as clang makes it, and one whose chunks a runtime gives one by one.
const SHARED: &str = "
declare void @__kmpc_for_static_init_4(ptr, i32, i32, ptr, ptr, ptr, ptr, i32, i32)
declare void @__kmpc_dispatch_init_8u(ptr, i32, i32, i64, i64, i64, i64)
declare i32 @__kmpc_dispatch_next_8u(ptr, i32, ptr, ptr, ptr, ptr)
declare void @__kmpc_fork_call(ptr, i32, ptr, ...)
declare i32 @omp_get_thread_num()
define internal void @fixed(ptr %global, ptr %bound, i32 %n) {
entry:
  %lower = alloca i32
  %upper = alloca i32
  %stride = alloca i32
  %last = alloca i32
  br label %time
time:
  %t = phi i32 [ 0, %entry ], [ %t1, %after ]
  call void @__kmpc_for_static_init_4(ptr null, i32 0, i32 33, ptr %last, ptr %lower, ptr %upper, ptr %stride, i32 1, i32 3)
  %first = load i32, ptr %lower
  %wide = sext i32 %first to i64
  %number = call i32 @omp_get_thread_num()
  br label %chunk
chunk:
  %c = phi i64 [ %wide, %time ], [ %c2, %next ]
  %rounds = phi i32 [ 0, %time ], [ %rounds1, %next ]
  br label %loop
loop:
  %i = phi i64 [ %c, %chunk ], [ %i1, %latch ]
  %sum = phi i32 [ 0, %chunk ], [ %sum1, %latch ]
  %narrow = trunc i64 %i to i32
  %index = mul i32 %narrow, %n
  %early = add i32 %t, %rounds
  br label %inner
inner:
  %j = phi i32 [ 0, %loop ], [ %j1, %inner ]
  %place = add i32 %index, %j
  %j1 = add i32 %j, 1
  %again = icmp slt i32 %j1, %n
  br i1 %again, label %inner, label %latch
latch:
  %sum1 = add i32 %sum, %narrow
  %i1 = add nsw i64 %i, 1
  %u = load i32, ptr %upper
  %more = icmp slt i32 %narrow, %u
  br i1 %more, label %loop, label %next
next:
  %s = load i32, ptr %stride
  %by = sext i32 %s to i64
  %c2 = add i64 %c, %by
  %rounds1 = add i32 %rounds, 1
  %chunks = icmp slt i64 %c2, 100
  br i1 %chunks, label %chunk, label %after
after:
  %t1 = add i32 %t, 1
  %times = icmp slt i32 %t1, %n
  br i1 %times, label %time, label %out
out:
  ret void
}
define internal void @given(ptr %global, ptr %bound, i32 %n) {
entry:
  %lower = alloca i64
  %upper = alloca i64
  %stride = alloca i64
  %last = alloca i32
  call void @__kmpc_dispatch_init_8u(ptr null, i32 0, i32 35, i64 0, i64 99, i64 1, i64 2)
  br label %ask
ask:
  %calls = phi i32 [ 0, %entry ], [ %calls1, %chunk ]
  %any = call i32 @__kmpc_dispatch_next_8u(ptr null, i32 0, ptr %last, ptr %lower, ptr %upper, ptr %stride)
  %none = icmp eq i32 %any, 0
  br i1 %none, label %out, label %begin
begin:
  %first = load i64, ptr %lower
  %end = load i64, ptr %upper
  br label %loop
loop:
  %i = phi i64 [ %first, %begin ], [ %i1, %loop ]
  %k = shl i64 %i, 2
  %i1 = add nuw i64 %i, 1
  %more = icmp ult i64 %i, %end
  br i1 %more, label %loop, label %chunk
chunk:
  %calls1 = add i32 %calls, 1
  br label %ask
out:
  ret void
}
define internal void @by_fours(ptr %global, ptr %bound, i32 %n) {
entry:
  %lower = alloca i32
  %upper = alloca i32
  %stride = alloca i32
  %last = alloca i32
  call void @__kmpc_for_static_init_4(ptr null, i32 0, i32 34, ptr %last, ptr %lower, ptr %upper, ptr %stride, i32 1, i32 1)
  %first = load i32, ptr %lower
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %i4, %loop ]
  %turn = phi i32 [ 0, %entry ], [ %turn1, %loop ]
  %i4 = add i32 %i, 4
  %turn1 = add i32 %turn, 1
  %u = load i32, ptr %upper
  %more = icmp slt i32 %i4, %u
  br i1 %more, label %loop, label %out
out:
  ret void
}
define i32 @main() {
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr null, i32 1, ptr @fixed, i32 7)
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr null, i32 1, ptr @given, i32 7)
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr null, i32 1, ptr @by_fours, i32 7)
  ret i32 0
}";

#[test]
fn where_lanes_are_iterations_the_counter_of_a_shared_loop_is_their_number() {
    let found = facts(true, "fixed", &["%i", "%narrow", "%index", "%place"]);
    assert_eq!(found, ["tid", "tid", "7·tid", "7·tid + %j"]);
    assert_eq!(facts(true, "given", &["%i", "%k", "%i1"]), ["tid", "4·tid", "tid + 1"]);
}

#[test]
fn where_lanes_are_iterations_what_loops_carry_between_them_is_divergent() {
    // By iterations, by chunks, by the thread; then what all iterations of the loop have in common.
    let carried = facts(true, "fixed", &["%sum", "%c", "%rounds", "%early", "%number", "%t", "%j"]);
    assert_eq!(carried, ["⊥", "⊥", "⊥", "⊥", "⊥", "%t", "%j"]);
    assert_eq!(facts(true, "given", &["%calls"]), ["⊥"]);
    assert_eq!(facts(true, "by_fours", &["%i", "%turn"]), ["⊥", "⊥"], "a turn of four iterations");
}

#[test]
fn where_lanes_are_threads_the_bounds_of_a_shared_loop_are_divergent() {
    assert_eq!(facts(false, "fixed", &["%i", "%number"]), ["⊥", "tid"]);
}
