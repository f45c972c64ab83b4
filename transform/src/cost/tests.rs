//! Fetches against LLVM's own estimate of code size, instruction by instruction, where that counts instructions: `opt
//! -passes='print<cost-model>'`. What the module says LLVM misses is left out: divisions but by powers of two,
//! distances of shifts in a register, the look at a condition.
//!
//! Latencies against LLVM's scheduling model of the code that LLVM makes of the instruction: `llvm-mca -mcpu=znver3`.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{Cost, CostModel, X86_64};
use crate::llvm::{Instruction, Module, Value};
use crate::{Pipeline, Remark};

/// A function of each simple instruction, for the types that have it.
fn functions() -> String {
    let integers = ["i8", "i16", "i32", "i64"];
    let floats = ["float", "double", "<4 x float>", "<2 x double>", "<8 x float>"];
    let mut text = String::new();
    let mut add = |of: &str, instruction: String| {
        let number = text.matches("define").count();
        let head = format!("define {of} @f{number}(i1 %c, {of} %a, {of} %b, ptr %p)");
        text += &format!("{head} {{\n  %r = {instruction}\n  ret {of} %r\n}}\n");
    };
    for of in integers {
        for op in ["add", "sub", "mul", "and", "or", "xor"] {
            add(of, format!("{op} {of} %a, %b"));
        }
        for op in ["udiv", "urem", "shl", "lshr", "ashr"] {
            add(of, format!("{op} {of} %a, 4"));
        }
    }
    for of in ["<4 x i32>", "<2 x i64>", "<8 x i16>"] {
        for op in ["add", "sub", "and", "or", "xor"] {
            add(of, format!("{op} {of} %a, %b"));
        }
    }
    for of in floats {
        for op in ["fadd", "fsub", "fmul", "fdiv"] {
            add(of, format!("{op} {of} %a, %b"));
        }
        add(of, format!("fneg {of} %a"));
    }
    // A load of two registers counts one by LLVM.
    for of in integers.iter().chain(&floats[..4]) {
        add(of, format!("load {of}, ptr %p"));
    }
    for of in ["float", "double"] {
        add(of, format!("select i1 %c, {of} %a, {of} %b"));
    }
    text
}

