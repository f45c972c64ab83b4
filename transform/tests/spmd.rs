//! Divergence analysis of LLVM IR: where thread numbers come from, calls, widths.

use transform::llvm::Module;
use transform::spmd::{Class, Machine, Mode, Options, Program};

/// What is known about a value of a function, by its name.
fn facts(text: &str, options: &Options, asked: &[(&str, &str)]) -> Vec<String> {
    let module = Module::parse(text.as_bytes(), "test.ll").unwrap();
    module.verify().unwrap();
    let program = Program::of(&module, options).unwrap();
    let fact = |(function, name): &(&str, &str)| {
        let found = program.functions().iter().find(|f| f.function().name() == *function).unwrap();
        let gated = found.analysis().gated();
        let node = (0..gated.count() as u32).map(transform::spmd::ValueId).find(|&n| gated.name(n) == *name);
        let node = node.unwrap_or_else(|| panic!("{function} has no {name}"));
        found.analysis().text_of(&found.analysis().fact(node))
    };
    asked.iter().map(fact).collect()
}

const CREATE: &str = "declare i32 @pthread_create(ptr, ptr, ptr, ptr)\n";

#[test]
fn the_argument_of_a_start_routine_is_the_counter_of_the_loop_that_starts_threads() {
    let text = format!(
        "{CREATE}
@table = global [64 x [24 x i8]] zeroinitializer
define internal ptr @by_value(ptr %a) {{ ret ptr %a }}
define internal ptr @by_pointer(ptr %a) {{ ret ptr %a }}
define i32 @main() {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %other = phi i64 [ 7, %entry ], [ %more, %loop ]
  %p = inttoptr i64 %i to ptr
  %q = getelementptr [24 x i8], ptr @table, i64 %i
  %1 = call i32 @pthread_create(ptr null, ptr null, ptr @by_value, ptr %p)
  %2 = call i32 @pthread_create(ptr null, ptr null, ptr @by_pointer, ptr %q)
  %next = add i64 %i, 1
  %more = mul i64 %other, 3
  %c = icmp ult i64 %next, 8
  br i1 %c, label %loop, label %out
out:
  ret i32 0
}}"
    );
    let asked = [("by_value", "%a"), ("by_pointer", "%a"), ("main", "%other")];
    assert_eq!(
        facts(&text, &Options::default(), &asked),
        ["tid", "24·tid + %a".replace("%a", "base(%a)").as_str(), "⊥"]
    );
}

#[test]
fn what_a_start_routine_passes_on_is_its_number_wherever_the_functions_stand() {
    let kernel = "define internal void @kernel(i32 %lane) { ret void }";
    let start = "define internal ptr @start(ptr %a) {
  %wide = ptrtoint ptr %a to i64
  %number = trunc i64 %wide to i32
  call void @kernel(i32 %number)
  ret ptr null
}";
    let main = "define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = inttoptr i64 %i to ptr
  %1 = call i32 @pthread_create(ptr null, ptr null, ptr @start, ptr %p)
  %next = add i64 %i, 1
  %c = icmp ult i64 %next, 8
  br i1 %c, label %loop, label %out
out:
  ret i32 0
}";
    for order in [[kernel, start, main], [main, start, kernel], [start, main, kernel]] {
        let text = format!("{CREATE}{}", order.join("\n"));
        assert_eq!(facts(&text, &Options::default(), &[("kernel", "%lane")]), ["tid"]);
    }
}

#[test]
fn threads_that_are_started_one_by_one_are_a_progression() {
    let starts = |numbers: [&str; 3]| {
        let calls: String = numbers
            .iter()
            .map(|n| {
                format!("  call i32 @pthread_create(ptr null, ptr null, ptr @work, ptr inttoptr (i64 {n} to ptr))\n")
            })
            .collect();
        let text = format!(
            "{CREATE}define internal ptr @work(ptr %a) {{ ret ptr %a }}\ndefine i32 @main() {{\n{calls}  ret i32 0\n}}"
        );
        facts(&text, &Options::default(), &[("work", "%a")]).remove(0)
    };
    assert_eq!(starts(["1", "2", "3"]), "tid");
    assert_eq!(starts(["10", "14", "18"]), "4·tid + 10");
    assert_eq!(starts(["1", "2", "4"]), "⊥");
}

