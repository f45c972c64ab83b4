//! Values, operands and calls that LLVM treats apart: a pass leaves the value or the function, never the whole file. It
//! has more than 500 lines, since they are a list of IR that is read as a whole.
//!
//! Each function is IR of one such kind, in shapes that each pass looks at: on both sides of a branch, past a call,
//! through a loop with several ways in, in the cases of a switch. Each pass, forced, must make well-formed IR of it,
//! and change another function of the same module.

use std::collections::BTreeSet;

use transform::llvm::Module;
use transform::{Pass, Pipeline, REGISTRY, Reason};

const DECLARATIONS: &str = "target triple = \"x86_64-pc-linux-gnu\"
@g = external global i64
@tls = external thread_local global i64
declare i64 @f(i64)
declare i32 @__gxx_personality_v0(...)
declare i32 @__C_specific_handler(...)
declare swiftcc void @swift(ptr swiftself, ptr swifterror)
declare void @large(ptr byval([4 x i64]))
declare void @filled(ptr sret([4 x i64]))
declare void @inside(ptr inalloca([4 x i64]))
declare void @before(ptr preallocated([4 x i64]))
declare void @nested(ptr nest, i64)
declare i64 @llvm.read_register.i64(metadata)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)
declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)
declare ptr @llvm.threadlocal.address.p0(ptr)
declare token @llvm.call.preallocated.setup(i32)
declare ptr @llvm.call.preallocated.arg(token, i32)
declare x86_amx @llvm.x86.tilezero.internal(i16, i16)
declare x86_amx @llvm.x86.tdpbssd.internal(i16, i16, i16, x86_amx, x86_amx, x86_amx)
declare void @llvm.x86.tilestored64.internal(i16, i16, ptr, i64, x86_amx)
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
declare void @llvm.va_start.p0(ptr)
declare void @llvm.va_end.p0(ptr)
declare void @llvm.lifetime.start.p0(i64 immarg, ptr)
declare void @llvm.lifetime.end.p0(i64 immarg, ptr)
declare ptr @llvm.returnaddress(i32 immarg)
declare i1 @llvm.is.constant.i64(i64)
declare void @llvm.assume(i1)
declare i64 @llvm.objectsize.i64.p0(ptr, i1 immarg, i1 immarg, i1 immarg)
declare i32 @llvm.eh.typeid.for.p0(ptr)
declare { i64, i1 } @llvm.uadd.with.overflow.i64(i64, i64)
declare <vscale x 2 x i64> @scaled(<vscale x 2 x i64>)
declare i1 @llvm.type.test(ptr, metadata)
declare void @llvm.localescape(...)
declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare token @llvm.experimental.convergence.entry() convergent
declare void @lanes() convergent
";

/// What is kept of a function that has nothing odd, so that a file that is refused as a whole can be told.
const PLAIN: &str = "define i64 @plain(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) {
entry:
  br i1 %c, label %then, label %else
then:
  %t = call i64 @f(i64 %a)
  %tt = mul i64 %t, %k
  br i1 %d, label %join, label %more
more:
  %o = phi i64 [ %tt, %then ], [ %k, %else ]
  store i64 %o, ptr @g
  store i64 %b, ptr @g
  br label %join
else:
  %e = call i64 @f(i64 %b)
  %ee = mul i64 %e, %k
  br i1 %d, label %more2, label %more
more2:
  store i64 %ee, ptr @g
  store i64 %b, ptr @g
  br label %join
join:
  %r = phi i64 [ %tt, %then ], [ %a, %more ], [ %ee, %more2 ]
  %s = xor i64 %r, %a
  %u = add i64 %s, %b
  %v = mul i64 %u, %k
  ret i64 %v
}
";

/// A name, what follows the parameters, what all paths do first, and what two sides of a branch do, where `X` is the
/// side's number; what stands before is the declaration of the function up to its parameters.
struct Odd {
    what: &'static str,
    head: &'static str,
    first: &'static str,
    side: &'static str,
}

const fn odd(what: &'static str, head: &'static str, first: &'static str, side: &'static str) -> Odd {
    Odd { what, head, first, side }
}

const HEAD: &str = "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) {";

