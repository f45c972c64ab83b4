//! Random functions whose lanes wait for each other, as LLVM IR text, with variables in memory: locks, whose loops
//! stand in the code or in functions of their own, and flags; in the arms of branches, in loops that are left early,
//! and behind short circuits.

use std::fmt::Write;

/// A small generator of numbers: xorshift.
#[derive(Clone)]
struct Numbers(u64);

impl Numbers {
    fn of(seed: u64) -> Numbers {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        numbers.below(2);
        numbers
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Locks, flags and what they guard; functions that take a lock, give it back, or do both.
pub const PRELUDE: &str = "
@lock0 = global i32 0
@lock1 = global i32 0
@mutex0 = global i32 0
@mutex1 = global i32 0
@flag0 = global i32 0
@flag1 = global i32 0
@count0 = global i32 0
@count1 = global i32 0
declare void @note(i32)
declare i32 @f(i32)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
define void @take0() noinline {
  br label %again
again:
  %was = atomicrmw xchg ptr @lock0, i32 1 acquire
  %free = icmp eq i32 %was, 0
  br i1 %free, label %on, label %again
on:
  ret void
}
define void @take1() noinline {
  br label %again
again:
  %pair = cmpxchg ptr @lock1, i32 0, i32 1 acquire monotonic
  %free = extractvalue { i32, i1 } %pair, 1
  br i1 %free, label %on, label %again
on:
  ret void
}
define void @give0() noinline {
  store atomic i32 0, ptr @lock0 release, align 4
  ret void
}
define void @give1() noinline {
  store atomic i32 0, ptr @lock1 release, align 4
  ret void
}
define void @section0() noinline {
  call void @take0()
  %was = load i32, ptr @count0
  %is = add i32 %was, 1
  store i32 %is, ptr @count0
  call void @give0()
  ret void
}
define void @section1() noinline {
  %taken = call i32 @pthread_mutex_lock(ptr @mutex1)
  %was = load i32, ptr @count1
  %is = add i32 %was, 5
  store i32 %is, ptr @count1
  %given = call i32 @pthread_mutex_unlock(ptr @mutex1)
  ret void
}
";

struct Maker {
    numbers: Numbers,
    /// Draws that an arm makes on its own, where it is else like the arm before.
    own: Option<(Numbers, u64)>,
    text: String,
    /// Of its beginning.
    variables: String,
    next: usize,
    budget: u64,
    /// The lanes that may come here.
    lanes: u64,
    /// The kinds of locks that the lane has: none is taken twice.
    held: Vec<u64>,
    /// Where the loops around end.
    ends: Vec<usize>,
}

/// The function of this number.
pub fn function(seed: u64) -> String {
    let numbers = Numbers::of(seed);
    let (text, variables, held, ends) = (String::new(), String::new(), Vec::new(), Vec::new());
    let mut maker = Maker { numbers, own: None, text, variables, next: 0, budget: 9, lanes: 15, held, ends };
    maker.statements(0);
    maker.statements(0);
    let Maker { variables, text, .. } = maker;
    let (begin, end) = ("  %x = alloca i32\n  store i32 7, ptr %x\n", "  %end = load i32, ptr %x\n");
    let end = format!("{end}  call void @note(i32 %end)\n  ret void\n");
    format!("define void @f{seed}(i32 %tid) {{\n{begin}{variables}{text}{end}}}\n")
}

impl Maker {
    fn below(&mut self, bound: u64) -> u64 {
        let drawn = self.numbers.below(bound);
        let Some((own, one_in)) = &mut self.own else { return drawn };
        if own.below(*one_in) == 0 { own.below(bound) } else { drawn }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "  {text}");
    }

    fn name(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn label(&mut self, label: usize) {
        let _ = writeln!(self.text, "L{label}:");
    }

    /// Control goes on in a new block.
    fn new_block(&mut self) -> usize {
        let label = self.name();
        self.line(&format!("br label %L{label}"));
        self.label(label);
        label
    }

    /// A condition by which lanes part, and for which lanes it holds: often for one alone.
    fn condition(&mut self) -> (String, u64) {
        let [low, made] = [self.name(), self.name()];
        let (mask, number) = match self.below(6) {
            0 => (1, 0),
            1 => (2, 0),
            _ => (3, self.below(4)),
        };
        self.line(&format!("%v{low} = and i32 %tid, {mask}"));
        let how = ["eq", "ne", "eq", "ult"][self.below(4) as usize];
        self.line(&format!("%v{made} = icmp {how} i32 %v{low}, {number}"));
        let holds = |lane: u64| match how {
            "eq" => lane & mask == number,
            "ne" => lane & mask != number,
            _ => lane & mask < number,
        };
        (format!("%v{made}"), (0..4).filter(|&lane| holds(lane)).map(|lane| 1 << lane).sum())
    }

    /// Waits in a loop until what the lines read is `wanted`.
    fn spin(&mut self, read: impl Fn(usize) -> String, wanted: &str) {
        let again = self.new_block();
        let [value, ends, on] = [self.name(), self.name(), self.name()];
        self.line(&read(value));
        self.line(&format!("%v{ends} = icmp {wanted} i32 %v{value}, 0"));
        self.line(&format!("br i1 %v{ends}, label %L{on}, label %L{again}"));
        self.label(on);
    }

    fn take(&mut self, lock: u64, how: u64) {
        let spinning = format!("@lock{lock}");
        match how {
            0 => self.line(&format!("call void @take{lock}()")),
            1 => self.spin(|v| format!("%v{v} = atomicrmw xchg ptr {spinning}, i32 1 acquire"), "eq"),
            2 => {
                self.spin(|v| format!("%v{v} = load volatile i32, ptr {spinning}"), "eq");
                self.spin(|v| format!("%v{v} = atomicrmw xchg ptr {spinning}, i32 1 acquire"), "eq");
            }
            _ => {
                let taken = self.name();
                self.line(&format!("%v{taken} = call i32 @pthread_mutex_lock(ptr @mutex{lock})"));
            }
        }
    }

    fn give(&mut self, lock: u64, how: u64, style: u64) {
        match (how, style) {
            (0..=2, 0) => self.line(&format!("call void @give{lock}()")),
            (0..=2, 1) => self.line(&format!("store volatile i32 0, ptr @lock{lock}")),
            (0..=2, _) => self.line(&format!("store atomic i32 0, ptr @lock{lock} release, align 4")),
            _ => {
                let given = self.name();
                self.line(&format!("%v{given} = call i32 @pthread_mutex_unlock(ptr @mutex{lock})"));
            }
        }
    }

    fn statements(&mut self, depth: u64) {
        for _ in 0..1 + self.below(3) {
            self.statement(depth);
        }
    }

    fn work(&mut self) {
        let (value, number) = (self.name(), self.below(3));
        match self.below(6) {
            0 => self.line(&format!("call void @note(i32 {number})")),
            3.. => {
                let [had, more] = [self.name(), self.name()];
                self.line(&format!("%v{had} = load i32, ptr %x"));
                self.line(&format!("%v{more} = mul i32 %v{had}, {}", number + 3));
                self.line(&format!("%v{value} = add i32 %v{more}, %tid"));
                self.line(&format!("store i32 %v{value}, ptr %x"));
            }
            1 => {
                let by = self.name();
                self.line(&format!("%v{by} = add i32 %tid, {number}"));
                self.line(&format!("%v{value} = call i32 @f(i32 %v{by})"));
                self.line(&format!("call void @note(i32 %v{value})"));
            }
            _ => {
                self.line(&format!("%v{value} = mul i32 %tid, {}", number + 7));
                self.line(&format!("call void @note(i32 %v{value})"));
            }
        }
    }

    fn statement(&mut self, depth: u64) {
        if self.budget == 0 || depth > 3 {
            return self.work();
        }
        self.budget -= 1;
        // Lanes that take a lock side by side mostly hang.
        let alone = self.lanes.count_ones() < 2 || self.numbers.below(8) == 0;
        match self.below(10) {
            0..=2 => self.branch(depth),
            3..=5 if !alone => self.branch(depth),
            3 | 4 => self.section(depth),
            5 => {
                let lock = self.below(2);
                // Locks are taken in one order.
                if self.held.is_empty() { self.line(&format!("call void @section{lock}()")) } else { self.work() }
            }
            6 => {
                let (flag, order) = (self.below(2), ["volatile", "atomic"][self.below(2) as usize]);
                let end = if order == "atomic" { " release, align 4" } else { "" };
                self.line(&format!("store {order} i32 1, ptr @flag{flag}{end}"));
            }
            7 if self.below(3) == 0 => {
                let flag = self.below(2);
                self.spin(|v| format!("%v{v} = load atomic i32, ptr @flag{flag} acquire, align 4"), "ne");
            }
            7 | 8 => self.turns(depth),
            _ if !self.ends.is_empty() && self.held.is_empty() => {
                let ((condition, leave), rest) = (self.condition(), self.name());
                let which = self.below(self.ends.len() as u64) as usize;
                let end = self.ends[which];
                self.line(&format!("br i1 {condition}, label %L{end}, label %L{rest}"));
                self.label(rest);
                self.lanes &= !leave;
            }
            _ => self.work(),
        }
    }

    /// A lock around statements, which have none of this kind in them.
    fn section(&mut self, depth: u64) {
        let (lock, how, style) = (self.below(2), self.below(4), self.below(3));
        let kind = lock + if how < 3 { 0 } else { 2 };
        // Locks are taken in one order: no lane has one and wants another that comes before.
        if self.held.last().is_some_and(|&last| last >= kind) {
            return self.work();
        }
        self.take(lock, how);
        self.held.push(kind);
        let ends = std::mem::take(&mut self.ends);
        let [was, is] = [self.name(), self.name()];
        self.line(&format!("%v{was} = load i32, ptr @count{lock}"));
        self.line(&format!("%v{is} = add i32 %v{was}, 3"));
        self.line(&format!("store i32 %v{is}, ptr @count{lock}"));
        if self.below(2) == 0 {
            self.statement(depth + 1);
        }
        self.ends = ends;
        self.held.pop();
        self.give(lock, how, style);
    }

    /// An if, often with arms that are alike, or one behind a short circuit.
    fn branch(&mut self, depth: u64) {
        let [yes, no, behind] = [self.name(), self.name(), self.name()];
        let ((condition, mut taken), lanes) = (self.condition(), self.lanes);
        if self.below(3) == 0 {
            let other = self.name();
            self.line(&format!("br i1 {condition}, label %L{yes}, label %L{other}"));
            self.label(other);
            let (quiet, (second, more)) = (self.below(2) == 0, self.condition());
            self.lanes = lanes & !taken;
            taken |= more;
            if !quiet {
                self.statement(depth + 1);
            }
            self.line(&format!("br i1 {second}, label %L{yes}, label %L{no}"));
        } else {
            self.line(&format!("br i1 {condition}, label %L{yes}, label %L{no}"));
        }
        let (again, budget) = (self.numbers.clone(), self.budget);
        self.label(yes);
        self.lanes = lanes & taken;
        self.statements(depth + 1);
        self.line(&format!("br label %L{behind}"));
        self.label(no);
        self.lanes = lanes & !taken;
        let alike = self.numbers.below(4);
        if alike > 0 && self.own.is_none() {
            let (after, left) = (self.numbers.clone(), self.budget);
            (self.numbers, self.budget) = (again, budget);
            self.own = Some((Numbers::of(after.0), [6, 12, 1000][alike as usize - 1]));
            self.statements(depth + 1);
            (self.numbers, self.own, self.budget) = (after, None, left);
        } else if self.below(3) > 0 {
            self.statements(depth + 1);
        }
        self.line(&format!("br label %L{behind}"));
        self.label(behind);
        self.lanes = lanes;
    }

    /// A loop of some turns, which statements may leave early.
    fn turns(&mut self, depth: u64) {
        let [counter, had, left, more] = [self.name(), self.name(), self.name(), self.name()];
        let (behind, most) = (self.name(), 1 + self.below(2));
        let [own, turns] = [self.name(), self.name()];
        let _ = writeln!(self.variables, "  %c{counter} = alloca i32");
        self.line(&format!("%v{own} = and i32 %tid, {}", self.numbers.clone().below(2)));
        self.line(&format!("%v{turns} = add i32 %v{own}, {most}"));
        self.line(&format!("store i32 %v{turns}, ptr %c{counter}"));
        let (again, lanes) = (self.new_block(), self.lanes);
        self.ends.push(behind);
        self.statements(depth + 1);
        self.ends.pop();
        self.lanes = lanes;
        self.line(&format!("%v{had} = load i32, ptr %c{counter}"));
        self.line(&format!("%v{left} = sub i32 %v{had}, 1"));
        self.line(&format!("store i32 %v{left}, ptr %c{counter}"));
        self.line(&format!("%v{more} = icmp sgt i32 %v{left}, 0"));
        self.line(&format!("br i1 %v{more}, label %L{again}, label %L{behind}"));
        self.label(behind);
    }
}
