//! Small programs of many kinds, each made from a number: what code generators and optimisers trip over. Built by clang
//! at -O0, without passes, each says what it has to print; after every pass, alone at its defaults and forced, it must
//! print the same.
//!
//! [`GROUP`] programs share a file, so that a thousand take minutes. They have no undefined behaviour: arithmetic is
//! unsigned, shifts and indices are masked, divisors are odd, loops and recursion are bounded, and floating-point
//! numbers are added and multiplied without contraction.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use transform::REGISTRY;

use crate::build::{self, Printed};
use crate::generator::{Draw, Random};
use crate::progress::{Counts, Progress};

/// Programs in a file.
const GROUP: u64 = 20;

const PRELUDE: &str = r#"#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define KEEP __attribute__((noinline))
typedef uint32_t u;
typedef uint64_t w;
typedef struct { u a, b; unsigned char c[7]; double d; } pair;
typedef struct { u low : 5, mid : 11, high : 16; } bits;
typedef u (*fun)(u, u);
static u memory[64];
static volatile u noted;
KEEP u mix(u a, u b) { return (a ^ b * 2654435761u) + (a >> 7); }
KEEP u fold(u a, u b) { u s = a; for (u i = 0; i < (b & 7); i++) s = s * 31 + i; return s; }
KEEP void note(u a) { noted = noted * 33 + a; memory[a & 63] ^= a; }
KEEP u leaf(u a) { return a * 3 + 1; }
static fun table[4] = { mix, fold, mix, fold };
"#;

/// The kinds, in turn. Each writes a function `u pN(u a, u b)` and what it needs.
const KINDS: [fn(&mut Writer, u64); 14] = [
    switch_machine,
    tangled_gotos,
    computed_gotos,
    calls_on_both_sides,
    nested_loops,
    recursion,
    structures,
    variable_arguments,
    floating_point,
    volatile_accesses,
    long_jumps,
    callbacks,
    short_circuits,
    bit_fields_and_bytes,
];

struct Writer {
    random: Random,
    text: String,
}

impl Writer {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.below(n)
    }

    /// An expression of a, b, s, and numbers.
    fn value(&mut self) -> String {
        let atoms = ["a", "b", "s", "s", "memory[a & 63]", "memory[(s + b) & 63]"];
        let (x, y) = (self.random.pick(&atoms).to_owned(), self.random.pick(&atoms).to_owned());
        let number = self.below(1000);
        match self.below(9) {
            0 => format!("({x} >> ({y} & 31))"),
            1 => format!("({x} << ({y} & 15))"),
            2 => format!("({x} / ({y} | 1))"),
            3 => format!("({x} % ({y} | 1))"),
            4 => format!("({x} > {y} ? {number}u : {x})"),
            5 => format!("({x} * {number}u)"),
            6 => format!("({x} & ~{y})"),
            _ => format!("({x} {} {y})", self.random.pick(&["+", "-", "^", "|"])),
        }
    }

    fn condition(&mut self) -> String {
        let (x, y) = (self.value(), self.value());
        let how = self.random.pick(&["<", ">=", "==", "!=", "& 3 &&"]).to_owned();
        format!("({x} {how} {y})")
    }

    /// A statement that changes s or the memory, and may call.
    fn act(&mut self) -> String {
        let (x, y) = (self.value(), self.value());
        match self.below(8) {
            0 => format!("s = mix({x}, {y});"),
            1 => format!("s += fold({x}, {y});"),
            2 => format!("note({x});"),
            3 => format!("memory[{x} & 63] = {y};"),
            4 => format!("s ^= table[{x} & 3](s, {y});"),
            5 => format!("s -= leaf({x});"),
            _ => format!("s = s * 17 + {x};"),
        }
    }

    fn acts(&mut self, most: u64) -> String {
        (0..=self.below(most)).map(|_| self.act()).collect::<Vec<_>>().join(" ")
    }
}

fn begin(w: &mut Writer, n: u64) {
    w.line(&format!("static KEEP u p{n}(u a, u b) {{ u s = a + b * 7;"));
}

