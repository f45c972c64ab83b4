//! The constraint rules: what is known about a value, from what is known about its operands.
//!
//! Source: Sampaio et al., *Divergence analysis with affine constraints*, 2012, figure 4, with its names; rules below
//! [`Rule::Rmua`] are our own. The paper prints GBNA with both coefficients non-zero; one is enough to lose uniformity,
//! and ⊥ counts as non-zero.

use crate::arithmetic::{arithmetic, compared, extended};
use crate::fact::{Affine, DIMENSIONS, Symbol};
use crate::{Fact, Form, Kind, Memory, Mode, NodeRef, Op, Return};

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// v = c·tid: (c, 0).
    Tida,
    /// v = v': as v'.
    Asga,
    /// An atomic operation: ⊥.
    Atma,
    /// v = c: (0, c).
    Cnta,
    /// v = ⊕o, o uniform: (0, ⊕c2).
    Guza,
    /// v = ⊕o, o not uniform: ⊥.
    Guna,
    /// A load from a uniform address: (0, ⊥).
    Ldua,
    /// A load from another address: ⊥.
    Ldda,
    /// v = o1 + o2: coefficients are added.
    Suma,
    /// v = o1 × o2, both not uniform: ⊥.
    Mlva,
    /// v = o1 × o2, one uniform: coefficients are multiplied.
    Mlca,
    /// v = o1 ÷ o2 or o1 >> o2, o2 a number that divides c1: coefficients are divided.
    Diva,
    /// v = o1 ⊕ o2, both uniform: (0, c2 ⊕ c2').
    Gbza,
    /// v = o1 ⊕ o2, one not uniform: ⊥.
    Gbna,
    /// γ with a uniform predicate: the meet.
    Gama,
    /// η with a uniform predicate: as the operand.
    Etaa,
    /// γ or η with another predicate: ⊥.
    Pdva,
    /// μ: the meet.
    Rmua,
    /// A comparison of two values with the same stride: their difference is uniform.
    Cmpa,
    /// An extension of a value whose equation holds in the integers: as the operand.
    Exta,
    /// γ with any predicate whose operands are equal, or η of a value that no iteration of the loop changes.
    Idna,
    /// A load from memory of the thread's own, or one that other threads may write at any time: ⊥.
    Ldpa,
    /// A load from the record that a thread got when it was started: what was stored there.
    Ldra,
    /// A call whose result the callee's summary gives.
    Cala,
    /// A value in a loop that threads enter at different places, or part in, whose iterations cannot be told apart: ⊥.
    Irra,
    /// A value about which nothing is known: ⊥.
    Unka,
}

impl Rule {
    /// The rules of the paper's figure 4, in its order.
    pub const PAPER: [Rule; 17] = [
        Rule::Tida,
        Rule::Asga,
        Rule::Atma,
        Rule::Cnta,
        Rule::Guza,
        Rule::Guna,
        Rule::Ldua,
        Rule::Ldda,
        Rule::Suma,
        Rule::Mlva,
        Rule::Mlca,
        Rule::Gbza,
        Rule::Gbna,
        Rule::Gama,
        Rule::Etaa,
        Rule::Pdva,
        Rule::Rmua,
    ];

    /// The name, in capitals as the paper writes it.
    #[must_use]
    pub fn name(self) -> String {
        format!("{self:?}").to_uppercase()
    }
}

/// What a rule is applied to, besides operands.
pub(crate) struct Around<'a> {
    pub(crate) node: NodeRef,
    pub(crate) kind: Kind,
    pub(crate) mode: Mode,
    /// Whether integers are taken for as wide as they need to be.
    pub(crate) no_wrap: bool,
    /// Above the numbers of threads, by dimension.
    pub(crate) bounds: [Option<u64>; DIMENSIONS],
    pub(crate) fact: &'a dyn Fn(NodeRef) -> Fact,
    pub(crate) kind_of: &'a dyn Fn(NodeRef) -> Kind,
}

/// Strides and base; `None` is an unknown that belongs to the node.
type Parts = ([Option<Form>; DIMENSIONS], Option<Form>);

