//! Random µ-SIMD programs: a few variables, branches forwards and backwards to anywhere.

use std::fmt::Write;

/// Numbers by chance.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.below(all.len() as u64) as usize]
    }
}

const VARIABLES: [&str; 6] = ["u", "v", "w", "x", "y", "z"];
/// `tid` and a parameter come often: values that threads share, or count by, are to be seen.
const OPERANDS: [&str; 15] = ["u", "v", "w", "x", "y", "z", "tid", "tid", "n", "n", "0", "1", "2", "3", "-1"];

/// The program of a seed.
pub fn program(seed: u64) -> String {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x51ed);
    for _ in 0..4 {
        dice.below(2);
    }
    let lines = 6 + dice.below(22);
    let mut text = String::new();
    for line in 0..lines {
        let v = dice.of(&VARIABLES);
        let (a, b) = (dice.of(&OPERANDS), dice.of(&OPERANDS));
        write!(text, "l{line}: ").unwrap();
        let label = dice.below(lines + 1);
        match dice.below(20) {
            0..6 => writeln!(text, "{v} = {a} + {b}"),
            6..9 => writeln!(text, "{v} = {a} × {b}"),
            9..12 => writeln!(text, "{v} = {a} {} {b}", dice.of(&["-", "<", "=", "%", "&", ">>"])),
            12 => writeln!(text, "{v} = {a}"),
            13 => writeln!(text, "{v} = {} {a}", dice.of(&["-", "!"])),
            14 => writeln!(text, "{v} = ↓{a}"),
            15 => writeln!(text, "↑{a} = {b}"),
            16 if dice.below(3) == 0 => writeln!(text, "{v} a= {a} + 2"),
            16 => writeln!(text, "sync"),
            17 if dice.below(3) == 0 => writeln!(text, "jump l{label}"),
            _ => writeln!(text, "{} {v}, l{label}", dice.of(&["bz", "bnz"])),
        }
        .unwrap();
    }
    writeln!(text, "l{lines}: stop").unwrap();
    text
}
