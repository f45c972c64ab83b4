//! How time and memory of each pass, and of lists of passes, grow with the size of a function, and how much code comes
//! of it: `cargo bench -p transform --bench growth`.
//!
//! The input is IR of seven shapes, made here, of 100 to 10,000 branches: two-armed branches with calls in a row, one
//! switch with a call in each case, an interpreter (a switch in a loop, whose cases branch, call the same functions and
//! have values in common, an eighth as many cases as the others have branches), branches nested in each other with
//! calls, diamonds of arithmetic in a row, such diamonds with pieces that have no partner, whose results outlive them,
//! and two branches with long arms: arms of one as many instructions as the others have branches, and twice as many for
//! the other. What aligns arms takes time of the product of their lengths, up to where it leaves them: there an
//! exponent of 2 is the target. Each pass runs over each in a process of its own, so that the peak of its memory can be
//! read: the least time of [`ROUNDS`] counts, and the memory above that of the module as it was read. `seconds` is the
//! whole pipeline of that pass, with LLVM's verifier before and after it, as a debug build runs it; `own` is without
//! the verifier, which is timed alone on the same two modules. The exponents are those of the power of the size that
//! fits best by least squares; 1 is linear, and the target is at most 1.2 for our own time and memory. `code` is the
//! code that is generated of the module afterwards, in bytes, as a multiple of what is generated of it as it was, and
//! `made` the seconds of code generation as such a multiple: no list of passes may take more than two times the code,
//! or three times the time. Times are of the processor; throughput is in branches per second of our own time.
//!
//! `-- LARGEST` measures up to another size, `-- LARGEST PASSES` one pass or list only.

use std::fmt::Write;
use std::process::{Command, ExitCode};
use std::time::Duration;

use transform::llvm::{CodeOptions, Module};
use transform::{Pipeline, REGISTRY};

const ROUNDS: usize = 3;

const SIZES: [usize; 5] = [100, 316, 1_000, 3_162, 10_000];

/// Less of our own time is lost in the verifier's, which is taken away, and takes no part in a fit.
const LEAST_SECONDS: f64 = 5e-4;

/// What takes longer is not measured again, nor are larger sizes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Lists of passes that are measured besides each pass alone: what one makes is the next one's input.
const LISTS: [&str; 4] =
    ["fcs,linearize:threshold=-1000", "fcs,meld,linearize", "fcs,split-nodes", "meld,fcs,tail-merge,branch-fusion"];