impl Around<'_> {
    pub(crate) fn itself(&self) -> Fact {
        Fact::itself(self.node.0)
    }

    /// A fact modulo 2 to the node's width; `signed` and `unsigned` say whether the equation is known to hold in the
    /// integers.
    pub(crate) fn made(&self, parts: Parts, signed: bool, unsigned: bool) -> Fact {
        let Kind::Bits(bits) = self.kind else { return self.itself() };
        let mut same = true;
        let mut one = |form: Option<Form>, part: usize| match form {
            Some(form) if form.as_symbol().is_some_and(|(_, symbol, _)| symbol.origin().is_none()) => {
                Form::symbol(Symbol::of(self.node.0, part))
            }
            Some(form) => {
                let (wrapped, unchanged) = form.wrapped(bits);
                same &= unchanged;
                wrapped
            }
            None => Form::symbol(Symbol::of(self.node.0, part)),
        };
        let strides = std::array::from_fn(|d| one(parts.0[d], d));
        let base = one(parts.1, DIMENSIONS);
        let affine = Affine { strides, base, signed: (signed || self.no_wrap) && same, unsigned: unsigned && same };
        Fact::Affine(self.ranged(affine, bits))
    }

    /// Sets the flags of an equation whose numbers are all known and small enough.
    pub(crate) fn ranged(&self, affine: Affine, bits: u8) -> Affine {
        let Some(base) = affine.base.as_number() else {
            // A uniform value is its own base, read as it may be.
            let itself = affine.is_uniform() && affine.base == Form::symbol(Symbol::of(self.node.0, DIMENSIONS));
            return if itself { Affine { signed: true, unsigned: true, ..affine } } else { affine };
        };
        let (mut low, mut high) = (i128::from(base), i128::from(base));
        for (stride, bound) in affine.strides.iter().zip(self.bounds) {
            match (stride.as_number(), bound) {
                (Some(0), _) => {}
                (Some(stride), Some(bound)) => {
                    let most = i128::from(stride) * i128::from(bound.saturating_sub(1));
                    low += most.min(0);
                    high += most.max(0);
                }
                _ => return affine,
            }
        }
        let half = 1i128 << (bits - 1);
        let signed = affine.signed || (-half <= low && high < half);
        let unsigned = affine.unsigned || (0 <= low && high < 2 * half);
        Affine { signed, unsigned, ..affine }
    }

    /// Unknown coefficients where there are some; zero strides stay.
    pub(crate) fn blurred(&self, of: &Affine, signed: bool, unsigned: bool) -> Fact {
        let strides = of.strides.map(|stride| stride.is_zero().then_some(Form::ZERO));
        self.made((strides, None), signed, unsigned)
    }

    pub(crate) fn sum(&self, a: &Affine, b: &Affine, signed: bool, unsigned: bool) -> Fact {
        let mut exact = true;
        let mut plus = |a: Form, b: Form| {
            let (form, fits) = a.plus(b)?;
            exact &= fits;
            Some(form)
        };
        let strides = std::array::from_fn(|d| plus(a.strides[d], b.strides[d]));
        let base = plus(a.base, b.base);
        self.made((strides, base), signed && exact, unsigned && exact)
    }

    pub(crate) fn product(&self, a: &Affine, by: Form, signed: bool, unsigned: bool) -> Fact {
        let mut exact = true;
        let mut times = |a: Form| {
            let (form, fits) = a.times(by)?;
            exact &= fits;
            Some(form)
        };
        let strides = a.strides.map(&mut times);
        let base = times(a.base);
        self.made((strides, base), signed && exact, unsigned && exact)
    }
}

/// The meet of facts that arrive where all threads take one path: equal coefficients stay, others become unknown.
pub(crate) fn meet(around: &Around<'_>, facts: impl Iterator<Item = Fact>, keeps: &dyn Fn(Symbol) -> bool) -> Fact {
    let mut met: Option<(Affine, [bool; DIMENSIONS + 1])> = None;
    for fact in facts {
        let affine = match fact {
            Fact::Top => continue,
            Fact::Divergent => return Fact::Divergent,
            Fact::Affine(affine) => affine,
        };
        match &mut met {
            None => met = Some((affine, [true; DIMENSIONS + 1])),
            Some((first, same)) => {
                for (same, (a, b)) in same.iter_mut().zip(first.strides.iter().zip(&affine.strides)) {
                    *same &= a == b;
                }
                same[DIMENSIONS] &= first.base == affine.base;
                first.signed &= affine.signed;
                first.unsigned &= affine.unsigned;
            }
        }
    }
    let Some((affine, same)) = met else { return Fact::Top };
    if around.kind == Kind::Opaque && !same.iter().all(|&s| s) {
        return around.itself();
    }
    let kept = |form: Form, same: bool| {
        let lives = form.as_symbol().is_none_or(|(_, symbol, _)| keeps(symbol));
        (same && lives).then_some(form)
    };
    let strides = std::array::from_fn(|d| kept(affine.strides[d], same[d]));
    around.made((strides, kept(affine.base, same[DIMENSIONS])), affine.signed, affine.unsigned)
}

