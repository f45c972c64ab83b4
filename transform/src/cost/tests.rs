//! Against LLVM's own estimate of code size, instruction by instruction, where that counts instructions: `opt
//! -passes='print<cost-model>'`. What the module says LLVM misses is left out: divisions but by powers of two,
//! distances of shifts in a register, the look at a condition.

use std::io::Write;
use std::process::{Command, Stdio};

use super::fetches;
use crate::llvm::Module;

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
        let ours = fetches(instruction, &|_| false);
        if ours != estimate {
            differ += &format!("{instruction}: {ours} by our table, {estimate} by LLVM\n");
        }
    }
    assert!(differ.is_empty(), "{differ}");
}
