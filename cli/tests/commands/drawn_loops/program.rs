//! OpenMP programs, each made from a number, of which iteration i is known to make so many turns of an inner loop: a
//! hash of i. Each turn runs one instruction that stands nowhere else, [`MARK`].

use std::fmt::Write;

/// The displacement of the long nop that a turn runs.
pub(super) const MARK: i64 = 0x1234_5678;

/// A number of programs, their sources, how to build them, and what their lanes are.
pub(super) struct Program {
    pub source: String,
    pub compiler: &'static str,
    pub flags: Vec<&'static str>,
    pub threads: u64,
    /// Whether a loop changes its thread's own variable, so that compilers make a copy of the first iteration.
    pub has_own: bool,
    /// By loop, by lane: its turns; none where the iteration has no marks.
    pub loops: Vec<Vec<Option<u32>>>,
}

/// What every source begins with. `h` is below 16, and is 0 for some.
const PRELUDE: &str = r#"#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
typedef unsigned u;
#define MARK __asm__ volatile("nopl 0x12345678(%rax,%rax)")
#define TURNS(n) for (u j = 0; j < (n); j++) MARK
static u mix(u i) { return (i * 2654435761u) >> 28; }
static inline void inlined(u n) { for (u j = 0; j < n; j++) MARK; }
__attribute__((noinline)) static u called(u n) { u s = n; for (u j = 0; j < n; j++) { MARK; s = s * 3 + j; } return s; }
static int key[4096], out[4096];
static u at[4097];
static void recursive(u n) { if (n) { MARK; recursive(n - 1); out[n] ^= 1; } }
"#;

/// The hash of a source, as the program has it.
fn mix(i: u64) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761) >> 28
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// True once in so many times.
    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

const SCHEDULES: [&str; 12] = [
    "",
    "",
    "",
    "schedule(static)",
    "schedule(static, 1)",
    "schedule(static, 3)",
    "schedule(static, 8)",
    "schedule(dynamic)",
    "schedule(dynamic, 4)",
    "schedule(guided)",
    "schedule(auto)",
    "schedule(runtime)",
];

/// A reduction's operator, the type of its variable, and what it takes.
const REDUCTIONS: [(&str, &str, &str); 14] = [
    ("+", "int", "s += (int)v"),
    ("+", "long", "s += v"),
    ("+", "float", "s += (float)v"),
    ("+", "double", "s += v"),
    ("*", "u", "s *= v | 1"),
    ("*", "double", "s *= 1 + v * 0.0001"),
    ("&", "u", "s &= v | 0xff00"),
    ("|", "long", "s |= v"),
    ("^", "int", "s ^= (int)v"),
    ("&&", "int", "s = s && v < 77"),
    ("||", "int", "s = s || v == 77"),
    ("max", "int", "s = (int)v > s ? (int)v : s"),
    ("min", "float", "s = v < s ? v : s"),
    ("max", "double", "s = v > s ? v : s"),
];

/// What an iteration does with a variable of its thread, which is 1 before the first one.
const OWN: [&str; 3] = [
    "if (own) { out[11] = id; own = 0; }",
    "if (own == 1) own = omp_get_thread_num() + 2;\n        out[own] ^= id;",
    "own += key[id & 4095];\n        out[own & 4095] = id;",
];

/// Bodies whose inner loop begins or ends by the iteration's own number, and how many marks iteration i runs there.
const TRIANGLES: [Small; 4] = [
    ("for (u j = id; j < 64; j++) MARK; out[id & 4095] = id;", |i| 64_u32.saturating_sub(i as u32)),
    ("u w = 0; for (u j = 0; j < id; j++) { MARK; w += key[j & 4095]; } out[id & 4095] = w;", |i| i as u32),
    ("int w = 0; for (int j = 0; j <= (int)id; j++) { MARK; w ^= key[j & 4095]; } out[id & 4095] = w;", |i| {
        i as u32 + 1
    }),
    ("u w = 0; for (u j = id * 3; j < id * 3 + 3; j++) { MARK; w += key[j & 4095]; } out[id & 4095] = w;", |_| 3),
];

