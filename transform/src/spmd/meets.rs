//! What callers and starters pass to parameters, combined over all of them.

use divergence::{Affine, Analysis, Fact, Form, ValueId};

use super::body::Body;

/// What is known to the threads of what their starter gives each of them: whatever that is, it is one number if it was
/// made once. `once` says that the starter is run once at most.
pub(super) fn for_threads(body: &Body<'_>, analysis: &Analysis, once: bool, node: ValueId, fact: Fact) -> Fact {
    let gated = analysis.gated();
    let in_a_row =
        |block| gated.gates().loops().innermost(block).is_none() && gated.gates().irreducible(block).is_none();
    let made_once = gated.eta(node).is_none() && gated.block(node).is_none_or(in_a_row);
    match once {
        true if made_once && !fact.is_uniform() => Fact::itself(node.0),
        _ if once || is_constant(body, analysis, fact) => fact,
        _ => Fact::Divergent,
    }
}

/// Whether what a fact has of unknowns is the same whenever the function runs: addresses of variables.
fn is_constant(body: &Body<'_>, analysis: &Analysis, fact: Fact) -> bool {
    let parameters = body.function.parameters().len() as u32;
    let is_plain = |form: &Form| match form.as_symbol() {
        None => true,
        Some((_, symbol, _)) => symbol
            .origin()
            .is_some_and(|(node, _)| node >= parameters && analysis.gated().block(ValueId(node)).is_none()),
    };
    match fact {
        Fact::Affine(affine) => affine.strides.iter().chain([&affine.base]).all(is_plain),
        other => other == Fact::Top,
    }
}

/// A fact outside of the function that it was found in: its symbols mean nothing there.
pub(super) fn passed(fact: Fact) -> Fact {
    let plain = |form: Form| if form.as_number().is_some() { form } else { Form::UNKNOWN };
    match fact {
        Fact::Affine(affine) => {
            Fact::Affine(Affine { strides: affine.strides.map(plain), base: plain(affine.base), ..affine })
        }
        other => other,
    }
}

/// What threads get that are started at several places of one function, a thread at each: a progression is a function
/// of the thread's number. One place in a loop is a fact by itself.
pub(super) fn numbered(facts: &[Fact]) -> Fact {
    let [first, rest @ ..] = facts else { return Fact::Top };
    if rest.is_empty() {
        return *first;
    }
    let mut offsets = Vec::new();
    let mut part = None;
    for fact in facts {
        let Fact::Affine(affine) = fact else { return Fact::Divergent };
        if !affine.is_uniform() {
            return Fact::Divergent;
        }
        let (own, offset) = match affine.base.as_symbol() {
            Some((scale, symbol, offset)) => (Some((scale, symbol)), offset),
            None => (None, affine.base.as_number().unwrap_or_default()),
        };
        if *part.get_or_insert(own) != own {
            return Fact::Divergent;
        }
        offsets.push(offset);
    }
    let Some(step) = offsets[1].checked_sub(offsets[0]) else { return Fact::Divergent };
    if offsets.windows(2).any(|w| w[1].checked_sub(w[0]) != Some(step)) {
        return Fact::Divergent;
    }
    let base = match part.flatten() {
        Some(_) => Form::UNKNOWN,
        // Numbers in a row are the threads' own.
        None if step == 1 => Form::ZERO,
        None => Form::number(offsets[0]),
    };
    Fact::of_thread(0, Form::number(step), base).exact(part.flatten().is_none(), part.flatten().is_none())
}

/// The meet where threads that were started run beside one that calls the routine itself: an equation must hold for
/// all of them together.
pub(super) fn beside(old: Fact, new: Fact, starts: bool) -> Fact {
    let is_thread_number = |fact: Fact| fact.stride() == Some(1) && fact.affine().is_some_and(|a| a.base.is_zero());
    let is_number = |fact: Fact| fact.affine().is_some_and(|a| a.is_uniform() && a.base.as_number().is_some());
    match (old, new) {
        (Fact::Top, other) | (other, Fact::Top) => other,
        (old, new) if old == new => old,
        (old, new) if is_thread_number(old) && is_number(new) => old,
        (old, new) if starts && is_number(old) && is_thread_number(new) => new,
        _ => Fact::Divergent,
    }
}

/// The value that one thread passes to all.
pub(super) fn one_for_all(fact: Fact) -> Fact {
    match fact {
        Fact::Affine(affine) if affine.is_uniform() => fact,
        Fact::Top => fact,
        _ => Fact::unknown(),
    }
}

/// The meet of what two callers pass.
pub(super) fn met(a: Fact, b: Fact) -> Fact {
    let (Fact::Affine(a), Fact::Affine(b)) = (a, b) else {
        return match (a, b) {
            (Fact::Top, other) | (other, Fact::Top) => other,
            _ => Fact::Divergent,
        };
    };
    let one = |a: Form, b: Form| if a == b { a } else { Form::UNKNOWN };
    let strides = std::array::from_fn(|d| one(a.strides[d], b.strides[d]));
    Fact::Affine(Affine {
        strides,
        base: one(a.base, b.base),
        signed: a.signed && b.signed,
        unsigned: a.unsigned && b.unsigned,
    })
}