#[test]
fn a_region_gets_the_same_arguments_for_all_threads_and_asks_for_its_number() {
    let text = "declare void @__kmpc_fork_call(ptr, i32, ptr, ...)
declare i32 @omp_get_thread_num()
define internal void @region(ptr %gtid, ptr %btid, ptr %data, i64 %n) {
  %id = call i32 @omp_get_thread_num()
  %wide = sext i32 %id to i64
  %start = mul i64 %wide, %n
  %p = getelementptr float, ptr %data, i64 %start
  store float 0.0, ptr %p
  ret void
}
define void @outer(ptr %data, i64 %n) {
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr null, i32 2, ptr @region, ptr %data, i64 %n)
  ret void
}";
    let asked = [("region", "%gtid"), ("region", "%data"), ("region", "%start"), ("region", "%p")];
    assert_eq!(facts(text, &Options::default(), &asked), ["⊥", "%data", "%n·tid", "4·%n·tid + %data"]);
}

#[test]
fn work_items_have_numbers_by_dimension() {
    let text = "target triple = \"amdgcn-amd-amdhsa\"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(i32 %width) {
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  %y = call i32 @llvm.amdgcn.workitem.id.y()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %row = mul i32 %y, %width
  %cell = add i32 %row, %x
  %all = add i32 %cell, %g
  ret void
}";
    let asked = [("k", "%cell"), ("k", "%all")];
    assert_eq!(facts(text, &Options::default(), &asked), ["tid + %width·tid.y", "tid + %width·tid.y + %g"]);
}

#[test]
fn nvidias_numbers_are_registers_and_its_memory_has_spaces() {
    let text = "target triple = \"nvptx64-nvidia-cuda\"
@tile = internal addrspace(3) global [64 x i32] undef
@table = internal addrspace(4) constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
define ptx_kernel void @k(i32 %n, ptr addrspace(1) %data) {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %first = mul i32 %block, %size
  %global = add i32 %first, %x
  %both = add i32 %x, %y
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %other = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %n, i32 1, i32 31)
  %own = alloca [4 x i32], addrspace(5)
  %place = getelementptr i32, ptr addrspace(5) %own, i32 %n
  %private = load i32, ptr addrspace(5) %place
  %wide = sext i32 %n to i64
  %at = getelementptr i32, ptr addrspace(3) @tile, i64 %wide
  %shared = load i32, ptr addrspace(3) %at
  %constant = getelementptr i32, ptr addrspace(4) @table, i64 %wide
  %told = load i32, ptr addrspace(4) %constant
  %there = getelementptr i32, ptr addrspace(1) %data, i64 %wide
  %loaded = load i32, ptr addrspace(1) %there
  ret void
}";
    let asked = |name: &str| facts(text, &Options::default(), &[("k", name)]).remove(0);
    assert_eq!(asked("%first"), "%first");
    assert_eq!(asked("%global"), "tid + %first");
    assert_eq!(asked("%both"), "tid + tid.y");
    for divergent in ["%lane", "%other", "%private"] {
        assert_eq!(asked(divergent), "⊥", "{divergent}");
    }
    // Lanes load together.
    for uniform in ["%shared", "%told", "%loaded", "%n"] {
        assert_eq!(asked(uniform), uniform);
    }
}