/// Other bodies of real programs, and how many marks iteration i runs there: rows of a sparse matrix, searches, ways
/// out in several places, numbers that are halved, loops in loops, calls of itself, and locks.
const OTHERS: [Small; 14] = [
    (
        "int w = 0; for (u j = at[id & 4095]; j < at[(id & 4095) + 1]; j++) { MARK; w += key[j & 4095]; } \
         out[id & 4095] = w;",
        mixed,
    ),
    ("for (u j = at[id & 4095]; j < at[(id & 4095) + 1]; j++) MARK;", mixed),
    ("u a = id / 7, b = id % 7; for (u j = a; j < a + b; j++) MARK; out[id & 4095] = a;", |i| i as u32 % 7),
    (
        "if (key[id & 4095] & 1) continue; if (key[id & 4095] & 2) { TURNS(3); continue; } TURNS(mix(id)); \
         out[id & 4095] = 1;",
        |i| match mix(i) {
            of if of & 1 > 0 => 0,
            of if of & 2 > 0 => 3,
            of => of,
        },
    ),
    ("for (u j = id; j; j >>= 1) MARK; out[id & 4095] = id;", |i| 64 - i.leading_zeros()),
    ("u j = 0; for (; j < 40; j++) { MARK; if (key[(id + j) & 4095] == 3) break; } out[id & 4095] = j;", |i| {
        (0..40).find(|j| mix((i + j) & 4095) == 3).map_or(40, |j| j as u32 + 1)
    }),
    ("for (u a = 0; a < id % 5; a++) for (u b = a; b < 5; b++) MARK; out[id & 4095] = id;", |i| {
        (0..i as u32 % 5).map(|a| 5 - a).sum()
    }),
    ("for (u j = 0; j < 4; j++) if (key[(id + j) & 4095] & 1) MARK; out[id & 4095] = id;", |i| {
        (0..4).map(|j| mix((i + j) & 4095) & 1).sum()
    }),
    ("recursive(mix(id)); out[id & 4095] = id;", mixed),
    ("#pragma omp critical\n        { TURNS(mix(id)); out[3]++; }", mixed),
    ("TURNS(mix(id));\n#pragma omp atomic\n        out[3] += id;", mixed),
    (
        "int row[8]; for (u j = 0; j < 8; j++) row[j] = key[(id + j) & 4095]; u m = mix(id); while (m--) { MARK; \
         row[m & 7] += m; } out[id & 4095] = row[id & 7];",
        mixed,
    ),
    (
        "u m = id, w = 0; do { MARK; w++; m = m & 1 ? 3 * m + 1 : m / 2; } while (m > 1 && w < 30); out[id & 4095] = w;",
        |i| {
            let (mut m, mut w) = (i as u32, 0);
            loop {
                w += 1;
                m = if m & 1 > 0 { m.wrapping_mul(3).wrapping_add(1) } else { m / 2 };
                if m <= 1 || w >= 30 {
                    return w;
                }
            }
        },
    ),
    (
        "if (!key[id & 4095]) { out[3] = id; } else if (key[id & 4095] & 1) { TURNS(key[id & 4095]); } else { for (u j = 0; j < id % 3; j++) MARK; }",
        |i| match mix(i) {
            of if of & 1 > 0 => of,
            0 => 0,
            _ => i as u32 % 3,
        },
    ),
];

fn mixed(i: u64) -> u32 {
    mix(i)
}

/// Whether the compiler is asked to unroll the loops of a program of this number.
pub(super) fn is_unrolled(number: u64) -> bool {
    number % 8 == 7
}

/// Whether the iterations of a program of this number run straight through, so that compilers unroll and vectorise.
pub(super) fn is_straight(number: u64) -> bool {
    number % 16 == 11
}

