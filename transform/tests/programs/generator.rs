//! Random SPMD programs in C: threads that run one kernel on different data, with branches that part and calls on their
//! sides.
//!
//! Every program ends (loops and recursion are bounded), has no undefined behaviour (unsigned arithmetic, masked
//! indices and shifts, no division), and prints a checksum per thread.

use std::fmt::Write;

/// Where random numbers come from.
pub(crate) trait Draw {
    /// One of 0 to n - 1.
    fn below(&mut self, n: u64) -> u64;

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    /// One of so many kinds of expressions of two others, which always have a value.
    fn combined(&mut self, kinds: u64, a: String, b: &str) -> String {
        match self.below(kinds) {
            0 => a,
            1 => format!("({a} >> ({b} & 31))"),
            2 if kinds > 4 => format!("({a} / ({b} | 1))"),
            _ => format!("({a} {} {b})", self.pick(&["+", "-", "*", "^", "&", "|"])),
        }
    }
}

/// SplitMix64: small, and the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Draw for Random {
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

const VARIABLES: u64 = 6;

/// What all programs begin with.
const PRELUDE: &str = r#"#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#define KEEP __attribute__((noinline))
typedef uint32_t u;
static KEEP void note(u *m, u a) { m[a & 63] += a; }
"#;

/// A program: declarations and functions, a `worker`, and `main`, which runs five of them and then `prints`.
pub(crate) fn five_workers(functions: &str, worker: &str, prints: &str) -> String {
    let main = "int main(void) {
    pthread_t t[5];
    for (u i = 0; i < 5; i++) pthread_create(&t[i], 0, worker, (void *)(uintptr_t)i);
    for (u i = 0; i < 5; i++) pthread_join(t[i], 0);
";
    format!("{PRELUDE}{functions}{worker}{main}{prints}    return 0;\n}}\n")
}

/// The head of a loop of so many turns.
pub(crate) fn turns(counter: &str, trips: &str) -> String {
    format!("for (u {counter} = 0, n{counter} = {trips}; {counter} < n{counter}; {counter}++)")
}

const HEAD: &str = r#"typedef struct { u x[6]; } big;
typedef u (*function)(u, u);
static KEEP u mix(u a, u b) { for (u i = 0; i < (b & 7); i++) a = a * 1664525u + (b ^ i); return a; }
static KEEP u turn(u a, u b) { u s = 0; for (u i = 0; i < 9; i++) { if (a >> i & 1) s += b << i; else s ^= b; } return s; }
static KEEP u climb(u a, u b) { return (b & 7) == 0 ? a : climb(a + b, (b & 7) - 1) ^ 3u; }
static KEEP u three(u a, u b, u c) { u s = a; while (c & 15) { s = s * 3 + b; c--; } return s; }
static KEEP double scale(double a, double b) { for (int i = 0; i < 5; i++) a = a * 0.5 + b; return a; }
static KEEP big make(u a, u b) { big r; for (u i = 0; i < 6; i++) r.x[i] = a + b * i; return r; }
static KEEP u sum(big a, u k) { u s = k; for (int i = 0; i < 6; i++) s = s * 31 + a.x[i]; return s; }
static function table[] = { mix, turn, climb, mix };
"#;

const WORKER: &str = r#"
static u memory[5][64], results[5];
static void *worker(void *p) {
    u id = (u)(uintptr_t)p;
    for (u i = 0; i < 64; i++) memory[id][i] = i * 2654435761u + id;
    for (u round = 0; round < 40; round++) results[id] = results[id] * 33 + kernel(id, round, memory[id]);
    for (u i = 0; i < 64; i++) results[id] = results[id] * 33 + memory[id][i];
    return 0;
}
"#;

/// A program of a function `kernel(id, round, memory)`.
pub(crate) fn with_kernel(kernel: &str) -> String {
    let prints = "    for (u i = 0; i < 5; i++) printf(\"%u\\n\", results[i]);\n";
    five_workers(&format!("{HEAD}{kernel}"), WORKER, prints)
}

struct Writer {
    random: Random,
    text: String,
    /// How deep statements are nested.
    depth: usize,
    /// How many loops are around.
    loops: u32,
    names: u32,
    /// Statements that may still be written, so that programs stay small.
    budget: i32,
}

