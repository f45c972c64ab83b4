//! Random programs whose branches have arms that are alike, or nearly so, or not at all: what melding is about.
//!
//! The second arm is written from the same draws as the first one, on variables of its own, and goes its own way now
//! and then: never, seldom, often, or always, by the program's number. Arms hold integers, floating-point numbers,
//! memory, calls, ifs, loops, and early exits; values that are made early in an arm are used late. Every program ends,
//! has no undefined behaviour, and prints a checksum per thread.

use std::fmt::Write;
use std::ops::Range;

use crate::generator::{Draw, Random, five_workers, turns};

const HEAD: &str = r#"static KEEP u mix(u a, u b) { for (u i = 0; i < (b & 3); i++) a = a * 1664525u + (b ^ i); return a; }
static KEEP u turn(u a, u b) { return a << 7 ^ a >> 3 ^ b; }
static u shared[5][64];
static double real[5][16];
"#;

const WORKER: &str = r#"
static void *worker(void *p) {
    u id = (u)(uintptr_t)p;
    for (u k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        u result = 0;
        for (u i = 0; i < 64; i++) shared[id][i] = i * 2654435761u + id;
        for (u i = 0; i < 16; i++) real[id][i] = i * 0.25 + id;
        for (u round = 0; round < 24; round++) result = result * 33 + kernels[k](id, round, shared[id], real[id]);
        for (u i = 0; i < 64; i++) result = result * 33 + shared[id][i];
        for (u i = 0; i < 16; i++) result = result * 33 + (u)(int64_t)(real[id][i] * 1024);
        results[k][id] = result;
    }
    return 0;
}
"#;

const PRINTS: &str = r#"    for (u k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        printf("%u:", FIRST + k);
        for (u i = 0; i < 5; i++) printf(" %u", results[k][i]);
        printf("\n");
    }
"#;

/// Draws for an arm: the same for both, except for what goes its own way.
struct Draws {
    common: Random,
    own: Random,
    /// Of so many draws one goes its own way; 0 for none.
    one_in: u64,
}

impl Draw for Draws {
    fn below(&mut self, n: u64) -> u64 {
        let common = self.common.below(n);
        if self.one_in > 0 && self.own.below(self.one_in) == 0 { self.own.below(n) } else { common }
    }
}

struct Arm {
    draws: Draws,
    text: String,
    depth: usize,
    /// The letters of the arm's integers and numbers.
    letters: [char; 2],
    names: u32,
    budget: i32,
    early: bool,
}

/// The programs of these numbers in one source, `kernel_N` for program N: so what a compiler and a linker take to start
/// is paid once for all. It prints a line per program, which begins with its number.
pub(crate) fn source(seeds: Range<u64>) -> String {
    let names: Vec<String> = seeds.clone().map(|seed| format!("kernel_{seed}")).collect();
    let mut text = HEAD.to_owned();
    seeds.clone().for_each(|seed| text += &kernel(seed));
    let count = names.len();
    let _ = writeln!(text, "#define FIRST {}u\nstatic u results[{count}][5];", seeds.start);
    let _ = writeln!(text, "static u (*const kernels[])(u, u, u *, double *) = {{{}}};", names.join(", "));
    five_workers(&text, WORKER, PRINTS)
}

fn kernel(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x517c_c1b7_2722_0a95));
    let one_in = [0, 24, 8, 1][(seed % 4) as usize];
    let mut text = format!("static KEEP u kernel_{seed}(u id, u round, u *m, double *r) {{\n");
    for i in 0..4 {
        let _ =
            writeln!(text, "    u a{i} = m[(id * {0} + round) & 63], b{i} = m[(id + round * {0}) & 63] + {i};", i + 3);
    }
    text += "    double x0 = r[id & 15], x1 = r[round & 15], y0 = x1 + 1, y1 = x0 * 0.5;\n";
    let early = random.below(5) == 0;
    text += "    for (u turns = 0; turns < 3; turns++) {\n";
    for _ in 0..1 + random.below(2) {
        let condition =
            ["(id ^ turns) & 1", "m[(id + turns) & 63] & 4", "a0 < b0", "x0 < y0"][random.below(4) as usize];
        let (common, size) = (random.next(), 4 + random.below(8) as i32);
        let _ = writeln!(text, "        if ({condition}) {{");
        for (side, letters) in [['a', 'x'], ['b', 'y']].into_iter().enumerate() {
            let one_in = if side == 0 { 0 } else { one_in };
            let draws = Draws { common: Random(common), own: Random(random.next()), one_in };
            let mut arm = Arm { draws, text: String::new(), depth: 3, letters, names: 0, budget: size, early };
            arm.block();
            text += &arm.text;
            text += if side == 0 { "        } else {\n" } else { "        }\n" };
        }
        text += "        m[(a1 ^ b2) & 63] ^= a2 + b3;\n";
    }
    text += "    }\n    goto out; out:\n    r[id & 15] = x0 * 0.25 + y1 * 0.125; r[3] = x1 * 0.25; r[4] = y0 * 0.25;\n";
    text += "    return a0 ^ a1 * 3 ^ a2 * 5 ^ a3 * 7 ^ b0 * 11 ^ b1 * 13 ^ b2 * 17 ^ b3 * 19;\n}\n";
    text
}

