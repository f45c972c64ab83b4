//! What was lost and fetched, by call path and source line, in the formats that profilers read.
//!
//! A *stack* is a call path down to one instruction: the calls on the way, then the instruction. Lost lane-slots are
//! those of the fetches of that instruction; all stacks together have all that `replay` counts.

mod callgrind;
mod folded;
mod pprof;
mod speedscope;

use std::collections::HashMap;
use std::hash::Hash;

use attribution::{Source, Subject};
use replay::metrics::{Cause, Causes, Issued, PathId};
use replay::{Outcome, Setting};
use trace_format::{Module, Pc, Trace};

pub use callgrind::callgrind;
pub use folded::folded;
pub use pprof::pprof;
pub use speedscope::speedscope;

/// The profile of a replay that measured [`Causes::by_call`].
pub struct Profile<'t> {
    /// The program and its arguments.
    pub command: String,
    /// How it was replayed, in words.
    pub replayed: String,
    /// The instructions that stacks consist of, each once.
    pub places: Vec<Place>,
    /// Places by their numbers, the outermost first; none is empty.
    pub stacks: Vec<Vec<usize>>,
    /// Lost lane-slots.
    pub lost: Vec<Lost>,
    /// What was fetched, by the number of its stack.
    pub issued: Vec<(usize, Issued)>,
    modules: &'t [Module],
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address.
    pub pc: Pc,
    /// Its function, by the symbols of the trace.
    pub function: String,
    /// `fft.c:75`, or what stands for the line where that is not known.
    pub label: String,
    /// Its line, then those into which it was inlined, the function's own last. None where lines are not known.
    pub lines: Vec<PlaceLine>,
}

/// A source line of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceLine {
    /// The function.
    pub function: String,
    /// The path of the file.
    pub file: String,
    /// The number, from 1.
    pub line: u32,
}

/// Lane-slots that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The number of the stack that was fetched without the lanes.
    pub stack: usize,
    /// What they are lost to.
    pub cause: Cause,
    /// The number of the place at which the lanes parted.
    pub parted_at: Option<usize>,
    /// How many.
    pub slots: u64,
}

impl<'t> Profile<'t> {
    /// Of this outcome; nothing where it has no causes.
    #[must_use]
    pub fn of(trace: &'t Trace, setting: &Setting, outcome: &Outcome) -> Option<Profile<'t>> {
        let causes = outcome.found::<Causes>()?;
        let mut places = Places { source: Source::new(trace), all: Vec::new(), numbers: HashMap::new() };
        let entries = causes.issued.iter().flat_map(|((_, path), _)| causes.paths.entries(*path));
        places.source.know_entries(entries.collect::<std::collections::BTreeSet<Pc>>());
        let (mut stacks, mut numbers) = (Vec::new(), HashMap::new());
        let mut stack = |path: PathId, pc: Pc, places: &mut Places| {
            number(&mut numbers, (path, pc), || {
                let functions = causes.paths.functions(path);
                // Where it is not known which instruction called, the caller's first one stands for it.
                let calls = functions.windows(2).map(|two| two[1].called_at.unwrap_or(two[0].entry));
                stacks.push(calls.chain([pc]).map(|pc| places.number(pc)).collect());
            })
        };
        let issued = causes.issued.iter();
        let issued = issued.map(|((pc, path), issued)| (stack(*path, *pc, &mut places), *issued)).collect();
        let lost = causes.charges.iter().map(|(charge, slots)| Lost {
            stack: stack(charge.path, charge.issued, &mut places),
            cause: charge.cause,
            parted_at: charge.parted_at.map(|pc| places.number(pc)),
            slots: *slots,
        });
        Some(Profile {
            command: setting.command.clone(),
            replayed: format!(
                "lost lane-slots under {}, {} lanes in warps of {}",
                outcome.heuristic, outcome.lanes, outcome.warp_size
            ),
            lost: lost.collect(),
            issued,
            places: places.all,
            stacks,
            modules: trace.modules(),
        })
    }

    /// A stack's places, the outermost first.
    fn places(&self, stack: usize) -> impl DoubleEndedIterator<Item = &Place> + ExactSizeIterator {
        self.stacks[stack].iter().map(|place| &self.places[*place])
    }

    /// The names of a stack's functions, the outermost first, and what stands for its line below them, where that says
    /// more.
    fn names(&self, stack: usize) -> Vec<&str> {
        let mut names: Vec<&str> = self.places(stack).map(|place| &*place.function).collect();
        let label = self.places(stack).next_back().map(|place| &*place.label);
        names.extend(label.filter(|label| names.last() != Some(label)));
        names
    }
}

/// The number of a key: that of its first use; `make` makes the thing of that number.
fn number<K: Eq + Hash>(numbers: &mut HashMap<K, usize>, key: K, make: impl FnOnce()) -> usize {
    let next = numbers.len();
    *numbers.entry(key).or_insert_with(|| {
        make();
        next
    })
}

struct Places<'t> {
    source: Source<'t>,
    all: Vec<Place>,
    numbers: HashMap<Pc, usize>,
}

impl Places<'_> {
    fn number(&mut self, pc: Pc) -> usize {
        number(&mut self.numbers, pc, || {
            let function = self.source.function(pc);
            let mut lines: Vec<PlaceLine> = self
                .source
                .lines(pc)
                .into_iter()
                .map(|found| {
                    let function = found.functions.into_iter().next().unwrap_or_else(|| function.clone());
                    PlaceLine { function, file: found.file, line: found.line }
                })
                .collect();
            // By one name everywhere: that of the symbol.
            lines.last_mut().into_iter().for_each(|last| last.function.clone_from(&function));
            let label = match Subject::line(pc, &mut self.source) {
                Subject::Line(line) => line.short(),
                other => other.to_string(),
            };
            self.all.push(Place { pc, function, label, lines });
        })
    }
}