fn switch_machine(w: &mut Writer, n: u64) {
    begin(w, n);
    let cases = 3 + w.below(12);
    w.line("for (u pc = 0; pc < 40; pc++) { switch ((s >> 3) % 16) {");
    for case in 0..cases {
        let (acts, condition) = (w.acts(3), w.condition());
        let end = w
            .random
            .pick(&["break;", "continue;", "/* falls through */", "if (s & 1) break;", "pc += 2; break;"])
            .to_owned();
        let then = w.act();
        w.line(&format!("case {case}: {acts} if {condition} {{ {then} }} {end}"));
    }
    let acts = w.acts(2);
    w.line(&format!("default: {acts} }} s += pc; }} return s; }}"));
}

fn tangled_gotos(w: &mut Writer, n: u64) {
    begin(w, n);
    w.line("u left = 60;");
    let labels = 4 + w.below(6);
    for label in 0..labels {
        let (acts, condition) = (w.acts(2), w.condition());
        let (to, other) = (w.below(labels), w.below(labels));
        let second = if w.below(2) == 0 { format!("if ({} & 1) goto l{other};", w.value()) } else { String::new() };
        w.line(&format!("l{label}: if (left-- == 0) return s; {acts} if {condition} goto l{to}; {second}"));
    }
    w.line("return s ^ left; }");
}

fn computed_gotos(w: &mut Writer, n: u64) {
    let labels = 3 + w.below(6);
    begin(w, n);
    let names: Vec<String> = (0..labels).map(|label| format!("&&l{label}")).collect();
    w.line(&format!("static const void *const to[] = {{ {} }}; u left = 50, k = a ^ 5, t = b + 3;", names.join(", ")));
    w.line(&format!("goto *to[a % {labels}];"));
    for label in 0..labels {
        let (acts, value) = (w.acts(2), w.value());
        w.line(&format!(
            "l{label}: if (left-- == 0) return s + k * t; {acts} k += t; t ^= s; {{ const void *next = to[{value} % {labels}]; s += k; goto *next; }}"
        ));
    }
    w.line("}");
}

fn calls_on_both_sides(w: &mut Writer, n: u64) {
    begin(w, n);
    w.line("for (u i = 0; i < 9; i++) {");
    for _ in 0..=w.below(3) {
        let (condition, name) = (w.condition(), w.random.pick(&["mix", "fold"]).to_owned());
        let (x, y, p, q) = (w.value(), w.value(), w.value(), w.value());
        let (before, behind, other) = (w.acts(1), w.acts(1), w.acts(2));
        w.line(&format!("if {condition} {{ {before} u r = {name}({x}, i); s ^= r * 3 + {p}; {behind} }} else {{ u k = {q}; u r = {name}({y}, k); s += r ^ k; {other} }}"));
    }
    w.line("} return s; }");
}

fn nested_loops(w: &mut Writer, n: u64) {
    begin(w, n);
    let (acts, inner, last) = (w.acts(2), w.acts(2), w.acts(1));
    let (leave, skip, out) = (w.condition(), w.condition(), w.condition());
    w.line(&format!(
        "for (u i = 0; i < 8; i++) {{ {acts} u j = 0; while (j < (s & 7) + 1) {{ j++; if {skip} continue; {inner} if {leave} break; for (u k = j; k < 6; k += 2) {{ s += k * i; if {out} goto out{n}; }} }} {last} }} out{n}: return s; }}"
    ));
}

fn recursion(w: &mut Writer, n: u64) {
    let (acts, value, condition) = (w.acts(2), w.value(), w.condition());
    w.line(&format!(
        "static KEEP u r{n}(u a, u b, u depth) {{ u s = a ^ depth; if (depth == 0 || {condition}) return s + 1; {acts} u t = r{n}(b, {value}, depth - 1); if (t & 1) return t * 3 + r{n}(t, a, depth / 2); return t ^ s; }}"
    ));
    begin(w, n);
    w.line(&format!("return r{n}(a, b, 6) + r{n}(b, s, 5); }}"));
}

