//! The lattice: what is known about a value.
//!
//! The paper's lattice is of pairs (c1, c2), each ⊤, a number or ⊥; a value is c1·tid + c2. Here
//!
//! - a coefficient ([`Form`]) is a number, or `scale · symbol + offset`, where a *symbol* is an unknown that is the
//!   same for all threads. So `tid * n + i` is affine with stride `n`. The paper's ⊥ of c2 is a symbol too: the base of
//!   the value itself;
//! - there is a c1 for each of three dimensions of thread numbers;
//! - what the paper calls ⊥·tid + ⊥ is [`Fact::Divergent`], ⊤·tid + ⊤ is [`Fact::Top`].
//!
//! # Widths
//! For a value of w bits the equation holds modulo 2^w. Two flags say more: `signed` means that it holds in the
//! integers for the value read as signed; `unsigned`, for the value read as unsigned. Truncation needs no flag; sign
//! extension keeps a fact that has the first, zero extension one that has the second.

use std::fmt;

/// How many dimensions thread numbers have at most.
pub const DIMENSIONS: usize = 3;

/// An unknown that is the same for all threads that are together: a coefficient of a node of the dependence graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(u32);

impl Symbol {
    /// None.
    const NONE: Symbol = Symbol(u32::MAX);
    /// A uniform unknown that has no name yet.
    const UNKNOWN: Symbol = Symbol(u32::MAX - 1);
    const PARTS: u32 = DIMENSIONS as u32 + 1;

    /// The coefficient of a node: of a dimension, or its base with `part` = [`DIMENSIONS`].
    pub(crate) fn of(node: u32, part: usize) -> Symbol {
        Symbol(node * Symbol::PARTS + part as u32)
    }

    /// The number of the node that it is a coefficient of, and which: a dimension, or [`DIMENSIONS`] for the base.
    /// `None` for unknowns without a name.
    #[must_use]
    pub fn origin(self) -> Option<(u32, usize)> {
        let named = self != Symbol::NONE && self != Symbol::UNKNOWN;
        named.then_some((self.0 / Symbol::PARTS, (self.0 % Symbol::PARTS) as usize))
    }
}

/// A coefficient: `scale · symbol + offset`, in the integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    scale: i64,
    symbol: Symbol,
    offset: i64,
}

impl Form {
    /// Zero.
    pub const ZERO: Form = Form::number(0);
    /// A uniform unknown that has no name yet: for facts about parameters.
    pub const UNKNOWN: Form = Form { scale: 1, symbol: Symbol::UNKNOWN, offset: 0 };

    /// A number.
    #[must_use]
    pub const fn number(offset: i64) -> Form {
        Form { scale: 0, symbol: Symbol::NONE, offset }
    }

    pub(crate) fn symbol(symbol: Symbol) -> Form {
        Form { scale: 1, symbol, offset: 0 }
    }

    /// The number that it is, if it is one.
    #[must_use]
    pub fn as_number(self) -> Option<i64> {
        (self.scale == 0).then_some(self.offset)
    }

    /// Its symbol, with what it is multiplied by and what is added.
    #[must_use]
    pub fn as_symbol(self) -> Option<(i64, Symbol, i64)> {
        (self.scale != 0).then_some((self.scale, self.symbol, self.offset))
    }

    /// Whether it is the number zero. A symbol may be zero, but is not known to be.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Form::ZERO
    }

    /// The sum, and whether it is exact; `None` where it is no form.
    pub(crate) fn plus(self, other: Form) -> Option<(Form, bool)> {
        let symbol = match (self.scale != 0, other.scale != 0) {
            (true, true) if self.symbol != other.symbol || self.symbol == Symbol::UNKNOWN => return None,
            (true, _) => self.symbol,
            (false, _) => other.symbol,
        };
        let (scale, one) = self.scale.overflowing_add(other.scale);
        let (offset, two) = self.offset.overflowing_add(other.offset);
        let symbol = if scale == 0 { Symbol::NONE } else { symbol };
        Some((Form { scale, symbol, offset }, !one && !two))
    }

    /// The product, and whether it is exact; `None` where it is no form.
    pub(crate) fn times(self, other: Form) -> Option<(Form, bool)> {
        let (form, number) = match (self.as_number(), other.as_number()) {
            (_, Some(number)) => (self, number),
            (Some(number), _) => (other, number),
            _ => return None,
        };
        let (scale, one) = form.scale.overflowing_mul(number);
        let (offset, two) = form.offset.overflowing_mul(number);
        let symbol = if scale == 0 { Symbol::NONE } else { form.symbol };
        Some((Form { scale, symbol, offset }, !one && !two))
    }

    /// The quotient by a number above 0, where nothing is left over.
    pub(crate) fn divided(self, by: i64) -> Option<Form> {
        let whole = self.scale % by == 0 && self.offset % by == 0;
        whole.then(|| Form { scale: self.scale / by, offset: self.offset / by, ..self })
    }

    /// The same modulo 2^bits, with the smallest numbers, and whether nothing changed.
    pub(crate) fn wrapped(self, bits: u8) -> (Form, bool) {
        let (scale, offset) = (wrap(self.scale, bits), wrap(self.offset, bits));
        let symbol = if scale == 0 { Symbol::NONE } else { self.symbol };
        (Form { scale, symbol, offset }, scale == self.scale && offset == self.offset)
    }

    /// As text; `name` tells a symbol's name.
    pub(crate) fn text(self, name: &dyn Fn(Symbol) -> String) -> String {
        let Some((scale, symbol, offset)) = self.as_symbol() else { return self.offset.to_string() };
        let mut text = match scale {
            1 => name(symbol),
            -1 => format!("-{}", name(symbol)),
            _ => format!("{scale}·{}", name(symbol)),
        };
        if offset != 0 {
            text += &format!("{offset:+}");
        }
        text
    }
}

