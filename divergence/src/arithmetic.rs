//! Rules for integer arithmetic, comparisons and widths.

use crate::fact::{Affine, DIMENSIONS};
use crate::rules::Around;
use crate::{Binary, Cast, Fact, Form, Kind, NodeRef, Predicate, Promise, Rule};

pub(crate) fn arithmetic(around: &Around<'_>, binary: Binary, a: Fact, b: Fact, promise: Promise) -> (Fact, Rule) {
    let (Fact::Affine(a), Fact::Affine(b)) = (a, b) else {
        let rule = match binary {
            Binary::Add | Binary::Sub | Binary::DisjointOr => Rule::Suma,
            Binary::Mul => Rule::Mlva,
            _ => Rule::Gbna,
        };
        return (Fact::Divergent, rule);
    };
    let signed = a.signed && b.signed && promise.signed;
    let unsigned = a.unsigned && b.unsigned && promise.unsigned;
    let uniform = a.is_uniform() && b.is_uniform();
    match binary {
        Binary::Add => (around.sum(&a, &b, signed, unsigned), Rule::Suma),
        // The two have no bit in common, so there is no carry: the sum is exact, unsigned and signed.
        Binary::DisjointOr => (around.sum(&a, &b, a.signed && b.signed, a.unsigned && b.unsigned), Rule::Suma),
        Binary::Sub => match negated(&b) {
            Some(b) => (around.sum(&a, &b, signed, unsigned), Rule::Suma),
            None => (around.blurred(&a, false, false), Rule::Suma),
        },
        Binary::Mul if !a.is_uniform() && !b.is_uniform() => (Fact::Divergent, Rule::Mlva),
        Binary::Mul if b.is_uniform() => (around.product(&a, b.base, signed, unsigned), Rule::Mlca),
        Binary::Mul => (around.product(&b, a.base, signed, unsigned), Rule::Mlca),
        Binary::Shl if b.is_uniform() => {
            let bits = match around.kind {
                Kind::Bits(bits) => i64::from(bits),
                Kind::Opaque => return (around.itself(), Rule::Gbza),
            };
            match b.base.as_number() {
                // The factor of the highest bit is negative with its sign.
                Some(by) if (0..bits).contains(&by) => {
                    let fits = by < bits - 1;
                    let (signed, unsigned) = (a.signed && promise.signed, a.unsigned && promise.unsigned);
                    (around.product(&a, Form::number(1 << by), signed && fits, unsigned && fits), Rule::Mlca)
                }
                _ => (around.blurred(&a, a.signed && promise.signed, a.unsigned && promise.unsigned), Rule::Mlca),
            }
        }
        Binary::Ashr | Binary::Lshr | Binary::Sdiv | Binary::Udiv if !uniform && b.is_uniform() => {
            (divided(around, binary, &a, &b).unwrap_or(Fact::Divergent), Rule::Diva)
        }
        // Bits that no value has are no loss.
        Binary::And if !uniform && b.base.as_number().is_some_and(|mask| around.is_within(&a, mask)) => {
            (around.made((a.strides.map(Some), Some(a.base)), true, true), Rule::Asga)
        }
        // ~v is -v - 1.
        Binary::Xor if b.is_uniform() && b.base.as_number() == Some(-1) => {
            let minus_one = match Fact::number(-1) {
                Fact::Affine(affine) => affine,
                _ => return (Fact::Divergent, Rule::Gbna),
            };
            match negated(&a) {
                Some(minus) => (around.sum(&minus, &minus_one, a.signed, false), Rule::Suma),
                None => (around.blurred(&a, false, false), Rule::Suma),
            }
        }
        _ if uniform => (folded(around, binary, &a, &b), Rule::Gbza),
        _ => (Fact::Divergent, Rule::Gbna),
    }
}

fn negated(a: &Affine) -> Option<Affine> {
    let minus = |form: Form| form.times(Form::number(-1)).filter(|(_, exact)| *exact).map(|(form, _)| form);
    let strides = [minus(a.strides[0])?, minus(a.strides[1])?, minus(a.strides[2])?];
    Some(Affine { strides, base: minus(a.base)?, ..*a })
}

/// The quotient by a number, of an equation that holds in the integers (of the value as it is read there) and whose
/// strides it divides: then floor((k·c·tid + base) / c) is k·tid + floor(base / c).
fn divided(around: &Around<'_>, binary: Binary, a: &Affine, b: &Affine) -> Option<Fact> {
    let Kind::Bits(bits) = around.kind else { return None };
    let number = b.base.as_number().filter(|_| b.is_uniform())?;
    let by = match binary {
        Binary::Ashr | Binary::Lshr if (0..i64::from(bits).min(63)).contains(&number) => 1 << number,
        Binary::Sdiv | Binary::Udiv if number > 0 => number,
        _ => return None,
    };
    let is_signed = matches!(binary, Binary::Ashr | Binary::Sdiv);
    if !(if is_signed { a.signed } else { a.unsigned }) {
        return None;
    }
    let strides = [a.strides[0].divided(by)?, a.strides[1].divided(by)?, a.strides[2].divided(by)?];
    // A division rounds to zero, a shift and a division without sign round down.
    let rounds_down = binary != Binary::Sdiv;
    let (base, holds) = match (a.base.divided(by), a.base.as_number()) {
        (Some(base), _) => (Some(base), true),
        (None, Some(base)) if rounds_down => (Some(Form::number(base.div_euclid(by))), true),
        // The quotient of an unknown is another, of the same width where it is one itself.
        (None, None) if rounds_down => {
            (None, a.base.as_symbol().is_some_and(|(scale, _, offset)| scale == 1 && offset == 0))
        }
        _ => return None,
    };
    Some(around.made((strides.map(Some), base), is_signed && holds, !is_signed && holds))
}

