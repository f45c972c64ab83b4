//! Branches at which lanes stay together are left where a module says who its threads are, and changed where it does
//! not.

use transform::llvm::Module;
use transform::{Pipeline, Reason};

/// Threads run `@worker` with their number; `@n` is the same for all.
const THREADS: &str = "
@n = internal global i32 0
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @rand()
define i32 @main() {
  %r = call i32 @rand()
  store i32 %r, ptr @n
  %1 = call i32 @pthread_create(ptr null, ptr null, ptr @worker, ptr null)
  %2 = call i32 @pthread_create(ptr null, ptr null, ptr @worker, ptr inttoptr (i64 1 to ptr))
  ret i32 0
}
";

/// A start routine that branches by `%c` and does about the same on both sides.
fn worker(condition: &str, arms: [&str; 2]) -> String {
    format!(
        "@out = internal global [64 x i32] zeroinitializer
declare i32 @work(i32)
define internal ptr @worker(ptr %arg) {{
entry:
  %tid = ptrtoint ptr %arg to i64
  %place = getelementptr i32, ptr @out, i64 %tid
  %a = load i32, ptr %place
  {condition}
  br i1 %c, label %one, label %other
one:
  {}
  br label %join
other:
  {}
  br label %join
join:
  %v = phi i32 [ %x, %one ], [ %y, %other ]
  store i32 %v, ptr %place
  ret ptr null
}}
",
        arms[0], arms[1]
    )
}

const UNIFORM: &str = "%k = load i32, ptr @n\n  %c = icmp sgt i32 %k, 3";
const DIVERGENT: &str = "%c = icmp ugt i64 %tid, 3";

/// Whether a pass changes the worker, and whether it says that lanes agree.
fn changed(pass: &str, program: &str) -> (bool, bool) {
    let mut module = Module::parse(program.as_bytes(), "test.ll").unwrap();
    module.verify().unwrap();
    let before = module.to_text();
    let remarks = Pipeline::parse(pass).unwrap().run(&mut module).unwrap();
    (module.to_text() != before, remarks.iter().any(|remark| matches!(remark.reason, Reason::LanesAgree)))
}

fn left_where_lanes_agree(pass: &str, arms: [&str; 2]) {
    let uniform = format!("{THREADS}{}", worker(UNIFORM, arms));
    let divergent = format!("{THREADS}{}", worker(DIVERGENT, arms));
    assert_eq!(changed(pass, &uniform), (false, true), "{pass}: {uniform}");
    assert_eq!(changed(&format!("{pass}:only-divergent=no"), &uniform), (true, false), "{pass}");
    assert_eq!(changed(pass, &divergent), (true, false), "{pass}: {divergent}");
    // No warp of 32 parts at the one, each does at the other.
    let by = |bound| format!("%r = srem i64 %tid, 64\n  %c = icmp slt i64 %r, {bound}");
    assert_eq!(changed(pass, &format!("{THREADS}{}", worker(&by(32), arms))), (false, true), "{pass}");
    assert_eq!(changed(pass, &format!("{THREADS}{}", worker(&by(24), arms))), (true, false), "{pass}");
    // Who starts the threads is not known.
    let unknown = format!("@n = internal global i32 0\ndeclare i32 @rand()\n{}", worker(UNIFORM, arms))
        .replace("internal ptr @w", "ptr @w");
    assert_eq!(changed(pass, &unknown), (true, false), "{pass}: {unknown}");
}

#[test]
fn calls_are_left() {
    let arms =
        ["%s = add i32 %a, 1\n  %x = call i32 @work(i32 %s)", "%t = mul i32 %a, 5\n  %y = call i32 @work(i32 %t)"];
    left_where_lanes_agree("fcs", arms);
}

#[test]
fn tails_are_left() {
    let shared =
        "store i32 %a, ptr %place\n  %{}1 = sdiv i32 %a, 3\n  %{}2 = mul i32 %{}1, %{}1\n  %{} = xor i32 %{}2, 5";
    let one = format!("call i32 @rand()\n  {}", shared.replace("{}", "x"));
    left_where_lanes_agree("tail-merge", [&one, &shared.replace("{}", "y")]);
}

/// Work on `%a` that gives this value.
fn arm(v: &str, by: u32) -> String {
    format!(
        "%{v}1 = sdiv i32 %a, {by}\n  %{v}2 = mul i32 %{v}1, %{v}1\n  %{v}3 = xor i32 %{v}2, %a
  %{v}4 = sdiv i32 %{v}3, 77\n  %{v} = sub i32 %{v}4, %{v}2"
    )
}

