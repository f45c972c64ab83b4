//! The format of Callgrind, which callgrind_annotate, KCachegrind and QCachegrind read:
//! <https://valgrind.org/docs/manual/cl-format.html>.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use replay::metrics::Issued;

use super::{Place, Profile};

/// Lost lane-slots, warp instructions and thread instructions, by function and line, and what calls cost with what they
/// led to. A function that was inlined is shown as one that was called. How often functions were called is not known:
/// `calls=0`, as `pprof -callgrind` writes.
#[must_use]
pub fn callgrind(profile: &Profile) -> String {
    let mut functions: BTreeMap<Name, Function> = BTreeMap::new();
    let mut add = |stack: usize, cost: Cost| {
        let lines: Vec<(Name, u32)> = profile.places(stack).flat_map(lines).collect();
        // A call that stands twice on a path counts once.
        let calls: BTreeSet<_> = lines.windows(2).map(|two| (two[0], two[1])).collect();
        for ((caller, at), (callee, first)) in calls {
            let known = functions.entry(caller).or_default();
            known.calls.entry((at, callee)).or_insert_with(|| (first, Cost::default())).1.add(cost);
        }
        let (name, line) = lines[lines.len() - 1];
        functions.entry(name).or_default().own.entry(line).or_default().add(cost);
    };
    profile.lost.iter().for_each(|lost| add(lost.stack, Cost { lost: lost.slots, issued: Issued::default() }));
    profile.issued.iter().for_each(|(stack, issued)| add(*stack, Cost { lost: 0, issued: *issued }));
    text(profile, &functions)
}

/// A function: its file, and its name.
type Name<'p> = (&'p str, &'p str);

#[derive(Default)]
struct Function<'p> {
    /// By line.
    own: BTreeMap<u32, Cost>,
    /// By the line of the call and the callee: a line of the callee, and the cost.
    calls: BTreeMap<(u32, Name<'p>), (u32, Cost)>,
}

#[derive(Clone, Copy, Default)]
struct Cost {
    lost: u64,
    issued: Issued,
}

impl Cost {
    fn add(&mut self, other: Cost) {
        self.lost += other.lost;
        self.issued.fetches += other.issued.fetches;
        self.issued.thread_instructions += other.issued.thread_instructions;
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.lost, self.issued.fetches, self.issued.thread_instructions)
    }
}

/// What stands for the name of a file that is not known.
const UNKNOWN: &str = "???";

/// The lines of an instruction with their functions, those that are inlined in others behind these.
fn lines(place: &Place) -> Vec<(Name<'_>, u32)> {
    match &place.lines[..] {
        [] => vec![((UNKNOWN, &place.function), 0)],
        lines => lines.iter().rev().map(|line| ((&*line.file, &*line.function), line.line)).collect(),
    }
}

fn text(profile: &Profile, functions: &BTreeMap<Name, Function>) -> String {
    let mut all = Cost::default();
    functions.values().flat_map(|function| function.own.values()).for_each(|cost| all.add(*cost));
    let mut text = String::from("# callgrind format\nversion: 1\ncreator: lockstep\n");
    // Writing to a string cannot fail.
    let _ = write!(text, "cmd: {}\ndesc: Trigger: {}\n", profile.command.replace('\n', " "), profile.replayed);
    text += "positions: line\nevent: Lost : lost lane-slots\nevent: Fetches : fetches (warp instructions)\n";
    text += "event: Threads : thread instructions\nevents: Lost Fetches Threads\n";
    let _ = writeln!(text, "summary: {all}");
    for ((file, name), function) in functions {
        let _ = write!(text, "\nfl={file}\nfn={name}\n");
        for (line, cost) in &function.own {
            let _ = writeln!(text, "{line} {cost}");
        }
        for ((at, (file, callee)), (first, cost)) in &function.calls {
            let _ = write!(text, "cfl={file}\ncfn={callee}\ncalls=0 {first}\n{at} {cost}\n");
        }
    }
    let _ = writeln!(text, "\ntotals: {all}");
    text
}