/// The result for numbers, if both are known.
fn folded(around: &Around<'_>, binary: Binary, a: &Affine, b: &Affine) -> Fact {
    let Kind::Bits(bits) = around.kind else { return around.itself() };
    let (Some(a), Some(b)) = (a.base.as_number(), b.base.as_number()) else { return around.itself() };
    let mask = u64::MAX >> (64 - u32::from(bits));
    let (ua, ub) = (a as u64 & mask, b as u64 & mask);
    let shift = u32::try_from(b).ok().filter(|&by| by < u32::from(bits));
    let number = match binary {
        Binary::And => Some(a & b),
        Binary::Or => Some(a | b),
        Binary::Xor => Some(a ^ b),
        Binary::Lshr => shift.map(|by| (ua >> by) as i64),
        Binary::Ashr => shift.map(|by| a >> by),
        Binary::Udiv => ua.checked_div(ub).map(|n| n as i64),
        Binary::Urem => ua.checked_rem(ub).map(|n| n as i64),
        Binary::Sdiv => a.checked_div(b),
        Binary::Srem => a.checked_rem(b),
        _ => None,
    };
    match number {
        Some(n) => around.made(([Some(Form::ZERO); DIMENSIONS], Some(Form::number(n))), true, false),
        None => around.itself(),
    }
}

pub(crate) fn extended(around: &Around<'_>, cast: Cast, v: NodeRef) -> (Fact, Rule) {
    let Fact::Affine(a) = (around.fact)(v) else { return (Fact::Divergent, Rule::Guna) };
    let (Kind::Bits(to), Kind::Bits(from)) = (around.kind, (around.kind_of)(v)) else {
        return match a.is_uniform() {
            true => (around.itself(), Rule::Guza),
            false => (Fact::Divergent, Rule::Guna),
        };
    };
    let kept = (a.strides.map(Some), Some(a.base));
    match cast {
        Cast::Truncate(promise) => {
            (around.made(kept, a.signed && promise.signed, a.unsigned && promise.unsigned), Rule::Asga)
        }
        // A number is what it is; another uniform value is not what its symbol, of another width, is.
        _ if a.is_uniform() => match (a.base.as_number(), cast) {
            (Some(n), Cast::Zero { .. }) => {
                let mask = u64::MAX >> (64 - u32::from(from));
                let n = (n as u64 & mask) as i64;
                (around.made(([Some(Form::ZERO); DIMENSIONS], Some(Form::number(n))), true, true), Rule::Guza)
            }
            (Some(_), _) => (around.made(kept, true, false), Rule::Guza),
            (None, _) => (around.itself(), Rule::Guza),
        },
        // In more bits the equation holds for symbols read with their sign, so it does not for those read without.
        Cast::Sign | Cast::Zero { .. } if a.signed && (around.no_wrap || cast == Cast::Sign) => {
            (around.made(kept, to > from, false), Rule::Exta)
        }
        Cast::Zero { non_negative: true } if a.signed => (around.made(kept, to > from, false), Rule::Exta),
        Cast::Zero { .. } if a.unsigned => {
            let numbers = |form: Form| form.as_number().map(Form::number);
            let base = numbers(a.base).filter(|_| a.signed && around.is_small(&a, from));
            (around.made((a.strides.map(numbers), base), true, true), Rule::Exta)
        }
        _ => (Fact::Divergent, Rule::Guna),
    }
}

impl Around<'_> {
    /// Whether no value of an equation has a bit that a mask of the lowest bits lacks.
    fn is_within(&self, affine: &Affine, mask: i64) -> bool {
        let bits = mask.trailing_ones() as u8;
        let is_mask = mask > 0 && mask == (1 << bits) - 1;
        let is_cast = self.no_wrap && affine.signed && matches!(bits, 8 | 16 | 32);
        is_mask && (is_cast || self.ranged(Affine { signed: false, unsigned: false, ..*affine }, bits).unsigned)
    }

    /// Whether all values of an equation between numbers are known to be below 2^(bits - 1), and not negative.
    fn is_small(&self, affine: &Affine, bits: u8) -> bool {
        let ranged = self.ranged(Affine { signed: false, unsigned: false, ..*affine }, bits);
        ranged.signed && ranged.unsigned
    }
}

pub(crate) fn compared(around: &Around<'_>, predicate: Predicate, a: Fact, b: Fact) -> (Fact, Rule) {
    let (Fact::Affine(a), Fact::Affine(b)) = (a, b) else { return (Fact::Divergent, Rule::Gbna) };
    if a.is_uniform() && b.is_uniform() {
        return (around.itself(), Rule::Gbza);
    }
    let exact = match predicate {
        Predicate::Equality { .. } => true,
        Predicate::Order { signed: true, .. } => a.signed && b.signed,
        Predicate::Order { signed: false, .. } => a.unsigned && b.unsigned,
    };
    match exact && a.strides == b.strides {
        true => (around.itself(), Rule::Cmpa),
        false => (Fact::Divergent, Rule::Gbna),
    }
}