type Shape = (&'static str, fn(usize) -> String);

const SHAPES: [Shape; 7] = [
    ("row", row),
    ("switch", switch),
    ("interpreter", interpreter),
    ("nesting", nesting),
    ("diamonds", diamonds),
    ("pieces", pieces),
    ("long", long),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [one, pass, shape, size] = &words[..]
        && one == "--one"
    {
        measure(pass, shape, size.parse().expect("a size"));
        return ExitCode::SUCCESS;
    }
    let largest = words.first().map_or(usize::MAX, |word| word.parse().expect("a size"));
    println!(
        "{:<33} {:<11} {:>7} {:>9} {:>9} {:>11} {:>9} {:>6} {:>6}",
        "passes", "shape", "size", "seconds", "own", "branches/s", "MB", "code", "made"
    );
    let mut fits = String::new();
    let all = REGISTRY.iter().map(|pass| pass.name).chain(LISTS);
    for passes in all.filter(|passes| words.get(1).is_none_or(|only| only == passes)) {
        for (shape, _) in SHAPES {
            let mut points = Vec::new();
            for size in SIZES.into_iter().filter(|&size| size <= largest) {
                let point = best(passes, shape, size);
                let Point { seconds, own, bytes, code, made, .. } = point;
                let megabytes = bytes / 1e6;
                let rate = if own < LEAST_SECONDS { "-".to_owned() } else { format!("{:.0}", size as f64 / own) };
                println!(
                    "{passes:<33} {shape:<11} {size:>7} {seconds:>9.4} {own:>9.4} {rate:>11} {megabytes:>9.1} {code:>6.2} {made:>6.2}"
                );
                points.push(point);
                if seconds > PATIENCE.as_secs_f64() {
                    break;
                }
            }
            let fit = |of: fn(&Point) -> f64, least: f64| {
                exponent(points.iter().filter(|point| of(point) > least).map(|point| (point.size, of(point))))
            };
            let (time, own) = (fit(|point| point.seconds, 0.0), fit(|point| point.own, LEAST_SECONDS));
            // Below a megabyte it is what the allocator takes at a time.
            let memory = fit(|point| point.bytes, 1e6);
            writeln!(fits, "{passes:<33} {shape:<11} {time:>7} {own:>7} {memory:>8}").expect("text");
        }
    }
    println!("\nexponents                         shape       seconds     own   memory\n{fits}");
    ExitCode::SUCCESS
}

/// What a pass took for a function of some size.
struct Point {
    size: f64,
    /// With LLVM's verifier before and after the pass.
    seconds: f64,
    /// Without it.
    own: f64,
    bytes: f64,
    /// Bytes of the object file, as a multiple of that without passes.
    code: f64,
    /// Seconds of code generation, as such a multiple.
    made: f64,
}

/// The least seconds, and the least bytes, of several runs.
fn best(pass: &str, shape: &str, size: usize) -> Point {
    let mut least =
        Point { size: size as f64, seconds: f64::MAX, own: f64::MAX, bytes: f64::MAX, code: 0.0, made: f64::MAX };
    for _ in 0..ROUNDS {
        let program = std::env::current_exe().expect("this program");
        let done = Command::new(program).args(["--one", pass, shape, &size.to_string()]).output().expect("a run");
        assert!(done.status.success(), "{pass} {shape} {size}: {}", String::from_utf8_lossy(&done.stderr));
        let said = String::from_utf8(done.stdout).expect("text");
        let numbers: Vec<f64> = said.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        least.seconds = least.seconds.min(numbers[0]);
        // The verifier's time may have been slower alone: nothing is left of it then.
        least.own = least.own.min((numbers[0] - numbers[1]).max(0.0));
        least.bytes = least.bytes.min(numbers[2]);
        (least.code, least.made) = (numbers[3], least.made.min(numbers[4]));
        if numbers[0] > PATIENCE.as_secs_f64() {
            break;
        }
    }
    least
}

/// Prints the seconds that a pass takes with LLVM's verifier before and after it, those that the verifier takes alone
/// for the same modules, the bytes above those of the module, and what code generation makes of it and takes for it as
/// multiples of those without passes.
fn measure(pass: &str, shape: &str, size: usize) {
    let make = SHAPES.iter().find(|(name, _)| *name == shape).expect("a shape").1;
    let pipeline = Pipeline::parse(pass).expect("a pass");
    let mut module = Module::parse(make(size).as_bytes(), shape).expect("IR");
    // The first run reads pages that later ones find in the caches.
    verifying(&module);
    let before = verifying(&module);
    // The peak begins again here (5 is what proc(5) says for that).
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
    let bytes = peak();
    let start = processor_time();
    pipeline.run(&mut module).expect("a pass that works");
    let seconds = (processor_time() - start).as_secs_f64();
    let bytes = peak() - bytes;
    let verified = before + verifying(&module);
    let plain = generating(Module::parse(make(size).as_bytes(), shape).expect("IR"));
    let after = generating(module);
    println!("{seconds} {verified} {bytes} {} {}", after.0 / plain.0, after.1 / plain.1);
}

/// The bytes of the object file that code generation makes of a module, and its seconds.
fn generating(module: Module) -> (f64, f64) {
    let options = CodeOptions { level: 2, position_independent: true, ..CodeOptions::default() };
    let start = processor_time();
    let object = module.into_object(&options).expect("code generation");
    (object.len() as f64, (processor_time() - start).as_secs_f64())
}

/// The seconds that LLVM's verifier takes.
fn verifying(module: &Module) -> f64 {
    let start = processor_time();
    module.verify().expect("it is well formed");
    (processor_time() - start).as_secs_f64()
}

/// The time that this process has had a processor: a busy machine changes it little.
fn processor_time() -> Duration {
    let clock = nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID;
    nix::time::clock_gettime(clock).expect("a clock").into()
}

/// The peak of the memory in use, in bytes.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

/// The power of the size by which the other grows.
fn exponent(points: impl Iterator<Item = (f64, f64)>) -> String {
    let logs: Vec<(f64, f64)> = points.map(|(x, y)| (x.ln(), y.ln())).collect();
    if logs.len() < 2 {
        return "-".to_owned();
    }
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    let variance: f64 = logs.iter().map(|p| (p.0 - x).powi(2)).sum();
    format!("{:.2}", covariance / variance)
}

const DECLARATIONS: &str = "target triple = \"x86_64-pc-linux-gnu\"\n\
    target datalayout = \"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128\"\n\
    @done = external global i32\n@last = external global i32\ndeclare i32 @work(i32)\n";

/// An arm that calls, keeps a value of its own past the call, and ends as the other arms do.
fn calling_arm(text: &mut String, name: &str, argument: usize, to: &str) {
    write!(
        text,
        "{name}:
  %{name}.m = mul i32 %seed, {argument}
  %{name}.q = call i32 @work(i32 %{name}.m)
  %{name}.r = sub i32 %{name}.q, %{name}.m
  store i32 7, ptr @done
  store i32 %seed, ptr @last
  br label %{to}
"
    )
    .expect("text");
}

/// A load of a truth value and a branch by it.
fn branch(text: &mut String, i: usize, yes: &str, no: &str) {
    write!(
        text,
        "  %p{i} = getelementptr i32, ptr %in, i64 {i}
  %v{i} = load i32, ptr %p{i}
  %c{i} = icmp sgt i32 %v{i}, {i}
  br i1 %c{i}, label %{yes}, label %{no}
"
    )
    .expect("text");
}

fn row(size: usize) -> String {
    let mut text = format!("{DECLARATIONS}define i32 @row(ptr %in, i32 %seed) {{\nentry:\n  br label %h0\n");
    for i in 0..size {
        writeln!(text, "h{i}:").expect("text");
        if i > 0 {
            let past = i - 1;
            let before = if past == 0 { "%seed".to_owned() } else { format!("%s{past}") };
            writeln!(text, "  %j{i} = phi i32 [ %t{past}.r, %t{past} ], [ %e{past}.r, %e{past} ]").expect("text");
            writeln!(text, "  %s{i} = xor i32 {before}, %j{i}").expect("text");
        }
        branch(&mut text, i, &format!("t{i}"), &format!("e{i}"));
        calling_arm(&mut text, &format!("t{i}"), 2 * i + 3, &format!("h{}", i + 1));
        calling_arm(&mut text, &format!("e{i}"), 2 * i + 4, &format!("h{}", i + 1));
    }
    text + &format!("h{size}:\n  ret i32 %s{}\n}}\n", size - 1)
}

fn switch(size: usize) -> String {
    let mut text = format!(
        "{DECLARATIONS}define i32 @switch(ptr %in, i32 %seed) {{\nentry:\n  %v = load i32, ptr %in\n  switch i32 %v, label %join ["
    );
    (0..size).for_each(|i| write!(text, " i32 {i}, label %a{i}").expect("text"));
    text += " ]\n";
    (0..size).for_each(|i| calling_arm(&mut text, &format!("a{i}"), i + 2, "join"));
    text += "join:\n  %j = phi i32 [ 0, %entry ]";
    (0..size).for_each(|i| write!(text, ", [ %a{i}.r, %a{i} ]").expect("text"));
    text + "\n  ret i32 %j\n}\n"
}

/// A machine with a stack and an accumulator, whose cases all pop, and push in one way or another.
fn interpreter(size: usize) -> String {
    let cases = (size / 8).max(2);
    let mut text = format!(
        "{DECLARATIONS}define i32 @interpreter(ptr %in, i32 %seed) {{
entry:
  br label %head
head:
  %pc = phi i32 [ 0, %entry ], [ %pc.next, %latch ]
  %acc = phi i32 [ %seed, %entry ], [ %acc.next, %latch ]
  %at = getelementptr i32, ptr %in, i32 %pc
  %v = load i32, ptr %at
  switch i32 %v, label %end ["
    );
    (0..cases).for_each(|i| write!(text, " i32 {i}, label %c{i}").expect("text"));
    text += " ]\n";
    let (mut next, mut joins) = (String::new(), String::new());
    for i in 0..cases {
        write!(
            text,
            "c{i}:
  %b{i} = call i32 @work(i32 {i})
  %a{i} = call i32 @work(i32 %b{i})
  %m{i} = icmp sgt i32 %a{i}, {}
  br i1 %m{i}, label %y{i}, label %n{i}
y{i}:
  %p{i} = mul i32 %b{i}, {}
  %q{i} = add i32 %a{i}, %p{i}
  %s{i} = call i32 @work(i32 %q{i})
  %e{i} = icmp eq i32 %b{i}, {i}
  br i1 %e{i}, label %latch, label %j{i}
n{i}:
  %l{i} = icmp slt i32 %b{i}, {i}
  br i1 %l{i}, label %o{i}, label %j{i}
o{i}:
  %x{i} = xor i32 %a{i}, {i}
  %t{i} = call i32 @work(i32 %x{i})
  br label %skip
j{i}:
  %k{i} = add i32 %acc, %a{i}
  %u{i} = call i32 @work(i32 %k{i})
  br label %latch
",
            3 * i,
            i + 1
        )
        .expect("text");
        write!(next, ", [ %acc, %y{i} ], [ %k{i}, %j{i} ]").expect("text");
        write!(joins, "{}[ %t{i}, %o{i} ]", if i == 0 { " " } else { ", " }).expect("text");
    }
    text + &format!(
        "skip:
  %skipped = phi i32{joins}
  store i32 %skipped, ptr @last
  br label %latch
latch:
  %acc.next = phi i32 [ %acc, %skip ]{next}
  %pc.next = add i32 %pc, 1
  br label %head
end:
  ret i32 %acc
}}
"
    )
}