/// Applies the rule for an operation that is no phi and no η.
pub(crate) fn apply(around: &Around<'_>, op: &Op) -> (Fact, Rule) {
    let fact = around.fact;
    let mut missing = false;
    op.each_operand(|v| missing |= fact(v) == Fact::Top);
    // Operations on ⊤ give ⊤; loads and calls do not depend on all operands.
    let strict = !matches!(op, Op::Store(..) | Op::Call(..) | Op::Atomic(_) | Op::Select(..));
    if missing && strict {
        return (Fact::Top, Rule::Asga);
    }
    match op {
        Op::Number(n) => {
            (around.made(([Some(Form::ZERO); DIMENSIONS], Some(Form::number(*n))), true, *n >= 0), Rule::Cnta)
        }
        Op::Uniform => (around.itself(), Rule::Cnta),
        Op::Undefined | Op::Store(..) => (Fact::Top, Rule::Cnta),
        Op::Divergent => (Fact::Divergent, Rule::Unka),
        Op::Thread { dimension, scale } => {
            let mut strides = [Some(Form::ZERO); DIMENSIONS];
            strides[usize::from(*dimension)] = Some(Form::number(*scale));
            // A thread's number is not negative, and what holds it is wide enough.
            (around.made((strides, Some(Form::ZERO)), *scale == 1, *scale == 1), Rule::Tida)
        }
        Op::Given(Fact::Affine(affine)) => {
            let rule = if affine.is_uniform() { Rule::Asga } else { Rule::Tida };
            (around.made((affine.strides.map(Some), Some(affine.base)), affine.signed, affine.unsigned), rule)
        }
        Op::Given(Fact::Top) => (Fact::Top, Rule::Asga),
        Op::Given(Fact::Divergent) => (Fact::Divergent, Rule::Unka),
        Op::Copy(v) => match fact(*v) {
            Fact::Affine(a) if around.kind != Kind::Opaque && (around.kind_of)(*v) != Kind::Opaque => {
                (around.made((a.strides.map(Some), Some(a.base)), a.signed, a.unsigned), Rule::Asga)
            }
            Fact::Affine(_) => (around.itself(), Rule::Asga),
            other => (other, Rule::Asga),
        },
        Op::Binary(binary, a, b, promise) => {
            let (one, other) = (fact(*a), fact(*b));
            // More of a promise is left when a uniform operand counts as its own unknown.
            let plain = |own: Fact, node: NodeRef, beside: Fact| match own {
                Fact::Affine(a) if a.is_uniform() && a.base.as_symbol().is_some() && !beside.is_uniform() => {
                    let lacks = (promise.signed && !a.signed) || (promise.unsigned && !a.unsigned);
                    if lacks { Fact::itself(node.0) } else { own }
                }
                _ => own,
            };
            arithmetic(around, *binary, plain(one, *a, other), plain(other, *b, one), *promise)
        }
        Op::Cast(cast, v) => extended(around, *cast, *v),
        Op::Compare(predicate, a, b) => compared(around, *predicate, fact(*a), fact(*b)),
        Op::Select(by, a, b) => selected(around, fact(*by), fact(*a), fact(*b)),
        Op::Address { base, terms, offset } => (address(around, *base, terms, *offset), Rule::Suma),
        Op::Load(_, Memory::Record(fact)) => (recorded(around, *fact), Rule::Ldra),
        Op::Load(_, Memory::Private) => (Fact::Divergent, Rule::Ldpa),
        Op::Load(_, Memory::Shared) if around.mode == Mode::Async => (Fact::Divergent, Rule::Ldpa),
        Op::Load(from, _) => match fact(*from).is_uniform() {
            true => (around.itself(), Rule::Ldua),
            false => (Fact::Divergent, Rule::Ldda),
        },
        Op::Atomic(_) => (Fact::Divergent, Rule::Atma),
        Op::General(all) => {
            let uniform = all.iter().all(|&v| fact(v).is_uniform());
            match (uniform, all.len() < 2) {
                (true, true) => (around.itself(), Rule::Guza),
                (true, false) => (around.itself(), Rule::Gbza),
                (false, true) => (Fact::Divergent, Rule::Guna),
                (false, false) => (Fact::Divergent, Rule::Gbna),
            }
        }
        Op::Call(result, arguments) => (called(around, result, arguments), Rule::Cala),
        Op::Phi(_) => unreachable!("phis have gates"),
    }
}

/// What was stored, as a value of this node's own.
fn recorded(around: &Around<'_>, fact: Fact) -> Fact {
    match fact {
        Fact::Affine(a) if around.kind != Kind::Opaque => {
            around.made((a.strides.map(Some), Some(a.base)), a.signed, a.unsigned)
        }
        Fact::Affine(a) if a.is_uniform() => around.itself(),
        Fact::Affine(_) => Fact::Divergent,
        other => other,
    }
}