fn structures(w: &mut Writer, n: u64) {
    let (x, y, condition) = (w.value(), w.value(), w.condition());
    w.line(&format!(
        "static KEEP pair m{n}(u a, u b) {{ u s = a; pair r = {{ {x}, {y}, {{ 1, 2, 3 }}, 0.5 }}; r.c[a % 7] = b; return r; }}
static KEEP u t{n}(pair p, u s) {{ for (u i = 0; i < 7; i++) s = s * 5 + p.c[i]; return s ^ p.a - p.b + (u)(int64_t)(p.d * 4); }}"
    ));
    begin(w, n);
    let acts = w.acts(2);
    w.line(&format!(
        "pair p, q = m{n}(b, a); for (u i = 0; i < 6; i++) {{ if {condition} p = m{n}(s, i); else p = m{n}(i, a + s); {acts} s += t{n}(p, i) ^ t{n}(q, s); if (s & 2) q = p; }} return s; }}"
    ));
}

fn variable_arguments(w: &mut Writer, n: u64) {
    let acts = w.acts(2);
    w.line(&format!(
        "static KEEP u v{n}(u count, ...) {{ va_list l, m; va_start(l, count); va_copy(m, l); u s = 0, a = count, b = 5; for (u i = 0; i < count; i++) {{ switch (i % 3) {{ case 0: s += va_arg(l, u); break; case 1: s ^= (u)va_arg(l, double); break; default: s -= (u)va_arg(l, w); }} {acts} }} s += va_arg(m, u); va_end(m); va_end(l); return s; }}"
    ));
    begin(w, n);
    let condition = w.condition();
    w.line(&format!(
        "for (u i = 0; i < 4; i++) {{ if {condition} s += v{n}(3, s, (double)(a & 255), (w)b); else s ^= v{n}(5, i, 2.0, (w)s, a, (double)(s & 15)); }} return s; }}"
    ));
}

fn floating_point(w: &mut Writer, n: u64) {
    w.line(&format!(
        "static KEEP double g{n}(double x, double y) {{ return x * 0.5 + y; }}\nstatic KEEP float h{n}(float x, u k) {{ for (; k & 3; k--) x = x * 0.25f + 1; return x; }}"
    ));
    begin(w, n);
    let (x, y) = (w.value(), w.value());
    let (condition, acts) = (w.condition(), w.acts(1));
    w.line(&format!(
        "double d = a & 1023, e = b & 511; float f = (a & 63) * 0.5f; for (u i = 0; i < 7; i++) {{ if (d < e) d = g{n}(d, e) + i; else if (d == e || f != f) e = g{n}(e, 3); else {{ e += d * 0.125; f = h{n}(f, s); }} if {condition} {{ d = g{n}(e, (double)({x} & 255)); }} else {{ d = g{n}(d, (double)({y} & 127)); }} {acts} if (!(d < 1e6)) d = 1; if (!(e < 1e6)) e = 2; }} memcpy(&s, &f, 4); return s + (u)(int64_t)(d * 16) * 3 + (u)(int64_t)(e * 16); }}"
    ));
}

fn volatile_accesses(w: &mut Writer, n: u64) {
    begin(w, n);
    let (x, y, condition) = (w.value(), w.value(), w.condition());
    let (acts, other) = (w.acts(1), w.acts(1));
    w.line(&format!(
        "volatile u v = a, m[4] = {{ 1, 2, 3, b }}; for (u i = 0; i < 8; i++) {{ if {condition} {{ v = {x}; s += m[s & 3]; {acts} noted += v; }} else {{ v ^= {y}; m[s & 3] = s; {other} noted += v; }} s = s * 3 + v; }} return s + m[0] + m[1] + m[2] + m[3]; }}"
    ));
}

fn long_jumps(w: &mut Writer, n: u64) {
    let acts = w.acts(2);
    w.line(&format!(
        "static jmp_buf j{n};\nstatic KEEP void d{n}(u a, u b, u depth) {{ u s = a; {acts} if (depth == 0) longjmp(j{n}, (int)((s ^ b) & 7) + 1); d{n}(b, s, depth - 1); }}"
    ));
    begin(w, n);
    let (x, condition) = (w.value(), w.condition());
    w.line(&format!(
        "volatile u turn = 0, kept = s; int got = setjmp(j{n}); if (turn < 5) {{ turn++; kept = kept * 5 + (u)got; s = kept; if {condition} d{n}(kept, {x}, turn); else d{n}(turn, kept, 2); }} return kept ^ turn; }}"
    ));
}