fn nesting(size: usize) -> String {
    let mut text = format!("{DECLARATIONS}define i32 @nesting(ptr %in, i32 %seed) {{\nentry:\n  br label %h0\n");
    for i in 0..size {
        writeln!(text, "h{i}:").expect("text");
        branch(&mut text, i, &format!("h{}", i + 1), &format!("e{i}"));
        calling_arm(&mut text, &format!("e{i}"), i + 2, &format!("j{i}"));
    }
    calling_arm(&mut text, &format!("h{size}"), 1, &format!("j{}", size - 1));
    for i in (0..size).rev() {
        let inner = if i + 1 == size { format!("%h{size}.r, %h{size}") } else { format!("%x{0}, %j{0}", i + 1) };
        let to = if i == 0 { "ret i32 %x0".to_owned() } else { format!("br label %j{}", i - 1) };
        writeln!(text, "j{i}:\n  %x{i} = phi i32 [ {inner} ], [ %e{i}.r, %e{i} ]\n  {to}").expect("text");
    }
    text + "}\n"
}

fn diamonds(size: usize) -> String {
    diamonds_with("diamonds", size, |name, i, first| {
        format!(
            "  %{name}{i}.a = mul i32 %v{i}, {first}
  %{name}{i}.b = xor i32 %{name}{i}.a, %seed
  %{name}{i}.d = mul i32 %{name}{i}.b, %v{i}
  %{name}{i}.r = add i32 %{name}{i}.d, %{name}{i}.a
"
        )
    })
}