const ODD: &[Odd] = &[
    odd(
        "an error result of Swift's",
        "define swiftcc i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k, ptr swiftself %s, ptr swifterror %e) {",
        "  %own = alloca swifterror ptr\n  store ptr null, ptr %own\n",
        "  call swiftcc void @swift(ptr swiftself %s, ptr swifterror %PICK)\n  %x.X = load ptr, ptr %PICK\n  store ptr %x.X, ptr @g\n",
    ),
    odd(
        "an argument in memory",
        HEAD,
        "  %m = alloca [4 x i64]\n  %n = alloca [4 x i64]\n",
        "  call void @large(ptr byval([4 x i64]) %MN)\n",
    ),
    odd(
        "a result in memory",
        HEAD,
        "  %m = alloca [4 x i64]\n  %n = alloca [4 x i64]\n",
        "  call void @filled(ptr sret([4 x i64]) %MN)\n",
    ),
    odd(
        "an argument that its caller lays out",
        HEAD,
        "  %saved = call ptr @llvm.stacksave.p0()\n  %m = alloca inalloca [4 x i64]\n",
        "  store i64 %a, ptr %m\n  call void @inside(ptr inalloca([4 x i64]) %m)\n",
    ),
    odd(
        "a token of a call's preparation",
        HEAD,
        "  %t = call token @llvm.call.preallocated.setup(i32 1)\n  %p = call ptr @llvm.call.preallocated.arg(token %t, i32 0) preallocated([4 x i64])\n  store i64 %a, ptr %p\n  call void @before(ptr preallocated([4 x i64]) %p) [ \"preallocated\"(token %t) ]\n",
        "  %y.X = call i64 @f(i64 X)\n  store i64 %y.X, ptr @g\n",
    ),
    odd(
        "tiles of a matrix unit",
        HEAD,
        "  %z = call x86_amx @llvm.x86.tilezero.internal(i16 8, i16 8)\n  %w = call x86_amx @llvm.x86.tilezero.internal(i16 8, i16 8)\n",
        "  %y.X = call x86_amx @llvm.x86.tdpbssd.internal(i16 8, i16 8, i16 8, x86_amx %z, x86_amx %w, x86_amx %w)\n  call void @llvm.x86.tilestored64.internal(i16 8, i16 8, ptr @g, i64 64, x86_amx %y.X)\n",
    ),
    odd(
        "vectors without a size",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k, <vscale x 2 x i64> %v) {",
        "  %o = add <vscale x 2 x i64> %v, %v\n",
        "  %y.X = call <vscale x 2 x i64> @scaled(<vscale x 2 x i64> %o)\n  store <vscale x 2 x i64> %y.X, ptr @g\n",
    ),
    odd(
        "operands that must be constants",
        HEAD,
        "",
        "  call void @llvm.prefetch.p0(ptr @g, i32 0, i32 1, i32 1)\n  call void @llvm.memcpy.p0.p0.i64(ptr @g, ptr @tls, i64 8, i1 false)\n",
    ),
    odd(
        "a variable of the thread",
        HEAD,
        "",
        "  %y.X = call ptr @llvm.threadlocal.address.p0(ptr @tls)\n  store i64 X, ptr %y.X\n",
    ),
    odd(
        "a register by its name",
        HEAD,
        "",
        "  %y.X = call i64 @llvm.read_register.i64(metadata !0)\n  store i64 %y.X, ptr @g\n",
    ),
    odd(
        "a room that grows",
        HEAD,
        "",
        "  %y.X = alloca i64, i64 %k\n  store i64 X, ptr %y.X\n  %z.X = call i64 @f(i64 X)\n  store i64 %z.X, ptr %y.X\n",
    ),
    odd(
        "marks of a variable's life",
        HEAD,
        "  %m = alloca i64\n  %n = alloca i64\n",
        "  call void @llvm.lifetime.start.p0(i64 8, ptr %MN)\n  store i64 X, ptr %MN\n  %y.X = call i64 @f(i64 X)\n  call void @llvm.lifetime.end.p0(i64 8, ptr %MN)\n",
    ),
    odd(
        "questions about constants",
        HEAD,
        "",
        "  %y.X = call i1 @llvm.is.constant.i64(i64 %a)\n  %z.X = call i64 @llvm.objectsize.i64.p0(ptr @g, i1 false, i1 true, i1 false)\n  call void @llvm.assume(i1 true)\n  store i64 %z.X, ptr @g\n",
    ),
    odd(
        "structures",
        HEAD,
        "  %p = call { i64, i1 } @llvm.uadd.with.overflow.i64(i64 %a, i64 %b)\n",
        "  %y.X = call { i64, i1 } @llvm.uadd.with.overflow.i64(i64 %a, i64 X)\n  %z.X = extractvalue { i64, i1 } %y.X, 0\n  %w.X = extractvalue { i64, i1 } %p, 0\n  %u.X = call i64 @f(i64 %w.X)\n  store i64 %z.X, ptr @g\n",
    ),
    odd(
        "metadata as an operand",
        HEAD,
        "",
        "  %y.X = call i1 @llvm.type.test(ptr @g, metadata !1)\n  call void @llvm.assume(i1 %y.X)\n  store i64 X, ptr @g\n",
    ),
    odd(
        "calls with bundles",
        HEAD,
        "",
        "  %y.X = call i64 @f(i64 X) [ \"deopt\"(i64 %a) ]\n  store i64 %y.X, ptr @g\n",
    ),
    odd(
        "assembly",
        HEAD,
        "",
        "  %y.X = call i64 asm sideeffect \"mov $1, $0\", \"=r,r\"(i64 %a)\n  store i64 %y.X, ptr @g\n",
    ),
    odd(
        "assembly with two results and a constant",
        HEAD,
        "",
        "  %y.X = call { i64, i64 } asm \"nop\", \"=r,=r,i,r\"(i64 X, i64 %a)\n  %z.X = extractvalue { i64, i64 } %y.X, 1\n  store i64 %z.X, ptr @g\n",
    ),
    odd(
        "atomic and volatile accesses",
        HEAD,
        "",
        "  %y.X = atomicrmw add ptr @g, i64 X seq_cst\n  %z.X = cmpxchg ptr @g, i64 %y.X, i64 %a acq_rel monotonic\n  %w.X = load volatile i64, ptr @g\n  fence seq_cst\n  store atomic i64 %w.X, ptr @g release, align 8\n",
    ),
    odd(
        "numbers of odd widths",
        HEAD,
        "  %w = zext i64 %a to i129\n  %h = trunc i64 %a to i7\n",
        "  %y.X = mul i129 %w, %w\n  %z.X = add i7 %h, X\n  %v.X = trunc i129 %y.X to i64\n  %u.X = zext i7 %z.X to i64\n  %t.X = call i64 @f(i64 %v.X)\n  %s.X = add i64 %u.X, %t.X\n  store i64 %s.X, ptr @g\n",
    ),
    odd(
        "addresses of other spaces, vectors of addresses",
        HEAD,
        "  %q = inttoptr i64 %a to ptr addrspace(256)\n  %v = insertelement <2 x ptr> undef, ptr @g, i64 0\n",
        "  %y.X = load i64, ptr addrspace(256) %q\n  %z.X = extractelement <2 x ptr> %v, i64 0\n  %w.X = call i64 @f(i64 %y.X)\n  store i64 %w.X, ptr %z.X\n",
    ),
    odd(
        "long floating-point numbers",
        HEAD,
        "  %w = uitofp i64 %a to x86_fp80\n  %h = uitofp i64 %b to bfloat\n",
        "  %y.X = fmul x86_fp80 %w, %w\n  %z.X = fptoui x86_fp80 %y.X to i64\n  %t.X = call i64 @f(i64 %z.X)\n  store bfloat %h, ptr @g\n  store i64 %t.X, ptr @g\n",
    ),
    odd(
        "variable arguments",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k, ...) {",
        "  %l = alloca [24 x i8]\n  call void @llvm.va_start.p0(ptr %l)\n",
        "  %y.X = va_arg ptr %l, i64\n  %z.X = call i64 @f(i64 %y.X)\n  store i64 %z.X, ptr @g\n",
    ),
    odd(
        "a chain's address",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k, ptr nest %n) {",
        "",
        "  call void @nested(ptr nest %n, i64 X)\n",
    ),
    odd(
        "values that are escaped to handlers",
        HEAD,
        "  %m = alloca i64\n  call void (...) @llvm.localescape(ptr %m)\n",
        "  %y.X = call i64 @f(i64 X)\n  store i64 %y.X, ptr %m\n",
    ),
    odd(
        "convergence tokens",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) convergent {",
        "  %t = call token @llvm.experimental.convergence.entry()\n",
        "  call void @lanes() [ \"convergencectrl\"(token %t) ]\n  %y.X = call i64 @f(i64 X)\n  store i64 %y.X, ptr @g\n",
    ),
];