/// Program number so and so.
pub(super) fn program(number: u64) -> Program {
    let random = &mut Random(number.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let compiler = random.pick(&["gcc", "clang-19"]);
    let mut flags = vec![random.pick(&["-O0", "-O1", "-O2", "-O2", "-O3"])];
    if !random.once_in(3) {
        flags.push("-g");
    }
    let threads = random.pick(&[1, 2, 3, 4, 4, 4, 7]);
    let mut made = Program { source: PRELUDE.to_owned(), compiler, flags, threads, has_own: false, loops: Vec::new() };
    let loops = random.pick(&[1, 1, 2, 3]);
    let mut calls = String::new();
    if is_unrolled(number) {
        made.flags[0] = random.pick(&["-O2", "-O3"]);
        let those: &[_] = if compiler == "gcc" { &["-funroll-loops"] } else { &["-fno-vectorize", "-fvectorize"] };
        made.flags.push(random.pick(those));
    }
    if is_straight(number) {
        made.flags[0] = random.pick(&["-O2", "-O3"]);
        made.flags.extend((compiler == "gcc" && random.once_in(2)).then_some("-funroll-loops"));
    }
    for index in 0..loops {
        match () {
            () if is_unrolled(number) || is_straight(number) => small(&mut made, random, index, is_straight(number)),
            () => function(&mut made, random, index),
        }
        // So that no compiler knows how many iterations there are.
        let _ = writeln!(calls, "    loop{index}(c);");
    }
    let _ = write!(
        made.source,
        "int main(int c, char **v) {{\n    (void)v;\n    for (u i = 0; i < 4096; i++) at[i + 1] = at[i] + (key[i] = mix(i));\n{calls}    \
         printf(\"%d\\n\", out[7]);\n    return 0;\n}}\n"
    );
    made
}

/// A function with a parallel loop, and its lanes.
fn function(made: &mut Program, random: &mut Random, index: u64) {
    let depth = if random.once_in(4) { 1 + random.below(3) } else { 1 };
    let sizes: Vec<u64> = match depth {
        1 => vec![random.pick(&[1, 2, 3, 5, 60, 64, 100, 257, 500, 701])],
        2 => vec![random.pick(&[3, 16, 21]), random.pick(&[1, 5, 16, 30])],
        _ => vec![random.pick(&[3, 5]), random.pick(&[4, 7]), random.pick(&[3, 8])],
    };
    let n: u64 = sizes.iter().product();
    let construct = random.below(12);
    let reduction = (construct < 9 && random.once_in(3)).then(|| random.pick(&REDUCTIONS));
    let schedule = random.pick(&SCHEDULES);
    let ordered = construct < 5 && depth == 1 && !schedule.is_empty() && random.once_in(6);
    let mut clauses = String::new();
    if depth > 1 {
        let _ = write!(clauses, " collapse({depth})");
    }
    if let Some((operator, ..)) = reduction {
        let _ = write!(clauses, " reduction({operator} : s)");
    }
    // Each thread's own variable, from which compilers make copies of its first iteration. Drawn aside, so that the
    // other programs stay what they are.
    let own = Random(random.0 ^ 0x0f1a_6500).pick(&[None, None, None, Some(0), Some(1), Some(2), None, None]);
    let own = own.filter(|_| construct < 9).map(|which: usize| OWN[which]);
    if own.is_some() {
        made.has_own = true;
        clauses.push_str(" firstprivate(own)");
    }
    let shared_out = format!("{clauses} {schedule}{}", if ordered { " ordered" } else { "" });
    let if_false = if random.once_in(12) { " if(c > 5)" } else { "" };
    let pragma = match construct {
        0..6 => format!("parallel for{shared_out}{if_false}"),
        6..9 => format!("for{shared_out}"),
        9 => format!("target teams distribute parallel for{clauses}"),
        10 => format!("taskloop{clauses} grainsize({})", random.pick(&[1, 3, 10])),
        _ => format!("parallel for{clauses} {schedule}"),
    };
    let constant = random.once_in(2);
    // Of one iteration that it knows of a compiler makes no loop.
    let size = |size: u64| if constant && size > 1 { size.to_string() } else { format!("{size} * c") };
    // Of pointers gcc makes a loop without end there.
    let forms = if construct == 9 { 7 } else { 8 };
    let (heads, id, reversed) = heads(random, forms, &sizes, &size);
    let is_plain = depth == 1 && reduction.is_none() && random.once_in(10);
    let mut body = if is_plain { plain(random) } else { body(random) };
    let triangle =
        Random(random.0 ^ 0x0077_1a90).pick(&[None, None, None, Some(0), None, Some(1), None, Some(2), Some(3)]);
    let triangle = triangle.filter(|_| !is_plain).map(|which: usize| TRIANGLES[which]);
    if let Some((text, _)) = triangle {
        body = text.to_owned();
    }
    let other = Random(random.0 ^ 0x0743_2511).below(2 * OTHERS.len() as u64) as usize;
    let other = OTHERS.get(other).filter(|_| !is_plain && triangle.is_none());
    if let Some((text, _)) = other {
        body = (*text).to_owned();
    }
    if ordered {
        body.push_str("\n#pragma omp ordered\n        out[5] = out[5] * 3 + out[(u)(id) & 4095];");
    }
    if let Some(own) = own {
        body = format!("{own}\n        {body}");
    }
    if let Some((.., take)) = reduction {
        let _ = write!(body, "\n        {{ u v = out[(u)(id) & 4095] & 63; {take}; }}");
    }
    let open = if random.once_in(2) { "    " } else { "" };
    let text = format!("#pragma omp {pragma}\n    {heads} {{\n        u id = {id};{open}\n        {body}\n    }}\n");
    let kind = reduction.map_or("int", |(_, kind, _)| kind);
    let around = match construct {
        6 => format!("#pragma omp parallel\n    {{\n{text}    }}\n"),
        7 => format!(
            "#pragma omp parallel num_threads(3)\n    {{\n    int t = omp_get_thread_num();\n{text}#pragma omp single\n    out[t] = 1;\n    }}\n"
        ),
        8 => format!("#pragma omp parallel\n    {{\n    for (u k = 0; k < 3; k++) out[k] = k;\n{text}    }}\n"),
        10 => format!("#pragma omp parallel\n#pragma omp single\n    {{\n{text}    }}\n"),
        _ => text,
    };
    let _ = write!(
        made.source,
        "__attribute__((noinline)) static void loop{index}(int c) {{\n    {kind} s = 1;\n    int own = c;\n{around}    \
         out[9] += s > 1 + own;\n}}\n"
    );
    let of = triangle.or(other.copied()).map_or(mixed as fn(u64) -> u32, |(_, marks)| marks);
    let turns = |i: u64| (!is_plain).then(|| of(i));
    let numbers: Vec<u64> = if reversed { (0..n).rev().collect() } else { (0..n).collect() };
    made.loops.push(numbers.into_iter().map(turns).collect());
}

/// How many of these bits are set.
fn bits(of: u32, mask: u32) -> u32 {
    (of & mask).count_ones()
}

/// A small body, and how many marks iteration i runs there.
type Small = (&'static str, fn(u64) -> u32);

/// Bodies that compilers unroll. The last ones do the same twice, so that half an iteration looks like one.
const SMALL: [Small; 10] = [
    ("if (v & 1) MARK; if (v & 2) MARK; out[i] = v * 3 + 1;", |i| bits(mix(i), 3)),
    ("if (v > 7) MARK; else out[i] = v;", |i| u32::from(mix(i) > 7)),
    ("if (v & 4) { MARK; out[i] = v * 5; }", |i| bits(mix(i), 4)),
    ("u w = v * v; if (v & 1) { MARK; w ^= 21; } if (v & 8) { MARK; w += out[v]; } out[i] = w;", |i| bits(mix(i), 9)),
    ("if (v & 1) { MARK; if (v & 2) MARK; } out[i] = v;", |i| (mix(i) & 1) * (1 + (mix(i) >> 1 & 1))),
    ("if (v & 2) MARK;", |i| bits(mix(i), 2)),
    ("if (v & 1) MARK; if (key[i + 1] & 1) MARK; out[i] = v;", |i| bits(mix(i), 1) + bits(mix(i + 1), 1)),
    ("if (key[2 * i] & 1) MARK; if (key[2 * i + 1] & 1) MARK; out[i] = v;", |i| {
        bits(mix(2 * i), 1) + bits(mix(2 * i + 1), 1)
    }),
    (
        "if (key[2 * i] & 2) MARK; out[2 * i] = key[2 * i]; if (key[2 * i + 1] & 2) MARK; out[2 * i + 1] = key[2 * i + 1];",
        |i| bits(mix(2 * i), 2) + bits(mix(2 * i + 1), 2),
    ),
    ("if (key[2 * i] & 1) MARK; out[2 * i] = v; if (key[2 * i + 1] & 1) MARK; out[2 * i + 1] = v;", |i| {
        bits(mix(2 * i), 1) + bits(mix(2 * i + 1), 1)
    }),
];

/// Bodies that run straight through, and how many marks an iteration runs there; none where a mark would keep compilers
/// from making vectors of it. The ones at the end do the same twice.
const STRAIGHT: [(&str, Option<u32>); 10] = [
    ("MARK; out[i] = v * 3 + 1;", Some(1)),
    ("MARK; out[v] = i;", Some(1)),
    ("MARK; out[i] = key[v] + key[i + 1];", Some(1)),
    ("out[i] = v * 3 + 1;", None),
    ("float w = v; out[i] = w * 0.5f + 3;", None),
    ("out[i] = key[i] + key[i + 1] * 7 + key[i + 2];", None),
    ("out[v] = key[i + 1] ^ i;", None),
    ("out[i] = v > 7 ? v - 7 : 7 - v;", None),
    ("MARK; out[2 * i] = v; MARK; out[2 * i + 1] = v;", Some(2)),
    ("out[2 * i] = v; out[2 * i + 1] = v ^ 5;", None),
];

/// A function with a parallel loop that the compiler may unroll, and its lanes; of one that runs straight through, or
/// has branches.
fn small(made: &mut Program, random: &mut Random, index: u64, is_straight: bool) {
    let n = random
        .pick(&[3, 7, 64, 100, 100, 128, 257, 257, 320, 500, 500, 701, 701, 1024, 1024, 1500, 1500, 2000, 2000, 2000]);
    let size = if random.once_in(3) { n.to_string() } else { format!("{n} * c") };
    // A chunk has more iterations than a turn.
    let chunks = [
        "",
        "",
        "schedule(static)",
        "schedule(static, 16)",
        "schedule(dynamic, 16)",
        "schedule(dynamic, 61)",
        "schedule(guided, 16)",
    ];
    let schedule = random.pick(&chunks);
    let nowait = if random.once_in(3) { "nowait" } else { "" };
    let pragma = if made.compiler == "gcc" || is_straight || random.once_in(3) {
        String::new()
    } else {
        format!("#pragma clang loop unroll_count({})\n", random.pick(&[2, 3, 4, 8]))
    };
    let head = random.pick(&["int i = 0", "u i = 0", "long i = 0"]);
    let (small, straight) = (random.pick(&SMALL), random.pick(&STRAIGHT));
    let body = if is_straight { straight.0 } else { small.0 };
    let _ = write!(
        made.source,
        "__attribute__((noinline)) static void loop{index}(int c) {{\n    (void)c;\n#pragma omp parallel\n    {{\n\
         #pragma omp for {schedule} {nowait}\n{pragma}    for ({head}; i < {size}; i++) {{\n        u v = key[i];\n        \
         {body}\n    }}\n    }}\n}}\n"
    );
    let marks = |i| if is_straight { straight.1 } else { Some(small.1(i)) };
    made.loops.push((0..n).map(marks).collect());
}

/// The heads of loops in each other, the number of an iteration, and whether numbers fall.
fn heads(random: &mut Random, forms: u64, sizes: &[u64], size: &dyn Fn(u64) -> String) -> (String, String, bool) {
    if let [n] = sizes {
        let n = size(*n);
        let (head, id, falls) = match random.below(forms) {
            0 | 1 => (format!("for (int i = 0; i < {n}; i++)"), "i", false),
            2 => (format!("for (int i = 0; i <= {n} - 1; i++)"), "i", false),
            3 => (format!("for (int i = {n} - 1; i >= 0; i--)"), "i", true),
            4 => (format!("for (u i = 0; i < (u)({n}); i++)"), "i", false),
            5 => (format!("for (long i = 3; i < {n} + 3; i++)"), "i - 3", false),
            6 => (format!("for (int i = 0; i < 2 * ({n}); i += 2)"), "i / 2", false),
            _ => (format!("for (const int *p = key; p < key + {n}; p++)"), "p - key", false),
        };
        return (head, id.to_owned(), falls);
    }
    let names = ["z", "y", "x"];
    let names = &names[3 - sizes.len()..];
    let all: Vec<String> = names
        .iter()
        .zip(sizes)
        .map(|(name, n)| format!("for (int {name} = 0; {name} < {}; {name}++)", size(*n)))
        .collect();
    let mut id = names[0].to_owned();
    for (name, n) in names.iter().zip(sizes).skip(1) {
        id = format!("({id}) * {n} + {name}");
    }
    (all.join("\n    "), id, false)
}

/// A body without an inner loop.
fn plain(random: &mut Random) -> String {
    random
        .pick(&[
            "out[id & 4095] = key[id & 4095] * 3 + 1;",
            "if (key[id & 4095] & 1) out[id & 4095] = key[id & 4095] * 3;",
            "out[id & 4095] = key[id & 4095] > 7 ? key[id & 4095] - 7 : key[(id + 1) & 4095];",
        ])
        .to_owned()
}

/// A body of which iteration `id` makes `mix(id)` turns.
fn body(random: &mut Random) -> String {
    let store = "out[id & 4095] = id * 3;";
    match random.below(12) {
        0 => format!("for (u j = 0; j < mix(id); j++) MARK; {store}"),
        1 => "u w = id;\n        for (u j = 0; j < mix(id); j++) {\n            MARK;\n            w = w * 5 + j;\n        \
              }\n        out[id & 4095] = w;"
            .to_owned(),
        2 => format!("u m = key[id & 4095];\n        while (m > 0) {{\n            m--;\n            MARK;\n        }}\n        {store}"),
        3 => "out[id & 4095] = called(mix(id));".to_owned(),
        4 => format!("inlined(mix(id)); {store}"),
        5 => format!("TURNS(mix(id)); {store}"),
        6 => format!("if (mix(id) == 0) continue;\n        for (u j = 0; j < mix(id); j++) MARK;\n        {store}"),
        7 => format!(
            "for (u a = 0; a < mix(id) / 4; a++)\n            for (u b = 0; b < 4; b++) MARK;\n        for (u j = 0; \
             j < mix(id) % 4; j++) MARK;\n        {store}"
        ),
        8 => format!("u m = mix(id);\n        if (m) do {{ MARK; if (m & 1) out[id & 4095] ^= m; }} while (--m);\n        {store}"),
        9 => format!(
            "switch (id & 3) {{\n        case 0: TURNS(mix(id)); break;\n        case 1: inlined(mix(id)); break;\n        \
             default: for (u j = mix(id); j > 0; j--) MARK;\n        }}\n        {store}"
        ),
        10 => "float w = key[id & 4095];\n        for (int j = 0; j < key[id & 4095]; j++) { MARK; w = w * 0.5f + j; }\n        \
               out[id & 4095] = (int)w;"
            .to_owned(),
        _ => format!(
            "for (u j = 0;; j++) {{\n            if (j >= mix(id)) break;\n            MARK;\n            if (out[j] == \
             -1) out[j] = 0;\n        }}\n        {store}"
        ),
    }
}
