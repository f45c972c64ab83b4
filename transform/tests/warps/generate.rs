//! Random functions with marks, as LLVM IR text for a GPU, with variables in memory: blocks with jumps to any of them,
//! or nested loops and branches.

use std::fmt::Write;

/// A small generator of numbers: xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

const VARIABLES: u64 = 5;

struct Maker {
    numbers: Numbers,
    text: String,
    next: usize,
    /// Names of marks that may still be put somewhere, with their kind.
    marks: Vec<(u64, u64, u64)>,
    /// Labels of the loops around: where a turn ends, where the loop ends.
    loops: Vec<(usize, usize)>,
    budget: u64,
}

/// The function of this number.
pub fn function(seed: u64) -> String {
    let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    numbers.below(2);
    let marks = (0..1 + numbers.below(3)).map(|name| (name, [0, 0, 2, 3, 8][numbers.below(5) as usize], 1)).collect();
    let mut maker = Maker { numbers, text: String::new(), next: 0, marks, loops: Vec::new(), budget: 26 };
    for x in 0..VARIABLES {
        maker.line(&format!("%x{x} = alloca i32"));
    }
    maker.line("%fuel = alloca i32");
    maker.line("%tid = call i32 @tid()");
    for (x, value) in ["%tid", "%p", "%tid", "7", "%p"].iter().enumerate() {
        maker.line(&format!("store i32 {value}, ptr %x{x}"));
    }
    maker.line("store i32 25, ptr %fuel");
    if maker.numbers.below(3) > 0 {
        // At the beginning of the function, where they usually stand.
        let all: Vec<_> = (0..maker.marks.len()).collect();
        all.into_iter().for_each(|_| maker.mark());
    }
    if seed.is_multiple_of(2) {
        maker.jumps()
    } else {
        maker.statements(0)
    }
    maker.line("br label %end");
    maker.text += "end:\n";
    for x in 0..VARIABLES {
        maker.log(x);
    }
    format!("define void @f{seed}(i32 %p) {{\n{}  ret void\n}}\n", maker.text)
}