impl Arm {
    fn put(&mut self, line: &str) {
        let line = line.replace('@', &self.letters[0].to_string()).replace('~', &self.letters[1].to_string());
        let _ = writeln!(self.text, "{}{line}", "    ".repeat(self.depth));
    }

    fn variable(&mut self) -> String {
        format!("@{}", self.draws.below(4))
    }

    fn atom(&mut self) -> String {
        match self.draws.below(5) {
            0 => format!("{}u", self.draws.below(100)),
            1 => format!("m[{} & 63]", self.variable()),
            _ => self.variable(),
        }
    }

    fn expression(&mut self) -> String {
        let (a, b) = (self.atom(), self.atom());
        self.draws.combined(6, a, &b)
    }

    fn number(&mut self) -> String {
        let (a, b) = (format!("~{}", self.draws.below(2)), format!("r[{} & 15]", self.variable()));
        let mut of = |a: &str, b: &str| format!("({a} {} {b}) * 0.5", self.draws.pick(&["+", "-"]));
        of(&a, &b)
    }

    fn condition(&mut self) -> String {
        match self.draws.below(4) {
            0 => format!("~0 {} ~1", self.draws.pick(&["<", ">", "<="])),
            1 => format!("({}) & {}", self.expression(), 1 << self.draws.below(3)),
            _ => {
                let (a, b) = (self.atom(), self.atom());
                format!("{a} {} {b}", self.draws.pick(&["<", ">", "<=", "=="]))
            }
        }
    }

    fn block(&mut self) {
        for _ in 0..2 + self.draws.below(3) {
            self.budget -= 1;
            if self.budget > 0 {
                self.statement();
            }
        }
    }

    fn nested(&mut self, head: &str) {
        self.put(&format!("{head} {{"));
        self.depth += 1;
        self.block();
        let (to, value) = (self.variable(), self.expression());
        self.put(&format!("m[{to} & 63] = {value};"));
        self.depth -= 1;
        self.put("}");
    }

    fn statement(&mut self) {
        let (to, a, b) = (self.variable(), self.expression(), self.expression());
        match self.draws.below(if self.depth < 6 { 14 } else { 9 }) {
            0..=2 => self.put(&format!("{to} = {a};")),
            3 => self.put(&format!("m[{a} & 63] = {b};")),
            4 => {
                let number = self.number();
                let which = self.draws.below(2);
                self.put(&format!("~{which} = {number};"));
            }
            5 => {
                let number = self.number();
                self.put(&format!("r[{to} & 15] = {number};"));
            }
            6 => {
                let callee = self.draws.pick(&["mix", "turn"]);
                self.put(&format!("{to} ^= {callee}({a}, {b});"));
            }
            7 => self.put(&format!("note(m, {a});")),
            8 => {
                let condition = self.condition();
                let leave = self.draws.pick(&["break;", "continue;", "goto out;", "return @1;"]);
                if self.early {
                    self.put(&format!("if ({condition}) {leave}"));
                } else {
                    self.put(&format!("if ({condition}) {to} += {a};"));
                }
            }
            9 => {
                self.names += 1;
                let counter = format!("i{}", self.names);
                let trips = if self.draws.below(2) == 0 { "3".to_owned() } else { format!("({to} & 7)") };
                self.nested(&turns(&counter, &trips));
            }
            _ => {
                let condition = self.condition();
                self.nested(&format!("if ({condition})"));
                if self.draws.below(3) == 0 {
                    self.nested("else");
                }
            }
        }
    }
}