fn callbacks(w: &mut Writer, n: u64) {
    let shift = w.below(9);
    w.line(&format!(
        "static int o{n}(const void *x, const void *y) {{ u a = *(const u *)x, b = *(const u *)y; a = a >> {shift} ^ a; b = b >> {shift} ^ b; return a < b ? -1 : a > b; }}"
    ));
    begin(w, n);
    let (x, y, condition) = (w.value(), w.value(), w.condition());
    w.line(&format!(
        "u list[11]; for (u i = 0; i < 11; i++) {{ s = mix(s, i); list[i] = s; }} qsort(list, 11, sizeof(u), o{n}); fun f = table[a & 3]; for (u i = 0; i < 11; i++) {{ if {condition} s += f(list[i], {x}); else s ^= f({y}, list[10 - i]); if (i == 5) f = table[s & 3]; }} return s; }}"
    ));
}

fn short_circuits(w: &mut Writer, n: u64) {
    begin(w, n);
    w.line("for (u i = 0; i < 7; i++) {");
    for _ in 0..=w.below(3) {
        let (one, two, three) = (w.condition(), w.condition(), w.condition());
        let (yes, no) = (w.acts(2), w.acts(2));
        let leave = w.random.pick(&["", "continue;", "break;", "return s;"]).to_owned();
        let form = match w.below(4) {
            0 => format!("{one} || ({two} && leaf(s) > i) || {three}"),
            1 => format!("({one} || {two}) && {three}"),
            2 => format!("({one} ? {two} : {three})"),
            _ => format!("{one} && !({two} || leaf(i) == s)"),
        };
        w.line(&format!("if ({form}) {{ {yes} {leave} }} else {{ {no} }}"));
    }
    w.line("s += i; } return s; }");
}

fn bit_fields_and_bytes(w: &mut Writer, n: u64) {
    begin(w, n);
    let (x, y, condition) = (w.value(), w.value(), w.condition());
    let acts = w.acts(1);
    w.line(&format!(
        "bits f = {{ a, b, 9 }}; union {{ u word; unsigned char bytes[4]; unsigned short halves[2]; }} z; char text[24]; z.word = a; for (u i = 0; i < 9; i++) {{ if {condition} {{ f.low += {x}; z.bytes[i & 3] ^= (unsigned char)s; f.high = s; }} else {{ f.mid -= {y}; z.halves[i & 1] += (unsigned short)s; f.high = i; }} {acts} s += f.low * 3 + f.mid + z.word; snprintf(text, sizeof text, \"%u\", s); s ^= (u)strlen(text) + (u)(signed char)text[1]; memmove(memory + (s & 15), memory + (i & 15), 40); }} return s ^ f.high; }}"
    ));
}

/// The file of the programs from this number on.
fn file(first: u64, count: u64) -> String {
    let mut text = PRELUDE.to_owned();
    for n in first..first + count {
        let mut writer = Writer { random: Random(n * 7 + 1), text: String::new() };
        KINDS[n as usize % KINDS.len()](&mut writer, n);
        text += &writer.text;
    }
    text += "int main(void) {\n";
    for n in first..first + count {
        let _ = writeln!(
            text,
            "{{ for (u i = 0; i < 64; i++) memory[i] = i * 40503u; noted = 0; u c = 0; for (u i = 0; i < 12; i++) {{ u r = p{n}(i * 2654435761u ^ i, i * 97u + 5); c = c * 31 + r; }} printf(\"{n} %u %u %u\\n\", c, noted, memory[c & 63]); }}"
        );
    }
    text + "return 0;\n}\n"
}