/// Functions whose control flow is odd, each as a whole.
const WHOLE: &[(&str, &str)] = &[
    (
        "an address to jump to among the spilled values",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) {
entry:
  %t = select i1 %c, ptr blockaddress(@odd, %one), ptr blockaddress(@odd, %two)
  %x = call i64 @f(i64 %a)
  %y = mul i64 %x, %k
  indirectbr ptr %t, [label %one, label %two]
one:
  %p = phi i64 [ %y, %entry ], [ %q, %two ]
  %u = call i64 @f(i64 %p)
  %v = xor i64 %u, %b
  %o = select i1 %d, ptr blockaddress(@odd, %two), ptr blockaddress(@odd, %out)
  indirectbr ptr %o, [label %two, label %out]
two:
  %q = phi i64 [ %y, %entry ], [ %v, %one ]
  %w = call i64 @f(i64 %q)
  %z = add i64 %w, %x
  br i1 %d, label %one, label %out
out:
  %r = phi i64 [ %v, %one ], [ %z, %two ]
  ret i64 %r
}",
    ),
    (
        "calls that must be jumps",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) {
entry:
  %x = call i64 @f(i64 %a)
  %y = call i64 @f(i64 %b)
  br i1 %c, label %then, label %else
then:
  %r = musttail call i64 @odd(i1 %d, i1 %c, i64 %x, i64 %y, i64 %k)
  ret i64 %r
else:
  %s = musttail call i64 @odd(i1 %d, i1 %d, i64 %y, i64 %x, i64 %k)
  ret i64 %s
}",
    ),
    (
        "assembly that jumps",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) {
entry:
  %x = call i64 @f(i64 %a)
  %t = callbr i64 asm \"test $1, $1; je ${2:l}\", \"=r,r,!i\"(i64 %x) to label %one [label %two]
one:
  %y = call i64 @f(i64 %t)
  br i1 %c, label %two, label %out
two:
  %p = phi i64 [ %x, %entry ], [ %y, %one ]
  %z = call i64 @f(i64 %p)
  br i1 %d, label %one2, label %out
one2:
  br label %out
out:
  %r = phi i64 [ %y, %one ], [ %z, %two ], [ %k, %one2 ]
  ret i64 %r
}",
    ),
    (
        "exceptions whose results are used",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) personality ptr @__gxx_personality_v0 {
entry:
  %x = invoke i64 @f(i64 %a) to label %one unwind label %pad
one:
  %y = invoke i64 @f(i64 %x) to label %join unwind label %pad
pad:
  %p = phi i64 [ %a, %entry ], [ %x, %one ]
  %l = landingpad { ptr, i32 } cleanup catch ptr @g filter [1 x ptr] [ptr @g]
  %i = extractvalue { ptr, i32 } %l, 1
  %id = call i32 @llvm.eh.typeid.for.p0(ptr @g)
  %is = icmp eq i32 %i, %id
  br i1 %is, label %join, label %on
on:
  %w = call i64 @f(i64 %p)
  br i1 %d, label %join, label %out
out:
  resume { ptr, i32 } %l
join:
  %r = phi i64 [ %y, %one ], [ %p, %pad ], [ %w, %on ]
  %s = mul i64 %r, %k
  %u = add i64 %s, %b
  ret i64 %u
}",
    ),
    (
        "handlers with frames of their own",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) personality ptr @__C_specific_handler {
entry:
  %x = invoke i64 @f(i64 %a) to label %one unwind label %dispatch
dispatch:
  %s = catchswitch within none [label %handler] unwind to caller
handler:
  %p = catchpad within %s [ptr null]
  %h = call i64 @f(i64 %b) [ \"funclet\"(token %p) ]
  catchret from %p to label %join
one:
  %y = invoke i64 @f(i64 %x) to label %join unwind label %clean
clean:
  %q = cleanuppad within none []
  %z = call i64 @f(i64 %k) [ \"funclet\"(token %q) ]
  cleanupret from %q unwind to caller
join:
  %r = phi i64 [ %y, %one ], [ %h, %handler ]
  %u = mul i64 %r, %k
  %v = add i64 %u, %b
  ret i64 %v
}",
    ),
    (
        "a switch over a wide number",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) {
entry:
  %w = zext i64 %a to i128
  switch i128 %w, label %out [ i128 1, label %one
    i128 18446744073709551617, label %two ]
one:
  %y = call i64 @f(i64 %b)
  br i1 %c, label %two, label %out
two:
  %z = call i64 @f(i64 %k)
  br label %out
out:
  %r = phi i64 [ %a, %entry ], [ %y, %one ], [ %z, %two ]
  ret i64 %r
}",
    ),
    (
        "blocks that nothing leads to",
        "define i64 @odd(i1 %c, i1 %d, i64 %a, i64 %b, i64 %k) {
entry:
  br i1 %c, label %one, label %two
lost:
  %y = call i64 @f(i64 %n)
  %n = add i64 %y, 1
  br i1 %d, label %lost, label %two
one:
  %z = call i64 @f(i64 %k)
  br i1 %d, label %two, label %three
two:
  %p = phi i64 [ %a, %entry ], [ %z, %one ], [ %n, %lost ]
  %x = call i64 @f(i64 %p)
  br label %three
three:
  %r = phi i64 [ %b, %one ], [ %x, %two ]
  ret i64 %r
}",
    ),
];