impl Maker {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "  {text}");
    }

    fn name(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn load(&mut self, variable: u64) -> String {
        let name = format!("%v{}", self.name());
        self.line(&format!("{name} = load i32, ptr %x{variable}"));
        name
    }

    fn log(&mut self, variable: u64) {
        let value = self.load(variable);
        self.line(&format!("store i32 {value}, ptr @log"));
    }

    /// The next mark: first where lanes join, then where they wait, once or twice.
    fn mark(&mut self) {
        let Some((name, enough, kind)) = self.marks.pop() else { return };
        self.line(&format!("call void asm sideeffect \"// .lockstep.marks {kind}, {enough}, m{name}\", \"\"()"));
        if kind == 1 || self.numbers.below(8) == 0 {
            let at = self.numbers.below(self.marks.len() as u64 + 1) as usize;
            self.marks.insert(at, (name, 0, 2));
        }
    }

    fn work(&mut self) {
        for _ in 0..=self.numbers.below(2) {
            let [to, a, b] = [0, 1, 2].map(|_| self.numbers.below(VARIABLES));
            let (a, b) = (self.load(a), self.load(b));
            let made = format!("%v{}", self.name());
            let operation = ["add", "sub", "mul", "xor", "and", "or"][self.numbers.below(6) as usize];
            self.line(&format!("{made} = {operation} i32 {a}, {b}"));
            let more = format!("%v{}", self.name());
            let constant = self.numbers.below(99);
            match self.numbers.below(4) {
                0 => self.line(&format!("{more} = call i32 @mix(i32 {made})")),
                _ => self.line(&format!("{more} = add i32 {made}, {constant}")),
            }
            self.line(&format!("store i32 {more}, ptr %x{to}"));
        }
        if self.numbers.below(3) == 0 {
            let variable = self.numbers.below(VARIABLES);
            self.log(variable);
        }
    }

    fn condition(&mut self) -> String {
        let variable = self.numbers.below(VARIABLES);
        let value = self.load(variable);
        let (shifted, low, made) = (self.name(), self.name(), format!("%v{}", self.name()));
        let (by, mask) = (self.numbers.below(4), [1, 3, 3, 7][self.numbers.below(4) as usize]);
        self.line(&format!("%v{shifted} = lshr i32 {value}, {by}"));
        self.line(&format!("%v{low} = and i32 %v{shifted}, {mask}"));
        self.line(&format!("{made} = icmp ne i32 %v{low}, 0"));
        made
    }

    /// Whether there is fuel left; it is less now.
    fn burnt(&mut self) -> String {
        let (had, left, made) = (self.name(), self.name(), format!("%v{}", self.name()));
        self.line(&format!("%v{had} = load i32, ptr %fuel"));
        self.line(&format!("%v{left} = sub i32 %v{had}, 1"));
        self.line(&format!("store i32 %v{left}, ptr %fuel"));
        self.line(&format!("{made} = icmp sgt i32 %v{left}, 0"));
        made
    }

    /// Blocks with jumps to any of them; jumps backwards need fuel.
    fn jumps(&mut self) {
        let blocks = 4 + self.numbers.below(8);
        self.line("br label %B0");
        for block in 0..blocks {
            let _ = writeln!(self.text, "B{block}:");
            if self.numbers.below(2) == 0 {
                self.mark();
            }
            self.work();
            let fuel = self.burnt();
            let condition = self.condition();
            let mut to = |from: u64| match from + self.numbers.below(blocks + 2 - from) {
                to if to >= blocks => "end".to_owned(),
                to => format!("B{to}"),
            };
            let [back, near, far] = [to(0), to(block + 1), to(block + 1)];
            match self.numbers.below(4) {
                0 => self.line(&format!("br i1 {condition}, label %{near}, label %{far}")),
                1 => self.line(&format!("br i1 {condition}, label %B{}, label %{near}", block + 1)),
                _ => {
                    let both = format!("%v{}", self.name());
                    self.line(&format!("{both} = and i1 {fuel}, {condition}"));
                    self.line(&format!("br i1 {both}, label %{back}, label %{near}"));
                }
            }
        }
        let _ = writeln!(self.text, "B{blocks}:");
    }

    fn statements(&mut self, depth: u64) {
        for _ in 0..1 + self.numbers.below(4) {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u64) {
        // Lanes mostly wait in loops.
        let is_wait = self.marks.last().is_some_and(|mark| mark.2 == 2);
        if self.numbers.below(2) == 0 && !(is_wait && self.loops.is_empty()) {
            self.mark();
        }
        if self.budget == 0 || depth > 3 {
            return self.work();
        }
        self.budget -= 1;
        match self.numbers.below(8) {
            0 | 1 => {
                let (condition, yes, no, behind) = (self.condition(), self.name(), self.name(), self.name());
                self.line(&format!("br i1 {condition}, label %L{yes}, label %L{no}"));
                for arm in [yes, no] {
                    let _ = writeln!(self.text, "L{arm}:");
                    self.statements(depth + 1);
                    self.line(&format!("br label %L{behind}"));
                }
                let _ = writeln!(self.text, "L{behind}:");
            }
            2..=4 => {
                let (turn, ends, behind) = (self.name(), self.name(), self.name());
                self.line(&format!("br label %L{turn}\nL{turn}:"));
                self.loops.push((ends, behind));
                self.statements(depth + 1);
                self.loops.pop();
                self.line(&format!("br label %L{ends}\nL{ends}:"));
                let (fuel, condition, both) = (self.burnt(), self.condition(), self.name());
                self.line(&format!("%v{both} = and i1 {fuel}, {condition}"));
                self.line(&format!("br i1 %v{both}, label %L{turn}, label %L{behind}\nL{behind}:"));
            }
            5 if !self.loops.is_empty() => {
                let which = self.numbers.below(self.loops.len() as u64) as usize;
                let (ends, behind) = self.loops[which];
                let to = if self.numbers.below(2) == 0 { ends } else { behind };
                let (condition, rest) = (self.condition(), self.name());
                self.line(&format!("br i1 {condition}, label %L{to}, label %L{rest}\nL{rest}:"));
            }
            6 => {
                let (condition, rest, leave) = (self.condition(), self.name(), self.name());
                self.line(&format!("br i1 {condition}, label %L{rest}, label %L{leave}\nL{leave}:"));
                self.log(0);
                self.line("ret void");
                let _ = writeln!(self.text, "L{rest}:");
            }
            _ => self.work(),
        }
    }
}