#[test]
fn a_named_argument_is_a_thread_number() {
    let text = "define void @work(i32 %n, i32 %id) {
  %x = shl i32 %id, 3
  ret void
}";
    let options = Options { thread_numbers: vec![("work".to_owned(), 1)], ..Options::default() };
    assert_eq!(facts(text, &options, &[("work", "%x"), ("work", "%n")]), ["8·tid", "⊥"]);
    let module = Module::parse(text.as_bytes(), "test.ll").unwrap();
    for (name, says) in [("none", "no function of this name"), ("work", "2 arguments")] {
        let options = Options { thread_numbers: vec![(name.to_owned(), 2)], ..Options::default() };
        let Err(error) = Program::of(&module, &options) else { panic!("{name}:2 is not there") };
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn calls_give_what_the_callee_makes_of_its_arguments() {
    let text = "
define internal i32 @twice(i32 %a) {
  %r = shl i32 %a, 1
  ret i32 %r
}
define internal i32 @larger(i32 %a) {
  %c = icmp sgt i32 %a, 5
  %r = select i1 %c, i32 %a, i32 9
  ret i32 %r
}
define internal i32 @even(i32 %n) {
  %c = icmp eq i32 %n, 0
  br i1 %c, label %yes, label %no
yes:
  ret i32 1
no:
  %m = sub i32 %n, 1
  %r = call i32 @odd(i32 %m)
  ret i32 %r
}
define internal i32 @odd(i32 %n) {
  %c = icmp eq i32 %n, 0
  br i1 %c, label %yes, label %no
yes:
  ret i32 0
no:
  %m = sub i32 %n, 1
  %r = call i32 @even(i32 %m)
  ret i32 %r
}
define void @work(i32 %id) {
  %a = call i32 @twice(i32 %id)
  %b = call i32 @larger(i32 %id)
  %c = call i32 @larger(i32 3)
  %d = call i32 @even(i32 4)
  %e = call i32 @even(i32 %id)
  %f = call i32 @unknown(i32 1)
  ret void
}
declare i32 @unknown(i32)";
    let options = Options { thread_numbers: vec![("work".to_owned(), 0)], ..Options::default() };
    let asked = ["%a", "%b", "%c", "%d", "%e", "%f"].map(|name| ("work", name));
    assert_eq!(facts(text, &options, &asked), ["2·tid", "⊥", "%c", "%d", "⊥", "⊥"]);
    // What call sites pass is met in the parameters.
    let asked = [("twice", "%a"), ("larger", "%a"), ("even", "%n")];
    // Threads that come from two call sites are not together: at each of them the argument is an equation of its own.
    let expected = ["tid", "stride(%a)·tid + base(%a)", "stride(%n)·tid + base(%n)"];
    assert_eq!(facts(text, &options, &asked), expected);
}

#[test]
fn affine_facts_survive_extensions_only_where_they_hold_in_the_integers() {
    let text = "define void @work(i32 %id, i32 %n) {
  %four = shl i32 %id, 2
  %far = shl i32 %id, 12
  %nofar = shl nsw i32 %id, 12
  %a = sext i32 %four to i64
  %b = sext i32 %far to i64
  %c = sext i32 %nofar to i64
  %d = zext i32 %four to i64
  %minus = sub i32 5, %id
  %e = zext i32 %minus to i64
  %f = sext i32 %minus to i64
  %g = trunc i64 %f to i8
  %h = sext i8 %g to i32
  ret void
}";
    let options = Options { thread_numbers: vec![("work".to_owned(), 0)], ..Options::default() };
    let asked = ["%a", "%b", "%c", "%d", "%e", "%f", "%g", "%h"].map(|name| ("work", name));
    let expected = ["4·tid", "⊥", "4096·tid", "4·tid", "⊥", "-1·tid + 5", "-1·tid + 5", "⊥"];
    assert_eq!(facts(text, &options, &asked), expected);
}

#[test]
fn shifts_and_masks_undo_what_made_an_index_of_a_number() {
    let text = "target triple = \"amdgcn-amd-amdhsa\"
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @work(i64 %base, i32 %row) {
  %narrow = call i32 @llvm.amdgcn.workitem.id.x()
  %id = zext i32 %narrow to i64
  %up = shl i64 %id, 32
  %int = ashr exact i64 %up, 32
  %both = add i64 %base, %id
  %far = shl i64 %both, 32
  %index = ashr exact i64 %far, 32
  %low = and i64 %id, 4294967295
  %least = and i64 %both, 4294967295
  %four = mul i64 %id, 12
  %third = udiv i64 %four, 3
  %more = add i64 %four, 7
  %rest = sdiv i64 %more, 3
  %below = lshr i64 %more, 2
  %sum = add i32 %row, %narrow
  %wide = sext i32 %sum to i64
  %safe = add nsw i32 %row, %narrow
  %known = sext i32 %safe to i64
  ret void
}";
    let names = ["%int", "%index", "%low", "%least", "%third", "%rest", "%below", "%wide", "%known"];
    let asked = names.map(|name| ("work", name));
    let of = |no_wrap| facts(text, &Options { no_wrap, ..Options::default() }, &asked);
    assert_eq!(of(false), ["tid", "⊥", "tid", "⊥", "4·tid", "⊥", "3·tid + 1", "⊥", "tid + %row"]);
    // As wide as they need to be, all of them are what they look like.
    let all = ["tid", "tid + %base", "tid", "tid + %base", "4·tid", "⊥", "3·tid + 1", "tid + %row", "tid + %row"];
    assert_eq!(of(true), all);
}

#[test]
fn threads_that_enter_a_loop_anew_meet_those_that_went_on_at_its_header() {
    // Both sides of the inner branch lead to the inner header: the counter is 0 there for some, and more for others.
    let text = "define void @work(i32 %id, i32 %n) {
entry:
  br label %outer
outer:
  %k = phi i32 [ 0, %entry ], [ %k.next, %again ]
  %k.next = add i32 %k, 1
  br label %inner
inner:
  %i = phi i32 [ 0, %outer ], [ %i.next, %turn ]
  %done = icmp ugt i32 %i, %n
  br i1 %done, label %out, label %body
body:
  %mine = icmp ult i32 %i, %id
  br i1 %mine, label %turn, label %again
turn:
  %i.next = add i32 %i, 1
  br label %inner
again:
  br label %outer
out:
  ret void
}";
    let options = Options { thread_numbers: vec![("work".to_owned(), 0)], ..Options::default() };
    assert_eq!(facts(text, &options, &[("work", "%i")]), ["⊥"]);
}