/// Each pass at its defaults and at its most eager, and all in a row, forced.
fn pipelines() -> Vec<String> {
    let forced = |pass: &transform::Pass| -> Option<String> {
        let settings: Vec<&str> = pass
            .parameters
            .iter()
            .filter_map(|parameter| match parameter.name {
                "threshold" => Some("threshold=-1000"),
                "only-divergent" => Some("only-divergent=no"),
                "growth" => Some("growth=8"),
                "registers" => Some("registers=2"),
                "allocator" => Some("allocator=div"),
                "loads" => Some("loads=simt"),
                "merge-loops" => Some("merge-loops=yes"),
                "interleave" => Some("interleave=yes"),
                "max-depth" => Some("max-depth=1"),
                _ => None,
            })
            .collect();
        (!settings.is_empty()).then(|| format!("{}:{}", pass.name, settings.join(",")))
    };
    let passes = || REGISTRY.iter().filter(|pass| !["none", "speculative"].contains(&pass.name));
    let eager: Vec<String> = passes().filter_map(forced).collect();
    let all = "fcs:threshold=-1000,meld:threshold=-1000,tail-merge:threshold=-1000,branch-fusion:threshold=-1000,\
               spill:registers=4,linearize:threshold=-1000";
    passes().map(|pass| pass.name.to_owned()).chain(eager).chain([all.to_owned()]).collect()
}

/// Builds and runs the programs of these numbers; how many changes the passes made.
fn same_output_for(first: u64, count: u64) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (source, bitcode, after, plain) = (path("a.c"), path("a.bc"), path("b.bc"), path("plain"));
    fs::write(&source, file(first, count)).unwrap();
    let words = ["-O0", "-std=gnu11", "-w", "-ffp-contract=off", "-o"].map(Into::into);
    build::output(
        "clang-19",
        words.into_iter().chain([plain.clone().into_os_string(), source.clone().into_os_string()]),
    );
    let expected = build::output(&plain, [""; 0]);
    assert_eq!(expected.lines().count() as u64, count, "{expected}");
    let level = ["-O1", "-O2", "-O3", "-Os"][(first / GROUP) as usize % 4];
    let flavour: &[&str] = match first / GROUP % 3 {
        1 => &["-fno-inline", "-mllvm", "-sink-common-insts=0", "-mllvm", "-hoist-common-insts=0"],
        2 => &["-mllvm", "-phi-node-folding-threshold=0", "-mllvm", "-two-entry-phi-node-folding-threshold=0"],
        _ => &[],
    };
    build::to_bitcode(&source, &bitcode, &[&[level, "-w", "-ffp-contract=off"], flavour].concat());
    let mut printed = Printed::default();
    differs(&printed.by(&bitcode, &[], &[]), &expected, level, "no pass", &source);
    let mut taken = 0;
    for passes in pipelines() {
        taken += build::transform(&bitcode, &passes, &after).iter().filter(|c| c.is_taken()).count();
        differs(&printed.by(&after, &[], &[]), &expected, level, &passes, &source);
    }
    taken
}

/// Fails with the first program that prints something else.
fn differs(got: &str, expected: &str, level: &str, passes: &str, source: &Path) {
    let lines = || got.lines().zip(expected.lines());
    if let Some((got, expected)) = lines().find(|(got, expected)| got != expected) {
        let kept = build::root().join("target/torture.c");
        let _ = fs::copy(source, &kept);
        panic!("at {level} after {passes}: {got:?} in place of {expected:?}; the source is {}", kept.display());
    }
    assert_eq!(got.lines().count(), expected.lines().count(), "at {level} after {passes}");
}

#[test]
fn a_few_small_programs_of_each_kind_print_the_same_after_every_pass() {
    let taken = same_output_for(0, GROUP);
    assert!(taken > 100, "the programs give the passes too little to do: {taken} changes");
}

/// COUNT programs from number FIRST on: `scripts/check-torture` runs a thousand.
#[test]
#[ignore = "takes minutes: scripts/check-torture runs it"]
fn many_small_programs_print_the_same_after_every_pass() {
    let number = |name: &str, or: u64| std::env::var(name).map_or(or, |text| text.parse().expect("a number"));
    let (first, count) = (number("FIRST", 0), number("COUNT", 1000));
    let progress = Progress::of("torture");
    let mut taken = 0;
    for start in (first..first + count).step_by(GROUP as usize) {
        let part = start..(first + count).min(start + GROUP);
        let known = progress.known(&part).and_then(|counts| counts.get("changes").copied());
        taken += known.unwrap_or_else(|| {
            let changes = same_output_for(part.start, part.end - part.start);
            progress.note(&part, &Counts::from([("changes".to_owned(), changes)]));
            changes
        });
        println!("programs up to {}: {taken} changes", part.end - 1);
    }
    println!("{count} programs, {taken} changes");
}
