//! The marks of a function, as `include/lockstep.h` makes them: inline assembly that puts a record into a section.

use crate::llvm::{Function, Instruction};

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkKind {
    Begins,
    Waits,
    BeginsCalls,
}

/// A mark.
pub(super) struct Mark<'m> {
    pub(super) at: Instruction<'m>,
    pub(super) kind: MarkKind,
    pub(super) name: String,
    /// How many lanes are enough.
    pub(super) threshold: Option<usize>,
}

/// The marks of a function, in order.
pub(super) fn of(function: Function<'_>) -> Vec<Mark<'_>> {
    let all = function.blocks().into_iter().flat_map(crate::llvm::Block::instructions);
    all.filter_map(|at| {
        let text = at.callee()?.assembly()?;
        let (kind, threshold, name) = parse(&text)?;
        Some(Mark { at, kind, name: name.to_owned(), threshold })
    })
    .collect()
}

/// What the text of inline assembly says, if it is a mark: a record for a section, or a comment in code for a GPU.
fn parse(text: &str) -> Option<(MarkKind, Option<usize>, &str)> {
    let (kind, lanes, name) = match text.trim().strip_prefix("// .lockstep.marks ") {
        Some(comment) => {
            let (kind, rest) = comment.split_once(',')?;
            let (lanes, name) = rest.split_once(',')?;
            (kind, lanes, name.trim())
        }
        None => {
            let mut lines = text.lines().map(str::trim);
            lines.find(|line| line.starts_with(".pushsection .lockstep.marks,"))?;
            let mut of = |directive: &str| lines.find_map(|line| line.strip_prefix(directive)).map(str::trim);
            let (kind, lanes) = of(".long ")?.split_once(',')?;
            (kind, lanes, of(".asciz ")?.strip_prefix('"')?.strip_suffix('"')?)
        }
    };
    let kind = match kind.trim() {
        "1" => MarkKind::Begins,
        "2" => MarkKind::Waits,
        "3" => MarkKind::BeginsCalls,
        _ => return None,
    };
    let lanes: usize = lanes.trim().parse().ok()?;
    Some((kind, (lanes > 0).then_some(lanes), name))
}

/// The functions with a body of this name that a function calls, directly or through others, including copies that the
/// compiler made; each with the function's own calls that lead to it.
pub(super) fn called<'m>(function: Function<'m>, name: &str) -> Vec<(Function<'m>, Vec<Instruction<'m>>)> {
    let mut all: Vec<(Function<'m>, Vec<Instruction<'m>>)> = Vec::new();
    for (at, callee) in calls(function) {
        let (mut left, mut seen) = (vec![callee], vec![callee]);
        while let Some(next) = left.pop() {
            if is_called(&next.name(), name) {
                match all.iter_mut().find(|(other, _)| *other == next) {
                    Some((_, calls)) => calls.push(at),
                    None => all.push((next, vec![at])),
                }
                continue;
            }
            for (_, callee) in calls(next) {
                if !seen.contains(&callee) {
                    seen.push(callee);
                    left.push(callee);
                }
            }
        }
    }
    all
}

/// The calls of functions with a body.
fn calls(function: Function<'_>) -> Vec<(Instruction<'_>, Function<'_>)> {
    let all = function.blocks().into_iter().flat_map(crate::llvm::Block::instructions);
    all.filter_map(|at| {
        let callee = at.callee().or_else(|| at.invoked())?;
        Some((at, callee.as_defined_function()?))
    })
    .collect()
}

/// Whether a symbol is that of a function of this name: in C, or mangled, in whatever namespace.
fn is_called(symbol: &str, name: &str) -> bool {
    let plain = symbol.split('.').next().unwrap_or(symbol);
    let mangled = format!("{}{name}", name.len());
    let ends_number = |at: usize| !plain[..at].ends_with(|c: char| c.is_ascii_digit());
    plain == name || plain.starts_with("_Z") && plain.find(&mangled).is_some_and(ends_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_its_kind_its_lanes_and_its_name() {
        let text = |kind: &str| {
            format!(
                "7654:\n\t.pushsection .lockstep.marks, \"?\", @progbits\n\t.quad 7654b\n\t.long {kind}\n\t.asciz \"a\"\n\t.popsection"
            )
        };
        assert_eq!(parse(&text("1, 8")), Some((MarkKind::Begins, Some(8), "a")));
        assert_eq!(parse(&text("2, 0")), Some((MarkKind::Waits, None, "a")));
        assert_eq!(parse(&text("9, 0")), None);
        assert_eq!(parse("// .lockstep.marks 1, 8, a"), Some((MarkKind::Begins, Some(8), "a")));
        assert_eq!(parse("nop"), None);
    }

    #[test]
    fn symbols_of_c_and_of_cpp_are_found_by_their_plain_names() {
        for symbol in ["shade", "shade.part.1", "_Z5shadedi", "_ZL5shadedi", "_ZN2ns5shadeEd"] {
            assert!(is_called(symbol, "shade"), "{symbol}");
        }
        for symbol in ["shades", "_Z6shadesd", "_Z15shadedi"] {
            assert!(!is_called(symbol, "shade"), "{symbol}");
        }
    }
}
