//! Random SPMD functions as LLVM IR text, with variables in memory; `opt-19 -passes=mem2reg` makes SSA form of them.

use std::fmt::Write;

/// A small generator of numbers: xorshift.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// The declarations that all functions need.
pub const PRELUDE: &str = "target triple = \"amdgcn-amd-amdhsa\"
target datalayout = \"e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-i64:64-v16:16-v24:32-v32:32-A5-G1\"
@mem = addrspace(1) global [256 x i32] zeroinitializer
@rom = addrspace(4) constant [8 x i32] [i32 3, i32 1, i32 4, i32 1, i32 5, i32 9, i32 2, i32 6]
declare i32 @llvm.amdgcn.workitem.id.x()
";

struct Maker<'n> {
    numbers: &'n mut Numbers,
    text: String,
    next: u32,
    labels: u32,
    /// Labels that a jump may lead to.
    open: Vec<u32>,
    /// Labels of loops around: where a turn ends, where the loop ends.
    loops: Vec<(u32, u32)>,
    budget: u32,
}

/// Variables by type; those that begin with u hold uniform values, mostly, those with t affine ones.
const WORDS: &[&str] = &["a0", "a1", "t0", "t1", "t2", "t3", "t4", "u0", "u1", "u2"];
const LONGS: &[&str] = &["l0", "l1"];
const BYTES: &[&str] = &["b0"];

/// A function of this name.
pub fn function(name: &str, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut maker = Maker {
        numbers: &mut numbers,
        text: String::new(),
        next: 0,
        labels: 0,
        open: Vec::new(),
        loops: Vec::new(),
        budget: 30,
    };
    for (of_type, names) in [("i32", WORDS), ("i64", LONGS), ("i8", BYTES)] {
        for name in names {
            let _ = writeln!(maker.text, "  %{name} = alloca {of_type}, addrspace(5)");
        }
    }
    maker.line("%tid = call i32 @llvm.amdgcn.workitem.id.x()");
    for (name, value) in [
        ("a0", "%p0"),
        ("a1", "%tid"),
        ("t0", "%tid"),
        ("t1", "%tid"),
        ("t2", "%tid"),
        ("t3", "%tid"),
        ("t4", "%tid"),
        ("u0", "%p0"),
        ("u1", "%p1"),
    ] {
        maker.line(&format!("store i32 {value}, ptr addrspace(5) %{name}"));
    }
    maker.line("store i32 3, ptr addrspace(5) %u2");
    for (of_type, names) in [("i64", LONGS), ("i8", BYTES)] {
        for name in names {
            maker.line(&format!("store {of_type} 1, ptr addrspace(5) %{name}"));
        }
    }
    maker.statements(0);
    maker.line("ret void");
    format!("define amdgpu_kernel void @{name}(i32 %p0, i32 %p1) {{\n{}}}\n", maker.text)
}