/// Functions with what is odd: past a branch's sides, in a region with two entries, in a switch.
fn functions(odd: &Odd) -> Vec<String> {
    let side = |number: usize| {
        let pick = if number % 2 == 1 { "e" } else { "own" };
        let of_memory = if number % 2 == 1 { "m" } else { "n" };
        odd.side
            .replace("PICK", pick)
            .replace("MN", of_memory)
            .replace(".X", &format!(".{number}"))
            .replace('X', &number.to_string())
    };
    let begin = format!("{}\nentry:\n{}", odd.head, odd.first);
    let diamond = format!(
        "{begin}  br i1 %c, label %then, label %else\nthen:\n{}  br label %join\nelse:\n{}  br label %join\njoin:\n  ret i64 %a\n}}\n",
        side(1),
        side(2)
    );
    let tangled = format!(
        "{begin}  br i1 %c, label %one, label %two\none:\n{}  br i1 %d, label %two, label %out\ntwo:\n{}  %again = icmp eq i64 %a, %b\n  br i1 %again, label %one, label %three\nthree:\n{}  br label %out\nout:\n{}  ret i64 %k\n}}\n",
        side(1),
        side(2),
        side(3),
        side(4)
    );
    let switch = format!(
        "{begin}  switch i64 %a, label %out [ i64 1, label %one\n i64 2, label %two\n i64 9, label %three ]\none:\n{}  br label %out\ntwo:\n{}  br label %three\nthree:\n{}  br label %out\nout:\n  ret i64 %b\n}}\n",
        side(1),
        side(2),
        side(3)
    );
    vec![diamond, tangled, switch]
}