/// What LLVM says that each instruction but the returns costs.
fn estimates(text: &str) -> Vec<i64> {
    let words =
        ["-mtriple=x86_64-pc-linux-gnu", "-passes=print<cost-model>", "-cost-kind=code-size", "-disable-output"];
    let mut opt = Command::new("opt-19").args(words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    opt.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = String::from_utf8(opt.wait_with_output().unwrap().stderr).unwrap();
    let of_line = |line: &str| {
        let (cost, instruction) = line.split_once("estimated cost of ")?.1.split_once(" for instruction: ")?;
        (!instruction.trim().starts_with("ret ")).then(|| cost.parse().unwrap())
    };
    said.lines().filter_map(of_line).collect()
}

#[test]
fn simple_instructions_cost_what_llvm_says() {
    let text = functions();
    let estimates = estimates(&text);
    let module = Module::parse(text.as_bytes(), "costs.ll").unwrap();
    let functions = module.functions();
    assert!(functions.len() > 90 && estimates.len() == functions.len(), "{} estimates", estimates.len());
    let mut differ = String::new();
    for (function, estimate) in functions.into_iter().zip(estimates) {
        let instruction = function.blocks()[0].instructions()[0];
        let ours = X86_64.fetches(instruction, &|_| false);
        if ours != estimate {
            differ += &format!("{instruction}: {ours} by our table, {estimate} by LLVM\n");
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

/// Runs a program of LLVM.
fn said_by(program: &str, words: &[&str], input: &str) -> String {
    let mut child =
        Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect(program);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    String::from_utf8(output.stdout).unwrap()
}

/// Types of floating-point values, and how intrinsics on them are named.
const FLOATS: [(&str, &str); 4] =
    [("float", "f32"), ("double", "f64"), ("<4 x float>", "v4f32"), ("<2 x double>", "v2f64")];

/// Functions whose code is a chain: each instruction but moves and what prepares a division needs the one before.
fn chains() -> String {
    let mut text = String::new();
    let mut add = |of: &str, into: &str, instruction: String| {
        let number = text.matches("define").count();
        let head = format!("define {into} @f{number}({of} %a, {of} %b, ptr %p)");
        text += &format!("{head} {{\n  %r = {instruction}\n  ret {into} %r\n}}\n");
    };
    for of in ["i32", "i64"] {
        for op in ["add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem"] {
            add(of, of, format!("{op} {of} %a, %b"));
        }
        for op in ["shl", "lshr", "ashr"] {
            add(of, of, format!("{op} {of} %a, 5"));
        }
        for to in ["float", "double"] {
            add(of, to, format!("sitofp {of} %a to {to}"));
            add(to, of, format!("fptosi {to} %a to {of}"));
        }
    }
    for (of, suffix) in FLOATS {
        for op in ["fadd", "fsub", "fmul", "fdiv"] {
            add(of, of, format!("{op} {of} %a, %b"));
        }
        add(of, of, format!("call {of} @llvm.sqrt.{suffix}({of} %a)"));
        add(of, of, format!("call {of} @llvm.fmuladd.{suffix}({of} %a, {of} %b, {of} %a)"));
    }
    for of in ["<4 x i32>", "<2 x i64>", "<8 x i16>", "<16 x i8>"] {
        for op in ["add", "sub", "and", "or", "xor"] {
            add(of, of, format!("{op} {of} %a, %b"));
        }
    }
    for of in ["i8", "i16", "i32", "i64", "ptr", "float", "double", "<4 x float>", "<2 x double>", "<4 x i32>"] {
        add(of, of, format!("load {of}, ptr %p"));
    }
    add("float", "double", "fpext float %a to double".to_owned());
    add("double", "float", "fptrunc double %a to float".to_owned());
    add("<8 x i16>", "<8 x i16>", "mul <8 x i16> %a, %b".to_owned());
    for (of, suffix) in FLOATS {
        text +=
            &format!("declare {of} @llvm.sqrt.{suffix}({of})\ndeclare {of} @llvm.fmuladd.{suffix}({of}, {of}, {of})\n");
    }
    text
}

/// The sum of the latencies of some lines of assembly, moves between registers and preparations of a division left out.
fn latency_of_chain(assembly: &str) -> i64 {
    let words =
        ["-mtriple=x86_64-pc-linux-gnu", "-mcpu=znver3", "-iterations=1", "-instruction-info", "-summary-view=0"];
    let said = said_by("llvm-mca-19", &words, assembly);
    let mut sum = 0;
    for line in said.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [micro, latency, throughput, ..] = fields[..] else { continue };
        if micro.parse::<i64>().is_err() || throughput.parse::<f64>().is_err() {
            continue;
        }
        // Between the numbers and the instruction stand marks of what it may do.
        let words = fields[3..].iter().skip_while(|word| word.chars().all(|c| "*U".contains(c)));
        let instruction = words.copied().collect::<Vec<_>>().join(" ");
        let is_move = instruction.starts_with("mov") && !instruction.contains('(');
        let prepares = ["cltd", "cqto"].contains(&&*instruction) || zeroes(&instruction);
        if !is_move && !prepares {
            sum += latency.parse::<i64>().unwrap();
        }
    }
    sum
}

/// Whether an instruction zeroes a register.
fn zeroes(instruction: &str) -> bool {
    let (name, operands) = instruction.split_once(' ').unwrap_or_default();
    name.starts_with("xor") && operands.split_once(", ").is_some_and(|(one, other)| one == other)
}

#[test]
fn latencies_are_those_of_the_code_that_llvm_makes() {
    let text = chains();
    let assembly = said_by("llc-19", &["-O2", "-mtriple=x86_64-pc-linux-gnu", "-o", "-"], &text);
    let module = Module::parse(text.as_bytes(), "chains.ll").unwrap();
    let functions: Vec<_> = module.functions().into_iter().filter(|f| !f.blocks().is_empty()).collect();
    assert!(functions.len() > 90, "{} functions", functions.len());
    let mut differ = String::new();
    for function in functions {
        let start = assembly.find(&format!("\n{}:", function.name())).unwrap();
        let body = assembly[start + 1..].split(".Lfunc_end").next().unwrap();
        let is_code = |line: &&str| line.starts_with('\t') && !line.trim_start().starts_with(['.', '#']);
        let code: Vec<&str> = body.lines().filter(is_code).filter(|line| !line.contains("ret")).collect();
        let instruction = function.blocks()[0].instructions()[0];
        let (ours, theirs) =
            (X86_64.latency(instruction, &|_| false), latency_of_chain(&format!("{}\n", code.join("\n"))));
        if ours != theirs {
            differ += &format!("{instruction}: {ours} by our table, {theirs} by LLVM's, of {code:?}\n");
        }
    }
    assert!(differ.is_empty(), "{differ}");
}

/// A model in which calls cost nothing.
struct CallsAreFree;

impl CostModel for CallsAreFree {
    fn fetches<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        X86_64.fetches(i, beside)
    }

    fn fetches_of_choices<'m>(&self, choices: &[(Value<'m>, Value<'m>)]) -> i64 {
        X86_64.fetches_of_choices(choices)
    }

    fn latency<'m>(&self, i: Instruction<'m>, beside: &dyn Fn(Instruction<'m>) -> bool) -> i64 {
        X86_64.latency(i, beside)
    }

    fn unknown_callee(&self) -> Cost {
        Cost::default()
    }
}

#[test]
fn a_pass_decides_by_the_model_that_it_is_given() {
    let text = "declare void @work(i32)
define void @f(i1 %c) {
entry:
  br i1 %c, label %one, label %other
one:
  call void @work(i32 1)
  br label %end
other:
  call void @work(i32 2)
  br label %end
end:
  ret void
}
";
    let fused = |pipeline: Pipeline| {
        let mut module = Module::parse(text.as_bytes(), "calls.ll").unwrap();
        pipeline.run(&mut module).unwrap().iter().any(Remark::is_taken)
    };
    let fcs = || Pipeline::parse("fcs").unwrap();
    assert!(fused(fcs()) && !fused(fcs().with_costs(&CallsAreFree)));
}

/// Functions that choose by a comparison, or compute, and then store the result, and what was given where that lives
/// on; and the same functions without that: by pairs. Stores at the end keep code generation from copying the end.
fn choices_and_copies() -> (String, Vec<(String, String)>) {
    let (mut text, mut names) = (String::new(), Vec::new());
    let mut add = |of: &str, body: &str, results: &[String], live: &[&str]| {
        let number = names.len();
        let store = |value: &str| format!("  store volatile {of} {value}, ptr @out\n");
        let end = (0..8).map(|i| format!("  store volatile i32 {i}, ptr @out\n")).collect::<String>();
        let live = live.iter().map(|value| store(value)).collect::<String>();
        for (name, body, results) in [(format!("f{number}"), body, results), (format!("base{number}"), "", &[][..])] {
            let results = results.iter().map(|value| store(value)).collect::<String>();
            text += &format!("define void @{name}(i32 %x, i32 %y, {of} %a, {of} %b, {of} %d, {of} %e) {{\n");
            text += &format!("{body}{results}{live}{end}  ret void\n}}\n");
        }
        names.push((format!("f{number}"), format!("base{number}")));
    };
    let constants = [
        ("i32", &["5", "77777", "22695477", "-100", "1000", "12"][..]),
        ("i64", &["5", "77777", "22695477", "-100", "1000"]),
        ("ptr", &["null"]),
        ("float", &["0.0", "1.0", "2.5"]),
        ("double", &["0.0", "1.0", "2.5"]),
    ];
    for (of, constants) in constants {
        let mut pairs = vec![("%a", "%b")];
        pairs.extend(constants.iter().flat_map(|c| [("%a", *c), (*c, "%a")]));
        pairs.extend(constants.iter().flat_map(|c| constants.iter().filter(move |d| *d != c).map(move |d| (*c, *d))));
        for (yes, no) in pairs {
            for second in [false, true] {
                let mut body = "  %c = icmp slt i32 %x, %y\n".to_owned();
                body += &format!("  %r = select i1 %c, {of} {yes}, {of} {no}\n");
                let mut results = vec!["%r".to_owned()];
                let mut given: Vec<&str> = [yes, no].into_iter().filter(|value| value.starts_with('%')).collect();
                if second {
                    body += &format!("  %s = select i1 %c, {of} %d, {of} %e\n");
                    results.push("%s".to_owned());
                    given.extend(["%d", "%e"]);
                }
                add(of, &body, &results, &given);
                add(of, &body, &results, &[]);
            }
        }
    }
    for of in ["i32", "i64"] {
        for op in ["add", "sub", "and", "or", "xor", "mul", "lshr", "ashr", "shl"] {
            for second in ["%b", "1000003"] {
                // A distance in a variable must be in one certain register.
                let second = match (op.contains("sh"), second) {
                    (true, "%b") => continue,
                    (true, _) => "13",
                    _ => second,
                };
                for live in [&["%a", "%b"][..], &["%a"], &["%b"], &[]] {
                    add(of, &format!("  %r = {op} {of} %a, {second}\n"), &["%r".to_owned()], live);
                }
            }
        }
    }
    for of in ["float", "double", "<4 x float>", "<2 x i64>"] {
        let ops = if of.contains('i') { ["add", "sub", "and", "xor"] } else { ["fadd", "fsub", "fmul", "fdiv"] };
        for op in ops {
            for live in [&["%a", "%b"][..], &["%a"], &["%b"], &[]] {
                add(of, &format!("  %r = {op} {of} %a, %b\n"), &["%r".to_owned()], live);
            }
        }
    }
    (text + "@out = external global i8\n", names)
}

/// How many instructions the functions of some assembly have, by name.
fn counted(assembly: &str) -> rustc_hash::FxHashMap<String, i64> {
    let mut counts = rustc_hash::FxHashMap::default();
    let mut name = String::new();
    for line in assembly.lines() {
        if let Some((of, _)) = line.split_once(':').filter(|_| line.starts_with(['f', 'b'])) {
            name = of.to_owned();
        } else if line.starts_with('\t') && !line.trim_start().starts_with(['.', '#']) {
            *counts.entry(name.clone()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn choices_and_copies_are_what_llvm_makes_of_them() {
    let (text, names) = choices_and_copies();
    let module = Module::parse(text.as_bytes(), "choices.ll").unwrap();
    let expected = |name: &str| -> i64 {
        let function = module.functions().into_iter().find(|f| f.name() == name).unwrap();
        let instructions = function.blocks()[0].instructions();
        let lives_on = |value: Value<'_>| value.uses().len() > 1;
        let mut sum = 0;
        let mut choices = Vec::new();
        for i in instructions {
            let [yes, no] = match i.opcode() {
                crate::llvm::Opcode::LLVMSelect => [1, 2].map(|operand| i.operand(operand)),
                crate::llvm::Opcode::LLVMICmp | crate::llvm::Opcode::LLVMRet => continue,
                crate::llvm::Opcode::LLVMStore if i.operand(0).is_constant() => continue,
                _ => {
                    let is_free = |operand: usize| {
                        !i.operand(operand as u32).is_constant() && !lives_on(i.operand(operand as u32))
                    };
                    sum += X86_64.fetches(i, &|_| true) + X86_64.copies(i, &|_| true, &is_free);
                    continue;
                }
            };
            choices.push((yes, no));
            if lives_on(yes) && lives_on(no) && !yes.is_constant() && !no.is_constant() {
                sum += X86_64.copies_of_choice(yes);
            }
        }
        sum + X86_64.fetches_of_choices(&choices)
    };
    let expected: Vec<i64> = names.iter().map(|(name, base)| expected(name) - expected(base)).collect();
    for level in ["-O1", "-O3"] {
        let words = [level, "-mtriple=x86_64-pc-linux-gnu", "-relocation-model=pic", "-o", "-"];
        let counts = counted(&said_by("llc-19", &words, &text));
        let mut differ = String::new();
        // Of choices between floating-point values, under a branch whose blocks LLVM orders as it likes.
        let mut under_branches = [0, 0];
        for ((name, base), ours) in names.iter().zip(&expected) {
            let made = counts[name] - counts[base];
            let at = text.find(&format!("@{name}(")).unwrap();
            let body = text[at..].split("  store volatile i32 0").next().unwrap();
            let floating = body.contains("select i1 %c, float") || body.contains("select i1 %c, double");
            if floating {
                under_branches = [under_branches[0] + ours, under_branches[1] + made];
            }
            if (made - ours).abs() > if floating { 2 } else { 0 } {
                differ += &format!("{ours} by our table, {made} by LLVM: {body}");
            }
        }
        assert!(differ.is_empty(), "{level}: {differ}");
        let [ours, made] = under_branches;
        assert!(ours > 400 && (made - ours).abs() * 20 <= made, "{level}: {ours} by our table, {made} by LLVM");
    }
}