/// Between what both arms do each does something of its own, and uses it later.
fn pieces(size: usize) -> String {
    diamonds_with("pieces", size, |name, i, first| {
        let own = if name == "t" { ["udiv", "lshr"] } else { ["ashr", "urem"] };
        let mut text = format!("  %{name}{i}.a = mul i32 %v{i}, {first}\n");
        let mut last = format!("%{name}{i}.a");
        for (k, own) in own.into_iter().enumerate() {
            write!(
                text,
                "  %{name}{i}.o{k} = {own} i32 {last}, 3
  %{name}{i}.x{k} = mul i32 {last}, %seed
  store i32 %{name}{i}.x{k}, ptr @last
  %{name}{i}.m{k} = mul i32 %{name}{i}.x{k}, {last}
  store i32 %{name}{i}.m{k}, ptr @done
"
            )
            .expect("text");
            last = format!("%{name}{i}.m{k}");
        }
        write!(
            text,
            "  %{name}{i}.s = xor i32 %{name}{i}.o0, %{name}{i}.o1\n  %{name}{i}.r = add i32 %{name}{i}.s, {last}\n"
        )
        .expect("text");
        text
    })
}

/// Two diamonds with long arms of several kinds of instructions, nearly alike.
fn long(size: usize) -> String {
    diamonds_with("long", 2, |name, i, first| {
        let mut text = format!("  %{name}{i}.x0 = mul i32 %v{i}, {first}\n");
        let last = size * (i + 1);
        for k in 1..=last {
            let own = if name == "t" { k % 7 } else { k % 11 };
            let what = ["add", "xor", "mul", "sub", "and"][if own == 0 { 4 } else { k % 4 }];
            writeln!(text, "  %{name}{i}.x{k} = {what} i32 %{name}{i}.x{}, %seed", k - 1).expect("text");
        }
        text + &format!("  %{name}{i}.r = add i32 %{name}{i}.x{last}, 1\n")
    })
}

/// Diamonds in a row, with arms of these bodies.
fn diamonds_with(function: &str, size: usize, body: impl Fn(&str, usize, usize) -> String) -> String {
    let mut text = format!("{DECLARATIONS}define i32 @{function}(ptr %in, i32 %seed) {{\nentry:\n  br label %h0\n");
    let arm = |text: &mut String, name: &str, i: usize, first: usize| {
        write!(
            text,
            "{name}{i}:
{}  store i32 %{name}{i}.r, ptr @done
  store i32 %seed, ptr @last
  br label %h{}
",
            body(name, i, first),
            i + 1
        )
        .expect("text");
    };
    for i in 0..size {
        writeln!(text, "h{i}:").expect("text");
        if i > 0 {
            let past = i - 1;
            writeln!(text, "  %j{i} = phi i32 [ %t{past}.r, %t{past} ], [ %e{past}.r, %e{past} ]").expect("text");
            writeln!(
                text,
                "  %s{i} = xor i32 {}, %j{i}",
                if past == 0 { "%seed".to_owned() } else { format!("%s{past}") }
            )
            .expect("text");
        }
        branch(&mut text, i, &format!("t{i}"), &format!("e{i}"));
        arm(&mut text, "t", i, 2 * i + 3);
        arm(&mut text, "e", i, 2 * i + 5);
    }
    text + &format!("h{size}:\n  ret i32 %s{}\n}}\n", size - 1)
}