/// A pass at its most eager.
fn forced(pass: &Pass) -> String {
    let settings: Vec<&str> = pass
        .parameters
        .iter()
        .filter_map(|parameter| match parameter.name {
            "threshold" => Some("threshold=-1000"),
            "only-divergent" => Some("only-divergent=no"),
            "registers" => Some("registers=2"),
            "merge-loops" => Some("merge-loops=yes"),
            "interleave" => Some("interleave=yes"),
            _ => None,
        })
        .collect();
    if settings.is_empty() { pass.name.to_owned() } else { format!("{}:{}", pass.name, settings.join(",")) }
}

#[test]
fn no_odd_value_has_a_whole_file_refused() {
    let of_values = ODD.iter().flat_map(|odd| functions(odd).into_iter().map(|function| (odd.what, function)));
    let of_flow = WHOLE.iter().map(|(what, function)| (*what, (*function).to_owned()));
    let (mut faults, mut tried) = (Vec::new(), BTreeSet::new());
    for (what, function) in of_values.chain(of_flow) {
        let text = format!("{DECLARATIONS}{PLAIN}{function}\n!0 = !{{!\"rsp\"}}\n!1 = !{{i64 0, !\"a\"}}\n");
        let read = || Module::parse(text.as_bytes(), "odd.ll");
        let module = read().unwrap_or_else(|e| panic!("{what}: {e}\n{function}"));
        // Some may not stand in a loop.
        if module.verify().is_err() {
            continue;
        }
        tried.insert(what);
        let all = "fcs,tail-merge,branch-fusion,meld,spill,linearize:threshold=-1000".to_owned();
        let allocators = ["div", "rem", "linear"].map(|name| format!("spill:registers=2,allocator={name},loads=simt"));
        for passes in REGISTRY.iter().map(forced).chain(allocators).chain([all]) {
            let (_, remarks) = Pipeline::parse(&passes).unwrap().apply(read).unwrap();
            if let Some(refused) = remarks.iter().find(|remark| matches!(remark.reason, Reason::Refused(_))) {
                faults.push(format!("{what}, {passes}: {refused}\n{function}"));
            }
        }
    }
    assert_eq!(tried.len(), ODD.len() + WHOLE.len(), "some kind is well formed in no shape: {tried:?}");
    assert!(faults.is_empty(), "{} refusals:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn each_pass_that_changes_code_changes_the_plain_function() {
    let unchanging = ["none", "layout", "speculative"];
    for pass in REGISTRY.iter().filter(|pass| !unchanging.contains(&pass.name)) {
        let text = format!("{DECLARATIONS}{PLAIN}");
        let mut module = Module::parse(text.as_bytes(), "plain.ll").unwrap();
        let before = module.to_text();
        Pipeline::parse(&forced(pass)).unwrap().run(&mut module).unwrap();
        assert!(
            module.to_text() != before || pass.name == "branch-fusion" || pass.name == "tail-merge",
            "{} leaves the plain function as it is; if it may, it belongs into `unchanging`",
            pass.name
        );
    }
}