#[test]
fn loads_are_uniform_where_lanes_load_together_or_nobody_writes() {
    let text = "@table = constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
@shared = global i32 0
define void @work(i32 %id) {
  %a = load i32, ptr @table
  %b = load i32, ptr @shared
  %p = getelementptr i32, ptr @table, i32 %id
  %c = load i32, ptr %p
  %d = atomicrmw add ptr @shared, i32 1 seq_cst
  ret void
}";
    let asked = ["%a", "%b", "%c", "%d"].map(|name| ("work", name));
    let of = |mode| {
        let options = Options { mode, thread_numbers: vec![("work".to_owned(), 0)], ..Options::default() };
        facts(text, &options, &asked)
    };
    assert_eq!(of(None), ["%a", "⊥", "⊥", "⊥"]);
    assert_eq!(of(Some(Mode::Simt)), ["%a", "%b", "⊥", "⊥"]);
}

#[test]
fn a_vector_that_is_undefined_in_part_is_as_divergent_as_the_rest() {
    let text = "define void @work(i32 %id) {
  %a = insertelement <4 x i32> poison, i32 %id, i32 0
  %b = extractelement <4 x i32> %a, i32 0
  ret void
}";
    let options = Options { thread_numbers: vec![("work".to_owned(), 0)], ..Options::default() };
    assert_eq!(facts(text, &options, &[("work", "%a"), ("work", "%b")]), ["⊥", "⊥"]);
}

#[test]
fn lockstep_tid_marks_a_number_and_costs_no_instruction() {
    let folder = std::env::temp_dir().join(format!("lockstep-tid-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("marked.c");
    std::fs::write(
        &source,
        "#include <lockstep.h>\nlong next(void);\nlong marked(void) { return 4 * lockstep_tid(next()); }\n\
         long plain(void) { return 4 * next(); }\n",
    )
    .unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../include");
    let module = transform::wrapper::to_module(&source, &[include.into()]).unwrap();
    let program = Program::of(&module, &Options::default()).unwrap();
    assert_eq!(program.machine(), Machine::Threads);
    let result = |name: &str| {
        let facts = program.functions().iter().find(|f| f.function().name() == name).unwrap();
        let value = facts.function().blocks()[0].terminator().operand(0);
        facts.class(value)
    };
    assert_eq!((result("marked"), result("plain")), (Some(Class::Affine), Some(Class::Divergent)));
    let assembly = folder.join("marked.s");
    let status = std::process::Command::new("clang-19")
        .args(["-O2", "-S", include, "-o"])
        .args([&assembly, &source])
        .status()
        .unwrap();
    assert!(status.success());
    let text = std::fs::read_to_string(&assembly).unwrap();
    let instructions = |name: &str| {
        let body = text.split(&format!("\n{name}:")).nth(1).unwrap().split(".Lfunc_end").next().unwrap();
        let is_one = |line: &&str| line.starts_with('\t') && !line.trim_start().starts_with(['.', '#']);
        body.lines().filter(is_one).count()
    };
    // A multiplication by four may be done in two ways, both of as many instructions.
    assert_eq!(instructions("marked"), instructions("plain"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_other_modules_call_may_be_given_anything() {
    let text = |linkage: &str| {
        format!(
            "{CREATE}define internal ptr @work(ptr %a) {{
  %n = call i32 @step(i32 4)
  ret ptr %a
}}
define {linkage} i32 @step(i32 %by) {{
  ret i32 %by
}}
define i32 @main() {{
  call i32 @pthread_create(ptr null, ptr null, ptr @work, ptr inttoptr (i64 1 to ptr))
  call i32 @pthread_create(ptr null, ptr null, ptr @work, ptr inttoptr (i64 2 to ptr))
  ret i32 0
}}"
        )
    };
    let linked = Options { linked_with_others: true, ..Options::default() };
    let of = |linkage: &str, options: &Options| facts(&text(linkage), options, &[("step", "%by"), ("work", "%n")]);
    assert_eq!(of("dso_local", &Options::default()), ["4", "4"]);
    assert_eq!(of("dso_local", &linked), ["⊥", "4"]);
    assert_eq!(of("internal", &linked), ["4", "4"]);
    // What the linker takes in its place may give anything.
    assert_eq!(of("weak", &Options::default())[1], "⊥");
}
