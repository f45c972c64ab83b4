//! Divergence analysis on processors: memory that nobody writes while threads run is loaded the same by all.

use transform::llvm::Module;
use transform::spmd::{Class, Options, Program};

const DECLARED: &str = "
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_barrier_wait(ptr)
declare ptr @calloc(i64, i64)
declare i64 @strtol(ptr, ptr, i32)
declare i32 @puts(ptr)
declare void @mystery(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
";

/// A program whose threads run `work(tid)`, which returns `%x`: the class of `%x`.
fn class(globals: &str, before: &str, after: &str, work: &str, options: &Options) -> Class {
    let text = format!(
        "{DECLARED}{globals}
define internal ptr @work(ptr %tid) {{
  {work}
  ret ptr null
}}
define i32 @main() {{
  {before}
  %t = call i32 @pthread_create(ptr null, ptr null, ptr @work, ptr null)
  %u = call i32 @pthread_create(ptr null, ptr null, ptr @work, ptr inttoptr (i64 1 to ptr))
  {after}
  ret i32 0
}}"
    );
    let module = Module::parse(text.as_bytes(), "test.ll").unwrap();
    module.verify().unwrap();
    let program = Program::of(&module, options).unwrap();
    let facts = program.functions().iter().find(|f| f.function().name() == "work").unwrap();
    let gated = facts.analysis().gated();
    let x = (0..gated.count() as u32).map(transform::spmd::ValueId).find(|&n| gated.name(n) == "%x").unwrap();
    facts.analysis().class(x)
}

fn plain(globals: &str, before: &str, after: &str, work: &str) -> Class {
    class(globals, before, after, work, &Options::default())
}

const N: &str = "@n = internal global i64 0";
const LOAD: &str = "%x = load i64, ptr @n";

#[test]
fn what_is_written_before_threads_start_is_uniform() {
    assert_eq!(plain(N, "store i64 7, ptr @n", "", LOAD), Class::Uniform);
}

#[test]
fn what_is_written_behind_a_start_is_not() {
    assert_eq!(plain(N, "", "store i64 7, ptr @n", LOAD), Class::Divergent);
}

#[test]
fn what_threads_write_is_not() {
    assert_eq!(plain(N, "", "", "%x = load i64, ptr @n\n  store i64 %x, ptr @n"), Class::Divergent);
}

#[test]
fn a_store_in_a_callee_counts_where_it_may_run() {
    let early = format!("{N}\ndefine internal void @set() {{ store i64 7, ptr @n\n ret void }}");
    assert_eq!(plain(&early, "call void @set()", "", LOAD), Class::Uniform);
    assert_eq!(plain(&early, "call void @set()", "call void @set()", LOAD), Class::Divergent);
    assert_eq!(plain(&early, "", "", "%x = load i64, ptr @n\n  call void @set()"), Class::Divergent);
}

#[test]
fn what_unknown_code_can_reach_is_not() {
    assert_eq!(plain(N, "call void @mystery(ptr @n)", "", LOAD), Class::Divergent);
    // In a whole program a library does not know the variables' names; linked with others, one may write them.
    let open = "@n = global i64 0";
    assert_eq!(plain(open, "store i64 7, ptr @n", "", LOAD), Class::Uniform);
    let linked = Options { linked_with_others: true, ..Options::default() };
    assert_eq!(class(open, "store i64 7, ptr @n", "", LOAD, &linked), Class::Divergent);
    assert_eq!(class(N, "store i64 7, ptr @n", "", LOAD, &linked), Class::Uniform);
    let stored = "@n = internal global i64 0\n@where = global ptr null";
    let put = "store ptr @n, ptr @where";
    assert_eq!(class(stored, put, "", LOAD, &linked), Class::Divergent);
    assert_eq!(class(stored, put, "", LOAD, &Options::default()), Class::Uniform);
}

#[test]
fn an_unknown_function_may_start_threads_and_call_back() {
    // What comes behind it is late.
    assert_eq!(plain(N, "call void @mystery(ptr null)\n  store i64 7, ptr @n", "", LOAD), Class::Divergent);
    assert_eq!(plain(N, "call i32 @puts(ptr null)\n  store i64 7, ptr @n", "", LOAD), Class::Uniform);
    let back = format!("{N}\ndefine internal void @set() {{ store i64 7, ptr @n\n ret void }}");
    assert_eq!(plain(&back, "", "call void @mystery(ptr @set)", LOAD), Class::Divergent);
}

#[test]
fn memory_on_the_heap_is_followed_through_variables() {
    let table = "@table = internal global ptr null\n@other = internal global ptr null";
    let make = "%p = call ptr @calloc(i64 8, i64 8)
  store ptr %p, ptr @table
  %q = getelementptr i64, ptr %p, i64 3
  store i64 9, ptr %q";
    let load = "%a = load ptr, ptr @table\n  %b = getelementptr i64, ptr %a, i64 3\n  %x = load i64, ptr %b";
    assert_eq!(plain(table, make, "", load), Class::Uniform);
    // Through another name it is the same memory.
    let named = format!("{make}\n  store ptr %p, ptr @other");
    let written = format!("{load}\n  %c = load ptr, ptr @other\n  store i64 1, ptr %c");
    assert_eq!(plain(table, &named, "", &written), Class::Divergent);
    // Memory of its own does not matter.
    let own = format!("{make}\n  %r = call ptr @calloc(i64 8, i64 8)\n  store ptr %r, ptr @other");
    assert_eq!(plain(table, &own, "", &written), Class::Uniform);
    // An address that a number was made of is one still.
    let number = format!(
        "{load}\n  %d = ptrtoint ptr %a to i64\n  %e = add i64 %d, 24\n  %f = inttoptr i64 %e to ptr
  store i64 1, ptr %f"
    );
    assert_eq!(plain(table, make, "", &number), Class::Divergent);
    let set = format!("{load}\n  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 8, i1 false)");
    assert_eq!(plain(table, make, "", &set), Class::Divergent);
}

#[test]
fn a_library_function_that_leaves_an_address_within_its_argument_is_followed() {
    let text = "@text = internal global [8 x i8] zeroinitializer\n@end = internal global ptr null";
    let load = "%x = load i8, ptr @text";
    assert_eq!(plain(text, "call i64 @strtol(ptr @text, ptr @end, i32 10)", "", load), Class::Uniform);
    let written = format!("{load}\n  %e = load ptr, ptr @end\n  store i8 0, ptr %e");
    assert_eq!(plain(text, "call i64 @strtol(ptr @text, ptr @end, i32 10)", "", &written), Class::Divergent);
}

#[test]
fn code_that_runs_before_the_start_as_well_sees_what_is_not_yet_written() {
    let helper = format!("{N}\ndefine internal i64 @get() {{ %y = load i64, ptr @n\n ret i64 %y }}");
    assert_eq!(plain(&helper, "store i64 7, ptr @n", "", "%x = call i64 @get()"), Class::Uniform);
    assert_eq!(
        plain(&helper, "%g = call i64 @get()\n  store i64 7, ptr @n", "", "%x = call i64 @get()"),
        Class::Divergent
    );
}

#[test]
fn a_variable_that_holds_an_address_from_the_start_leads_there() {
    let globals = "@n = internal global i64 0\n@p = internal global ptr @n";
    assert_eq!(plain(globals, "store i64 7, ptr @n", "", LOAD), Class::Uniform);
    let written = "%x = load i64, ptr @n\n  %q = load ptr, ptr @p\n  store i64 1, ptr %q";
    assert_eq!(plain(globals, "", "", written), Class::Divergent);
}

#[test]
fn volatile_and_atomic_loads_and_threads_own_variables_stay_divergent() {
    assert_eq!(plain(N, "", "", "%x = load volatile i64, ptr @n"), Class::Divergent);
    assert_eq!(plain(N, "", "", "%x = load atomic i64, ptr @n monotonic, align 8"), Class::Divergent);
    assert_eq!(plain("@n = internal thread_local global i64 0", "", "", LOAD), Class::Divergent);
}

#[test]
fn a_copy_that_a_call_makes_lies_on_each_threads_own_stack() {
    let sum = "@s = internal global [4 x i64] zeroinitializer
define internal i64 @sum(ptr byval([4 x i64]) %p) { %a = ptrtoint ptr %p to i64\n ret i64 %a }";
    assert_eq!(plain(sum, "", "", "%x = call i64 @sum(ptr byval([4 x i64]) @s)"), Class::Divergent);
}