#[test]
fn arms_are_left() {
    left_where_lanes_agree("branch-fusion", [&arm("x", 3), &arm("y", 9)]);
}

/// The branch above both arms is uniform, but lanes part below it.
#[test]
fn a_uniform_branch_above_a_divergent_one_keeps_nobody_together() {
    let inner = "
  %k = load i32, ptr @n
  %u = icmp sgt i32 %k, 3
  br i1 %u, label %below, label %one
below:
  %c = icmp ugt i64 %tid, 3";
    let shared =
        "store i32 %a, ptr %place\n  %{}1 = sdiv i32 %a, 3\n  %{}2 = mul i32 %{}1, %{}1\n  %{} = xor i32 %{}2, 5";
    let arms = [shared.replace("{}", "x"), shared.replace("{}", "y")];
    let program = format!("{THREADS}{}", worker(inner, [&arms[0], &arms[1]]));
    assert_eq!(changed("tail-merge", &program), (true, false));
}

/// What threads pass on is looked at where all calls are known.
#[test]
fn warps_agree_about_what_callers_pass() {
    let program = |linkage: &str, pass: u32| {
        format!(
            "{THREADS}
declare i32 @work(i32)
define internal ptr @worker(ptr %arg) {{
  %tid = ptrtoint ptr %arg to i64
  %half = urem i64 %tid, {pass}
  %t = trunc i64 %half to i32
  call void @kernel(i32 %t)
  ret ptr null
}}
define {linkage} void @kernel(i32 %t) noinline {{
  %c = icmp ult i32 %t, 32
  br i1 %c, label %one, label %other
one:
  %s = add i32 %t, 1
  %x = call i32 @work(i32 %s)
  br label %join
other:
  %m = mul i32 %t, 5
  %y = call i32 @work(i32 %m)
  br label %join
join:
  ret void
}}
"
        )
    };
    assert_eq!(changed("fcs", &program("internal", 64)), (false, true));
    assert_eq!(changed("fcs", &program("internal", 48)), (true, false));
    assert_eq!(changed("fcs", &program("", 64)), (true, false));
}

/// Warps are as wide as the machine's, and of threads in a row only where their groups have one dimension.
#[test]
fn warps_of_gpus_agree_where_a_group_is_a_row() {
    const KERNEL: &str = "
define KIND void @kernel(ptr addrspace(1) %out) {
  %t = call i32 @NUMBER()
  SECOND
  %place = getelementptr i32, ptr addrspace(1) %out, i32 %t
  %a = load i32, ptr addrspace(1) %place
  %c = icmp ult i32 %t, BOUND
  br i1 %c, label %one, label %other
one:
  ONE
  br label %join
other:
  OTHER
  br label %join
join:
  %v = phi i32 [ %x, %one ], [ %y, %other ]
  store i32 %v, ptr addrspace(1) %place
  ret void
}
declare i32 @NUMBER()
";
    let kernel = KERNEL.replace("ONE", &arm("x", 3)).replace("OTHER", &arm("y", 9));
    let nvidia = |bound: &str, second: &str| {
        let text = kernel.replace("KIND", "ptx_kernel").replace("NUMBER", "llvm.nvvm.read.ptx.sreg.tid.x");
        let text = format!(
            "target triple = \"nvptx64-nvidia-cuda\"\n{text}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
!nvvm.annotations = !{{!0}}
!0 = !{{ptr @kernel, !\"kernel\", i32 1}}
"
        );
        text.replace("SECOND", second).replace("BOUND", bound)
    };
    let amd = |bound: &str| {
        let text = kernel.replace("KIND", "amdgpu_kernel").replace("NUMBER", "llvm.amdgcn.workitem.id.x");
        format!("target triple = \"amdgcn-amd-amdhsa\"\n{text}").replace("SECOND", "").replace("BOUND", bound)
    };
    let pass = "branch-fusion";
    assert_eq!(changed(pass, &nvidia("32", "")), (false, true));
    assert_eq!(changed(pass, &nvidia("33", "")), (true, false));
    assert_eq!(changed(pass, &nvidia("32", "%y.t = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()")), (true, false));
    assert_eq!(changed(pass, &amd("32")), (true, false));
    assert_eq!(changed(pass, &amd("64")), (false, true));
}