fn selected(around: &Around<'_>, by: Fact, a: Fact, b: Fact) -> (Fact, Rule) {
    let met = || meet(around, [a, b].into_iter(), &|_| true);
    match by {
        Fact::Top => (met(), Rule::Gama),
        _ if by.is_uniform() => (met(), Rule::Gama),
        _ => match equal([a, b].into_iter()) {
            Some(fact) => (meet(around, std::iter::once(fact), &|_| true), Rule::Idna),
            None => (Fact::Divergent, Rule::Pdva),
        },
    }
}

/// The one fact that all of these are (leaving out ⊤), if it gives the value of each thread.
pub(crate) fn equal(facts: impl Iterator<Item = Fact>) -> Option<Fact> {
    let mut found = Fact::Top;
    for fact in facts.filter(|fact| *fact != Fact::Top) {
        let Fact::Affine(affine) = fact else { return None };
        match found {
            Fact::Affine(first) if first.strides == affine.strides && first.base == affine.base => {
                let (signed, unsigned) = (first.signed && affine.signed, first.unsigned && affine.unsigned);
                found = fact.exact(signed, unsigned);
            }
            Fact::Top => found = fact,
            _ => return None,
        }
    }
    Some(found)
}

fn address(around: &Around<'_>, base: NodeRef, terms: &[(NodeRef, i64)], offset: i64) -> Fact {
    let Fact::Affine(mut sum) = (around.fact)(base) else { return Fact::Divergent };
    let Kind::Bits(width) = around.kind else {
        let uniform = sum.is_uniform() && terms.iter().all(|(v, _)| (around.fact)(*v).is_uniform());
        return if uniform { around.itself() } else { Fact::Divergent };
    };
    let mut blurred = [false; DIMENSIONS + 1];
    for &(index, stride) in terms {
        let Fact::Affine(index_fact) = (around.fact)(index) else { return Fact::Divergent };
        let Kind::Bits(bits) = (around.kind_of)(index) else { return Fact::Divergent };
        // An index is taken with its sign.
        let uniform = index_fact.is_uniform();
        if bits < width && !uniform && !index_fact.signed {
            return Fact::Divergent;
        }
        let symbolic = |form: Form| form.as_symbol().is_some();
        let mut add = |to: &mut Form, form: Form, part: usize| {
            let product = form.times(Form::number(stride)).and_then(|(product, _)| to.plus(product));
            match product {
                // The symbol of a narrower uniform index, read with its sign, is what is added.
                Some((sum, _)) if !(bits < width && uniform && symbolic(form) && !index_fact.signed) => *to = sum,
                _ => blurred[part] = true,
            }
        };
        for d in 0..DIMENSIONS {
            add(&mut sum.strides[d], index_fact.strides[d], d);
        }
        add(&mut sum.base, index_fact.base, DIMENSIONS);
    }
    let base = sum.base.plus(Form::number(offset)).map(|(form, _)| form);
    let parts = std::array::from_fn(|d| (!blurred[d]).then_some(sum.strides[d]));
    around.made((parts, base.filter(|_| !blurred[DIMENSIONS])), false, false)
}

fn called(around: &Around<'_>, result: &Return, arguments: &[NodeRef]) -> Fact {
    let fact = |i: u32| arguments.get(i as usize).map_or(Fact::Divergent, |&v| (around.fact)(v));
    let affine = match result {
        Return::Divergent | Return::Fact(Fact::Divergent) => return Fact::Divergent,
        Return::Uniform => return around.itself(),
        Return::Fact(Fact::Top) => return Fact::Top,
        Return::Function => {
            let uniform = arguments.iter().all(|&v| (around.fact)(v).is_uniform());
            return if uniform { around.itself() } else { Fact::Divergent };
        }
        Return::Fact(Fact::Affine(affine)) => affine,
    };
    let mut strides = affine.strides.map(Some);
    for stride in &mut strides {
        let symbol = stride.and_then(Form::as_symbol).map(|(_, symbol, _)| symbol.origin());
        match symbol {
            None => {}
            Some(Some((argument, _))) if fact(argument).is_uniform() => *stride = None,
            Some(None) => *stride = None,
            Some(Some(_)) => return Fact::Divergent,
        }
    }
    let mut base = Some(affine.base);
    if let Some((scale, symbol, offset)) = affine.base.as_symbol() {
        match symbol.origin().map(|(argument, _)| fact(argument)) {
            None => base = None,
            Some(Fact::Top) => return Fact::Top,
            Some(Fact::Divergent) => return Fact::Divergent,
            Some(Fact::Affine(argument)) => {
                let times = |form: Form| form.times(Form::number(scale)).map(|(form, _)| form);
                for (stride, more) in strides.iter_mut().zip(argument.strides) {
                    *stride = stride.zip(times(more)).and_then(|(a, b)| a.plus(b)).map(|(form, _)| form);
                }
                base = times(argument.base).and_then(|b| b.plus(Form::number(offset))).map(|(form, _)| form);
            }
        }
    }
    around.made((strides, base), false, false)
}
