//! What is said of the lanes of a warp, against the values that straight code gives each thread: random programs of
//! arithmetic on a thread's number, in each width.

use divergence::{Analysis, Binary, Builder, Cast, Fact, InWarp, Kind, Op, Options, Predicate, Promise, ValueId};
use flowgraph::NodeId;

const THREADS: u64 = 256;
const PROGRAMS: u64 = 40_000;

/// Numbers by chance.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// The number of so many low bits, with its sign.
fn signed(value: u64, bits: u8) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

fn low(value: u64, bits: u8) -> u64 {
    value & (u64::MAX >> (64 - bits))
}

/// A value of the program: its width, and what each thread has.
struct Made {
    id: ValueId,
    bits: u8,
    values: Vec<u64>,
}

/// What an operation gives one thread; none where it is undefined.
fn binary(op: Binary, a: u64, b: u64, bits: u8) -> Option<u64> {
    let (x, y) = (signed(a, bits), signed(b, bits));
    let shift = (b < u64::from(bits)).then_some(b);
    Some(match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::Shl => a << shift?,
        Binary::Lshr => a >> shift?,
        Binary::Ashr => (x >> shift?) as u64,
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::DisjointOr if a & b != 0 => return None,
        Binary::DisjointOr => a | b,
        Binary::Xor => a ^ b,
        Binary::Udiv => a.checked_div(b)?,
        Binary::Urem => a.checked_rem(b)?,
        Binary::Sdiv => x.checked_div(y)? as u64,
        Binary::Srem => x.checked_rem(y)? as u64,
    })
}

fn order(signed_order: bool, less: bool, or_equal: bool, (a, b): (u64, u64), bits: u8) -> bool {
    let how = if signed_order { signed(a, bits).cmp(&signed(b, bits)) } else { a.cmp(&b) };
    if how.is_eq() { or_equal } else { how.is_lt() == less }
}

const OPERATIONS: [Binary; 15] = [
    Binary::Add,
    Binary::Sub,
    Binary::Mul,
    Binary::Shl,
    Binary::Lshr,
    Binary::Ashr,
    Binary::And,
    Binary::Or,
    Binary::DisjointOr,
    Binary::Xor,
    Binary::Udiv,
    Binary::Sdiv,
    Binary::Urem,
    Binary::Srem,
    Binary::And,
];

/// A program, and what its parameter is in a warp.
struct Program {
    builder: Builder,
    all: Vec<Made>,
    given: (ValueId, InWarp),
}

impl Program {
    fn add(&mut self, bits: u8, op: Op, values: Vec<u64>) {
        let id = self.builder.add(NodeId(0), Kind::Bits(bits), op, "");
        self.all.push(Made { id, bits, values });
    }

    /// One by chance, for warps of `width`.
    fn of(dice: &mut Dice, width: u64) -> Program {
        let mut builder = Builder::new(1);
        let above = dice.below(64);
        let lane = builder.free(Kind::Bits(32), Op::Given(Fact::Divergent), "");
        let lanes = (0..THREADS)
            .map(|t| low((t / width * 7).wrapping_sub(above).wrapping_mul(width) + t % width, 32))
            .collect();
        let given = (lane, InWarp::Lane { positive: above == 0 });
        let mut program = Program { builder, all: vec![Made { id: lane, bits: 32, values: lanes }], given };
        program.add(64, Op::Thread { dimension: 0, scale: 1 }, (0..THREADS).collect());
        let unknown = dice.below(1 << 20);
        program.add(32, Op::Uniform, vec![unknown; THREADS as usize]);
        for _ in 0..10 {
            program.number(dice, width);
            program.operation(dice);
        }
        program
    }

    fn number(&mut self, dice: &mut Dice, width: u64) {
        let near = width.wrapping_mul(dice.of(&[0, 1, 2, 3, 4, 6, 15, 31, u64::MAX]));
        let number = near.wrapping_add(dice.of(&[0, 0, 0, u64::MAX, 1]));
        let number = dice.of(&[number, number, number, u64::from(width.ilog2()), u64::from(width.ilog2()) + 1]);
        let bits = dice.of(&[32, 64, 8, 8]);
        self.add(bits, Op::Number(signed(low(number, bits), bits)), vec![low(number, bits); THREADS as usize]);
    }