impl Maker<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "  {text}");
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn begin(&mut self, label: u32) {
        let _ = writeln!(self.text, "L{label}:");
        self.open.push(label);
    }

    fn load(&mut self, of_type: &str, variable: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} = load {of_type}, ptr addrspace(5) %{variable}"));
        name
    }

    fn store(&mut self, of_type: &str, value: &str, variable: &str) {
        self.line(&format!("store {of_type} {value}, ptr addrspace(5) %{variable}"));
    }

    /// A word: a variable of the kind asked for, or a number.
    fn word(&mut self, kind: char) -> String {
        if self.numbers.one_in(4) {
            return (self.numbers.below(13) as i64 - 3).to_string();
        }
        if kind == 't' && self.numbers.one_in(3) {
            return "%tid".to_owned();
        }
        let variable = match kind {
            'u' => self.numbers.of(&["u0", "u1", "u2"]),
            't' => self.numbers.of(&["t0", "t1", "t2", "t3", "t4", "u0", "u1"]),
            _ => self.numbers.of(WORDS),
        };
        self.load("i32", variable)
    }

    fn condition(&mut self) -> String {
        let kind = if self.numbers.one_in(2) {
            'u'
        } else if self.numbers.one_in(2) {
            't'
        } else {
            'a'
        };
        let (a, b) = (self.word(kind), self.word(kind));
        let predicate = self.numbers.of(&["eq", "ne", "slt", "sgt", "ult", "uge", "sle"]);
        let name = self.name();
        self.line(&format!("{name} = icmp {predicate} i32 {a}, {b}"));
        name
    }

    fn assign(&mut self) {
        match self.numbers.below(20) {
            0..=8 | 16..=17 => {
                let target = self.numbers.of(WORDS);
                let kind = target.chars().next().unwrap_or('a');
                let other = if self.numbers.one_in(3) { 'u' } else { kind };
                let (a, b) = (self.word(kind), self.word(other));
                let operation = match kind {
                    't' => self.numbers.of(&[
                        "add", "add", "sub", "add nsw", "sub nsw", "add nuw", "mul", "mul nsw", "ashr", "lshr", "sdiv",
                        "udiv", "and",
                    ]),
                    _ => self
                        .numbers
                        .of(&["add", "sub", "mul", "and", "or", "xor", "add nsw", "mul nsw", "lshr", "urem"]),
                };
                // An amount that is too large is poison, a division by zero is undefined.
                let b = match operation {
                    "lshr" | "ashr" => self.numbers.below(8).to_string(),
                    "and" if kind == 't' => ((1 << (self.numbers.below(16) + 1)) - 1).to_string(),
                    "urem" | "udiv" | "sdiv" => (self.numbers.below(6) + 2).to_string(),
                    "mul" | "mul nsw" if kind == 't' => self.word('u'),
                    _ => b,
                };
                let name = self.name();
                self.line(&format!("{name} = {operation} i32 {a}, {b}"));
                self.store("i32", &name, target);
            }
            18..=19 => {
                let (factor, base, target) =
                    (self.numbers.below(9), self.word('u'), self.numbers.of(&["t1", "t2", "t3"]));
                let (product, name) = (self.name(), self.name());
                self.line(&format!("{product} = mul i32 %tid, {factor}"));
                self.line(&format!("{name} = add i32 {product}, {base}"));
                self.store("i32", &name, target);
            }
            9 => {
                let target = self.numbers.of(&["t0", "t1", "t2", "a0"]);
                let (a, by) = (self.word('t'), self.numbers.below(5));
                let flag = self.numbers.of(&["", "nsw ", "nuw "]);
                let name = self.name();
                self.line(&format!("{name} = shl {flag}i32 {a}, {by}"));
                self.store("i32", &name, target);
            }
            10 => {
                let (a, target) = (self.word('t'), self.numbers.of(LONGS));
                let cast = self.numbers.of(&["sext", "zext"]);
                let name = self.name();
                self.line(&format!("{name} = {cast} i32 {a} to i64"));
                self.store("i64", &name, target);
            }
            11 => {
                let (from, target) = (self.numbers.of(LONGS), self.numbers.of(&["a0", "t0", "a1"]));
                let a = self.load("i64", from);
                let name = self.name();
                self.line(&format!("{name} = trunc i64 {a} to i32"));
                let frozen = self.name();
                self.line(&format!("{frozen} = freeze i32 {name}"));
                self.store("i32", &frozen, target);
            }
            12 => {
                let (a, b) = (self.load("i64", "l0"), self.load("i64", "l1"));
                let (operation, target) = (self.numbers.of(&["add", "sub", "mul", "xor"]), self.numbers.of(LONGS));
                let name = self.name();
                self.line(&format!("{name} = {operation} i64 {a}, {b}"));
                self.store("i64", &name, target);
            }
            13 => {
                let a = self.word('t');
                let byte = self.name();
                self.line(&format!("{byte} = trunc i32 {a} to i8"));
                self.store("i8", &byte, "b0");
                let loaded = self.load("i8", "b0");
                let (wide, cast) = (self.name(), self.numbers.of(&["sext", "zext"]));
                self.line(&format!("{wide} = {cast} i8 {loaded} to i32"));
                self.store("i32", &wide, self.target());
            }
            14 => {
                let c = self.condition();
                let (a, b, name) = (self.word('t'), self.word('t'), self.name());
                self.line(&format!("{name} = select i1 {c}, i32 {a}, i32 {b}"));
                self.store("i32", &name, self.target());
            }
            _ => self.memory(),
        }
    }

    fn target(&self) -> &'static str {
        ["a0", "a1", "t4"][(self.next % 3) as usize]
    }

    fn memory(&mut self) {
        let kind = if self.numbers.one_in(2) { 'u' } else { 't' };
        let a = self.word(kind);
        let (masked, wide, address) = (self.name(), self.name(), self.name());
        let from_table = self.numbers.one_in(4);
        let (mask, of, space) = if from_table { (7, "[8 x i32]", 4) } else { (255, "[256 x i32]", 1) };
        let base = if from_table { "@rom" } else { "@mem" };
        self.line(&format!("{masked} = and i32 {a}, {mask}"));
        self.line(&format!("{wide} = zext i32 {masked} to i64"));
        self.line(&format!("{address} = getelementptr {of}, ptr addrspace({space}) {base}, i64 0, i64 {wide}"));
        match self.numbers.below(if from_table { 2 } else { 5 }) {
            0..=1 => {
                let name = self.name();
                self.line(&format!("{name} = load i32, ptr addrspace({space}) {address}"));
                let target = if kind == 'u' { "u0" } else { "a1" };
                self.store("i32", &name, target);
            }
            2..=3 => {
                let value = self.word('a');
                self.line(&format!("store i32 {value}, ptr addrspace(1) {address}"));
            }
            _ => {
                let name = self.name();
                self.line(&format!("{name} = atomicrmw add ptr addrspace(1) {address}, i32 1 seq_cst"));
                self.store("i32", &name, "a0");
            }
        }
    }

    fn statements(&mut self, depth: u32) {
        for _ in 0..2 + self.numbers.below(4) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            match self.numbers.below(if depth > 3 { 7 } else { 12 }) {
                0..=5 => self.assign(),
                6 => self.leave(),
                7..=8 => self.either(depth),
                9..=10 => self.turns(depth),
                _ if self.numbers.one_in(3) => self.jump(),
                _ => self.choice(depth),
            }
        }
    }

    /// `if (c) break;` or `if (c) continue;`, where there is a loop.
    fn leave(&mut self) {
        let Some(&(again, end)) = self.loops.last() else { return self.assign() };
        let to = if self.numbers.one_in(2) { again } else { end };
        let (c, next) = (self.condition(), self.label());
        self.line(&format!("br i1 {c}, label %L{to}, label %L{next}"));
        self.begin(next);
    }

    fn either(&mut self, depth: u32) {
        let c = self.condition();
        let (yes, no, join) = (self.label(), self.label(), self.label());
        self.line(&format!("br i1 {c}, label %L{yes}, label %L{no}"));
        for side in [yes, no] {
            self.begin(side);
            self.statements(depth + 1);
            self.line(&format!("br label %L{join}"));
        }
        self.begin(join);
    }

    fn choice(&mut self, depth: u32) {
        let by = self.word('a');
        let (one, two, join) = (self.label(), self.label(), self.label());
        self.line(&format!(
            "switch i32 {by}, label %L{join} [ i32 0, label %L{one} i32 1, label %L{two} i32 3, label %L{one} ]"
        ));
        for side in [one, two] {
            self.begin(side);
            self.statements(depth + 2);
            self.line(&format!("br label %L{join}"));
        }
        self.begin(join);
    }

    /// A loop that counts; control may test at the top, at the bottom, or in the midst only.
    fn turns(&mut self, depth: u32) {
        let counter = format!("c{}", self.label());
        let kind = if self.numbers.one_in(2) { 'u' } else { 't' };
        let bound = self.word(kind);
        let bounded = self.name();
        self.line(&format!("{bounded} = and i32 {bound}, 7"));
        // Variables of loops have a slot at the function's head.
        let limit = format!("{counter}.limit");
        for slot in [&counter, &limit] {
            self.text.insert_str(0, &format!("  %{slot} = alloca i32, addrspace(5)\n"));
        }
        self.store("i32", "0", &counter);
        self.store("i32", &bounded, &limit);
        let (head, body, again, end) = (self.label(), self.label(), self.label(), self.label());
        let at_top = self.numbers.one_in(2);
        self.line(&format!("br label %L{head}"));
        self.begin(head);
        if at_top {
            let i = self.load("i32", &counter);
            let (bound, c) = (self.load("i32", &limit), self.name());
            self.line(&format!("{c} = icmp ult i32 {i}, {bound}"));
            self.line(&format!("br i1 {c}, label %L{body}, label %L{end}"));
        } else {
            self.line(&format!("br label %L{body}"));
        }
        self.begin(body);
        // Without a test at the top, continuing at the head goes round without leaving.
        self.loops.push((if at_top || self.numbers.one_in(2) { again } else { head }, end));
        self.statements(depth + 1);
        let i = self.load("i32", &counter);
        let target = self.numbers.of(&["u2", "a0", "t3"]);
        self.store("i32", &i, target);
        self.loops.pop();
        self.line(&format!("br label %L{again}"));
        self.begin(again);
        let (i, next) = (self.load("i32", &counter), self.name());
        self.line(&format!("{next} = add i32 {i}, 1"));
        self.store("i32", &next, &counter);
        if at_top {
            self.line(&format!("br label %L{head}"));
        } else {
            let (bound, c) = (self.load("i32", &limit), self.name());
            self.line(&format!("{c} = icmp ult i32 {next}, {bound}"));
            self.line(&format!("br i1 {c}, label %L{head}, label %L{end}"));
        }
        self.begin(end);
    }

    /// A jump to any label so far: into loops as well as out of them.
    fn jump(&mut self) {
        if self.open.is_empty() {
            return self.assign();
        }
        let to = self.open[self.numbers.below(self.open.len() as u64) as usize];
        let (c, next) = (self.condition(), self.label());
        self.line(&format!("br i1 {c}, label %L{to}, label %L{next}"));
        self.begin(next);
    }
}