/// The number modulo 2^bits, between -2^(bits-1) and 2^(bits-1) - 1.
pub(crate) fn wrap(number: i64, bits: u8) -> i64 {
    let shift = 64 - u32::from(bits);
    (number << shift) >> shift
}

/// c1·tid + c2 with what holds about it in the integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The coefficient of each dimension's thread number.
    pub strides: [Form; DIMENSIONS],
    /// What is added.
    pub base: Form,
    /// The equation holds in the integers for the value with its sign.
    pub signed: bool,
    /// The equation holds in the integers for the value without sign. (Symbols are then read without sign too.)
    pub unsigned: bool,
}

impl Affine {
    /// Whether no thread number takes part.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.strides.iter().all(|stride| stride.is_zero())
    }
}

/// What is known about a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// ⊤: nothing yet, or what is never computed.
    Top,
    /// The same function of the thread's number for all threads that are together.
    Affine(Affine),
    /// ⊥: nothing.
    Divergent,
}

/// What kind of fact it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The same for all threads that are together.
    Uniform,
    /// An affine function of the thread's number.
    Affine,
    /// Neither, as far as is known.
    Divergent,
}

impl Class {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Uniform => "uniform",
            Class::Affine => "affine",
            Class::Divergent => "divergent",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Fact {
    /// The number.
    #[must_use]
    pub const fn number(number: i64) -> Fact {
        Fact::uniform(Form::number(number), number >= 0)
    }

    /// A uniform unknown without a name: for facts about parameters.
    #[must_use]
    pub const fn unknown() -> Fact {
        Fact::uniform(Form::UNKNOWN, true)
    }

    /// Argument number `index` of a call, itself: for facts about what a callee returns.
    #[must_use]
    pub fn of_argument(index: u32) -> Fact {
        Fact::uniform(Form::symbol(Symbol::of(index, DIMENSIONS)), true)
    }

    /// `stride` times the thread's number in a dimension, plus `base`.
    #[must_use]
    pub fn of_thread(dimension: u8, stride: Form, base: Form) -> Fact {
        let mut strides = [Form::ZERO; DIMENSIONS];
        strides[usize::from(dimension)] = stride;
        Fact::Affine(Affine { strides, base, signed: false, unsigned: false })
    }

    /// The same fact with what holds in the integers.
    #[must_use]
    pub fn exact(self, signed: bool, unsigned: bool) -> Fact {
        match self {
            Fact::Affine(affine) => Fact::Affine(Affine { signed, unsigned, ..affine }),
            other => other,
        }
    }

    pub(crate) const fn uniform(base: Form, unsigned: bool) -> Fact {
        Fact::Affine(Affine { strides: [Form::ZERO; DIMENSIONS], base, signed: true, unsigned })
    }

    /// The uniform value of a node, which is its own symbol.
    #[must_use]
    pub fn itself(node: u32) -> Fact {
        Fact::uniform(Form::symbol(Symbol::of(node, DIMENSIONS)), true)
    }

    /// What kind of fact it is. What is never computed counts as uniform.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Fact::Top => Class::Uniform,
            Fact::Affine(affine) if affine.is_uniform() => Class::Uniform,
            Fact::Affine(_) => Class::Affine,
            Fact::Divergent => Class::Divergent,
        }
    }

    /// Whether all threads that are together have the same value.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.class() == Class::Uniform
    }

    /// c1 and c2, where there are any.
    #[must_use]
    pub fn affine(&self) -> Option<&Affine> {
        match self {
            Fact::Affine(affine) => Some(affine),
            _ => None,
        }
    }

    /// The stride from one thread to the next in dimension 0, if it is a number and the other dimensions take no part.
    #[must_use]
    pub fn stride(&self) -> Option<i64> {
        let affine = self.affine()?;
        affine.strides[1..].iter().all(|s| s.is_zero()).then(|| affine.strides[0].as_number())?
    }

    /// As text; `name` tells a symbol's name.
    pub(crate) fn text(&self, name: &dyn Fn(Symbol) -> String) -> String {
        const NAMES: [&str; DIMENSIONS] = ["tid", "tid.y", "tid.z"];
        let affine = match self {
            Fact::Top => return "⊤".to_owned(),
            Fact::Divergent => return "⊥".to_owned(),
            Fact::Affine(affine) => affine,
        };
        let mut parts = Vec::new();
        for (stride, tid) in affine.strides.iter().zip(NAMES) {
            match stride.as_number() {
                Some(0) => {}
                Some(1) => parts.push(tid.to_owned()),
                Some(number) => parts.push(format!("{number}·{tid}")),
                None if stride.offset == 0 => parts.push(format!("{}·{tid}", stride.text(name))),
                None => parts.push(format!("({})·{tid}", stride.text(name))),
            }
        }
        if parts.is_empty() || !affine.base.is_zero() {
            parts.push(affine.base.text(name));
        }
        parts.join(" + ")
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text(&|symbol| symbol.origin().map_or_else(|| "?".to_owned(), |(node, _)| format!("s{node}"))))
    }
}