    fn operation(&mut self, dice: &mut Dice) {
        let count = self.all.len() as u64;
        // The number that was made last is one of the operands more often than not.
        let [a, b] = [count, count * 2].map(|most| dice.below(most).min(count - 1) as usize);
        let (one, other) = (&self.all[a], &self.all[b]);
        let bits = one.bits;
        let pairs = || one.values.iter().copied().zip(other.values.iter().copied());
        match dice.below(8) {
            0 | 1 => {
                let to = dice.of(&[3u8, 8, 8, 32, 64]);
                let (cast, values): (_, Vec<u64>) = match dice.below(2) {
                    _ if to == bits => return,
                    _ if to < bits => {
                        let fits = one.values.iter().all(|v| signed(*v, bits) == signed(low(*v, to), to));
                        let promise = Promise { signed: fits && dice.below(2) == 0, unsigned: false };
                        (Cast::Truncate(promise), one.values.iter().map(|v| low(*v, to)).collect())
                    }
                    0 => (Cast::Zero { non_negative: false }, one.values.clone()),
                    _ => (Cast::Sign, one.values.iter().map(|v| low(signed(*v, bits) as u64, to)).collect()),
                };
                let op = Op::Cast(cast, one.id);
                self.add(to, op, values);
            }
            2 if bits == other.bits && bits > 1 => {
                let [signed, less, or_equal] = [0; 3].map(|_| dice.below(2) == 0);
                let values = pairs().map(|pair| u64::from(order(signed, less, or_equal, pair, bits))).collect();
                let op = Op::Compare(Predicate::Order { signed, less, or_equal }, one.id, other.id);
                self.add(1, op, values);
            }
            _ if bits == other.bits && bits > 1 => {
                let op = dice.of(&OPERATIONS);
                let values: Option<Vec<u64>> = pairs().map(|(a, b)| binary(op, a, b, bits)).collect();
                let Some(values) = values else { return };
                let op = Op::Binary(op, one.id, other.id, Promise::default());
                self.add(bits, op, values.into_iter().map(|v| low(v, bits)).collect());
            }
            _ => {}
        }
    }
}

/// Whether a statement about a value holds for what the threads have.
fn holds(said: InWarp, made: &Made, width: u64) -> bool {
    made.values.chunks(width as usize).all(|warp| match said {
        InWarp::Unknown => true,
        InWarp::Same => warp.iter().all(|v| *v == warp[0]),
        InWarp::Multiple => warp.iter().all(|v| *v == warp[0] && v % width == 0),
        InWarp::Lane { positive } => {
            let sign = |v: u64| !positive || signed(v, made.bits) >= 0;
            warp[0] % width == 0 && warp.iter().enumerate().all(|(lane, v)| *v == warp[0] + lane as u64 && sign(*v))
        }
    })
}

#[test]
fn what_is_said_of_a_warp_holds_for_each_of_its_lanes() {
    // What is said beyond what holds for all threads: of values, and of comparisons.
    let (mut more, mut decided) = (0, 0);
    for seed in 0..PROGRAMS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x3a4b);
        let width = dice.of(&[4, 8, 32]);
        let program = Program::of(&mut dice, width);
        let analysis = Analysis::of(&program.builder.build(), &Options::default());
        let given = |value, _| if value == program.given.0 { program.given.1 } else { InWarp::Unknown };
        for made in &program.all {
            let said = analysis.in_warp(made.id, width as u32, &given, 0);
            assert!(
                holds(said, made, width),
                "seed {seed}, warps of {width}: {:?} is {said:?}\n{}",
                made.id,
                analysis.text()
            );
            if said.is_same() && !analysis.fact(made.id).is_uniform() {
                more += 1;
                decided += u32::from(made.bits == 1);
            }
        }
    }
    assert!(more > 1000 && decided > 100, "{more} values, {decided} comparisons");
}