/// The program of this number.
pub(crate) fn program(seed: u64) -> String {
    let random = Random(seed);
    let mut w = Writer { random, text: String::new(), depth: 1, loops: 0, names: 0, budget: 45 };
    w.line("static KEEP u kernel(u id, u round, u *m) {");
    for i in 0..VARIABLES {
        w.line(&format!("    u v{i} = m[(id * {} + round) & 63] + {i};", i + 3));
    }
    w.line("    double d = id + round; big s = make(id, round); function f = table[m[round & 63] & 3];");
    w.block();
    w.line("    goto out; out:");
    w.line("    return v0 ^ v1 * 3 ^ v2 * 5 ^ v3 * 7 ^ v4 * 11 ^ v5 * 13 ^ (u)(int64_t)d ^ sum(s, v0);");
    w.line("}");
    with_kernel(&w.text)
}

impl Writer {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    fn put(&mut self, text: &str) {
        let indent = "    ".repeat(self.depth);
        self.line(&format!("{indent}{text}"));
    }

    fn variable(&mut self) -> String {
        format!("v{}", self.random.below(VARIABLES))
    }

    fn atom(&mut self) -> String {
        match self.random.below(6) {
            0 => "id".to_owned(),
            1 => "round".to_owned(),
            2 => format!("{}u", self.random.below(1000)),
            3 => format!("m[{} & 63]", self.variable()),
            _ => self.variable(),
        }
    }

    fn expression(&mut self) -> String {
        let (a, b) = (self.atom(), self.atom());
        self.random.combined(4, a, &b)
    }

    fn simple_condition(&mut self) -> String {
        let a = self.expression();
        match self.random.below(3) {
            0 => format!("({a}) & {}", 1 << self.random.below(3)),
            1 => format!("({a}) % 3 == {}", self.random.below(3)),
            _ => format!("({a}) < {}", self.expression()),
        }
    }

    fn condition(&mut self) -> String {
        let a = self.simple_condition();
        match self.random.below(4) {
            0 => format!("({a}) || ({})", self.simple_condition()),
            1 => format!("({a}) && ({})", self.simple_condition()),
            _ => a,
        }
    }

    fn call(&mut self) -> String {
        let (to, a, b, c) = (self.variable(), self.expression(), self.expression(), self.expression());
        match self.random.below(13) {
            0 => format!("{to} += three({a}, {b}, {c});"),
            1 => format!("note(m, {a});"),
            2 => format!("d = scale(d, (double)({a} & 1023));"),
            3 => format!("{to} ^= f({a}, {b});"),
            4 => format!("s = make({a}, {b});"),
            5 => format!("{to} += sum(s, {a});"),
            6 => format!("{to} = climb({a}, {b});"),
            7 => format!("{to} = turn({a}, {b});"),
            _ => format!("{to} = mix({a}, {b});"),
        }
    }

    fn block(&mut self) {
        let statements = 2 + self.random.below(4);
        for _ in 0..statements {
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
        self.depth -= 1;
        self.put("}");
    }

    fn statement(&mut self) {
        let compound = if self.depth < 6 { 14 } else { 8 };
        match self.random.below(compound) {
            0..=4 => {
                let call = self.call();
                self.put(&call);
            }
            5 | 6 => {
                let (to, value) = (self.variable(), self.expression());
                self.put(&format!("{to} = {value};"));
            }
            7 => {
                let condition = self.condition();
                let leave = if self.loops > 0 {
                    self.random.pick(&["break;", "continue;", "goto out;"])
                } else {
                    self.random.pick(&["goto out;", "return v1 ^ v2;"])
                };
                self.put(&format!("if ({condition}) {leave}"));
            }
            8 => self.a_loop(),
            9 => self.a_switch(),
            _ => {
                let condition = self.condition();
                self.nested(&format!("if ({condition})"));
                if self.random.below(4) > 0 {
                    self.nested("else");
                }
            }
        }
    }

    fn a_loop(&mut self) {
        self.names += 1;
        let counter = format!("i{}", self.names);
        let trips = if self.random.below(2) == 0 { "4".to_owned() } else { format!("({} & 3)", self.variable()) };
        self.loops += 1;
        self.nested(&turns(&counter, &trips));
        self.loops -= 1;
    }

    /// Without `break` of a loop around inside: `break` would mean the switch.
    fn a_switch(&mut self) {
        let by = self.expression();
        self.put(&format!("switch ({by} & 3) {{"));
        let loops = std::mem::take(&mut self.loops);
        for case in 0..3 {
            self.nested(&format!("case {case}:"));
            if self.random.below(4) > 0 {
                self.put("break;");
            }
        }
        self.loops = loops;
        self.put("default: v0++;");
        self.put("}");
    }
}
