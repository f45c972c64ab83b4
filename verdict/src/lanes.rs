//! The lanes that are judged: a view of the trace, with what is done where the trace does not have what was asked for.

use std::collections::BTreeSet;

use attribution::Source;
use replay::view::{Region, Summary, View, ViewOptions};
use replay::{Error, Result};
use trace_format::Trace;
use trace_format::names::{self, TargetRegion};

/// The lanes of a warp, where none is named and lanes are not threads.
pub const WARP: usize = 32;

/// More than these thread instructions take longer than a second or two to replay: then only what was asked for is.
pub const FEW: u64 = 20_000_000;

/// The most functions that are listed as places where another was inlined.
const INLINED_SHOWN: usize = 3;

/// The lanes of a trace; with a note where they are others than those that were asked for.
///
/// For a Go program, whose threads belong to its scheduler, whole threads are taken where no start routine is known.
///
/// # Errors
/// When the trace cannot be read, or has no such lanes; the message says what to name instead.
pub fn view(trace: &Trace, options: &ViewOptions) -> Result<(View, Option<String>)> {
    let mut options = options.clone();
    let (mut view, note) = match View::new(trace, &options) {
        Err(why) if options.region == Region::Auto && trace.threads().len() > 1 && is_go(trace) => {
            options.region = Region::All;
            (View::new(trace, &options)?, Some(format!("{why}; taken are whole threads")))
        }
        Err(why) => return Err(inlined(trace, &options.region).unwrap_or(why)),
        Ok(view) => (view, None),
    };
    if trace.symbols().iter().any(|symbol| TargetRegion::of(&symbol.name).is_some()) {
        view.rename(&Source::new(trace).target_regions());
    }
    Ok((view, note))
}

/// Whether the program is Go's.
pub(crate) fn is_go(trace: &Trace) -> bool {
    trace.symbols().iter().any(|symbol| symbol.name.starts_with("runtime.mstart"))
}

/// Where the region was named after a function that has no code of its own, what to name instead.
fn inlined(trace: &Trace, region: &Region) -> Option<Error> {
    let Region::Symbol(name) = region else { return None };
    if trace.symbols().iter().any(|symbol| names::is_called(&symbol.name, name)) {
        return None;
    }
    let mut source = Source::new(trace);
    let is_it = |function: &String| function == name || function.split('(').next() == Some(name);
    let pcs = trace.blocks().iter().flat_map(|(_, block)| block.instructions.iter().map(|i| i.pc));
    let holders = pcs.filter_map(|pc| {
        let mut functions = source.line(pc)?.functions;
        let own = functions.pop()?;
        functions.iter().any(is_it).then_some(own)
    });
    let holders: BTreeSet<String> = holders.collect();
    let all = holders.iter().take(INLINED_SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!holders.is_empty()).then(|| {
        Error::Request(format!(
            "`{name}` has no code of its own: the compiler inlined it into {all}. Name a function that it was inlined \
             into, or forbid inlining in the source (__attribute__((noinline)), #[inline(never)]) and trace again"
        ))
    })
}

/// What the region of a result is called: the lanes, where they are not threads, and where they come from.
#[must_use]
pub fn region(summary: &Summary) -> String {
    summary.cut.as_ref().map_or_else(|| summary.region.clone(), |cut| format!("{} of {}", cut.what, summary.region))
}
