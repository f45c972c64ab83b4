//! How the parts of a run are named that `--region auto` chooses from, and what `--region` makes of such a name.

use trace_format::{Pc, Trace, names};

/// The kinds of parts that [`crate::view::Share::region`] begins with.
pub(super) const KINDS: [&str; 3] = ["start routine", "OpenMP parallel region", "task"];

/// Between a routine's name and that of what it calls.
const CALLS: &str = " (calls ";

/// What stands behind the name of a routine that calls this function, where that says more.
pub(super) fn calling(pc: u64, trace: &Trace) -> String {
    format!("{CALLS}{})", name_of(pc, trace))
}

/// A function's name, or its address where the name is not known.
pub(super) fn name_of(object: u64, trace: &Trace) -> String {
    known_name(object, trace).unwrap_or_else(|| format!("at {object:#x}"))
}

pub(super) fn known_name(object: u64, trace: &Trace) -> Option<String> {
    let symbol = trace.symbol_of(Pc(object)).filter(|s| s.pc.0 == object);
    symbol.map(|s| names::demangled(&s.name).into_owned())
}

/// The name of a function, typed as the name of the part that it is.
pub(super) fn typed(name: &str) -> &str {
    let function = KINDS.iter().find_map(|kind| name.strip_prefix(kind)?.strip_prefix(' '));
    function.map_or(name, |function| function.split(CALLS).next().unwrap_or(function))
}

/// The function without a name that is called by its address, `at 0x4011d6`.
pub(super) fn nameless(name: &str, trace: &Trace) -> Option<Pc> {
    let pc = Pc(u64::from_str_radix(name.strip_prefix("at 0x")?, 16).ok()?);
    let mut blocks = trace.blocks().iter();
    blocks.any(|(_, block)| block.instructions.iter().any(|instruction| instruction.pc == pc)).then_some(pc)
}

/// What tasks of so many functions are called.
pub(super) fn words_of_tasks(kinds: usize) -> String {
    match kinds {
        1 => "OpenMP tasks of one kind".to_owned(),
        kinds => format!("OpenMP tasks of {kinds} kinds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_typed_with_its_kind_or_without() {
        for name in ["work", "start routine work", "task work (calls f)", "OpenMP parallel region work"] {
            assert_eq!(typed(name), "work");
        }
        assert_eq!(typed("tasks"), "tasks");
    }
}
