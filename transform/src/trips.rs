//! What a user or a trace says about a program: which nested loops pay as one, and where lanes are to wait.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::llvm::Instruction;

/// A line of a source: the file's path, or an end of it, and the number.
pub type Line = (String, u32);

/// Where a loop or an arm of a branch lies that ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The function that has its line, as debug information names it.
    pub function: String,
    /// The symbol of the function that has it after inlining; none where a trace does not say so.
    pub symbol: Option<String>,
    /// A line of the loop's iterations, or the arm's first, then those of the calls through which its function was
    /// inlined there.
    pub lines: Vec<Line>,
}

/// An inner loop that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerLoop {
    /// Where it lies.
    pub site: Site,
    /// How many loops of the function hold it, with itself.
    pub depth: u32,
    /// The fetches that it saves to make one loop of it and the one around it, less those of guards.
    pub gain: i64,
    /// How often the body of that loop would be issued.
    pub turns: i64,
}

/// What a turn of merged loops takes besides, by which a gain is less: values that its parts hand on. Of loops that
/// gain by trip counts alone, those of `utf8` (gpu-kernels) and `nqueens` (linearization) gain 4.7 and 1.4 fetches a
/// turn, and the programs take 1.2 and 2.9 times as many as before; those of `mum`, `stack_machine`, `julia` and
/// `ray_march` gain 12 to 60, and the programs take 0.57 to 0.96 times as many.
const OF_A_TURN: i64 = 8;

/// A loop that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopTurns {
    /// Where it lies.
    pub site: Site,
    /// How often a lane came to it.
    pub entries: u64,
    /// How many turns they took there, all together.
    pub turns: u64,
}

/// What the warps of a trace issue, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paid {
    /// How often the body of a place.
    pub bodies: f64,
    /// The rest of the loops around it, in a GPU's instructions.
    pub rest: f64,
}

/// A place that lanes came to: where a loop in another one begins, or an arm of a branch in a loop.
#[derive(Clone, Debug, PartialEq)]
pub struct PlaceRan {
    /// Whether it is an arm.
    pub is_arm: bool,
    /// Where it lies.
    pub site: Site,
    /// How many loops of the function hold it, with itself if it is one.
    pub depth: u32,
    /// What a lane issues each time that it is there, in a GPU's instructions.
    pub body: f64,
    /// The address in the trace at which it begins.
    pub at: String,
    /// What warps issue whose lanes wait for each other behind it.
    pub apart: Paid,
    /// What they would, if they waited there until so many stand there; none: all that can come.
    pub waits: Vec<(Option<usize>, Paid)>,
}

/// The loops of a trace.
#[derive(Clone, Debug, Default)]
pub struct Trips {
    inner: Arc<Vec<InnerLoop>>,
    all: Arc<Vec<LoopTurns>>,
    places: Option<Arc<Vec<PlaceRan>>>,
}

impl Trips {
    /// Of these loops: those that could be merged with the one around, and all.
    #[must_use]
    pub fn of(inner: Vec<InnerLoop>, all: Vec<LoopTurns>) -> Trips {
        Trips { inner: Arc::new(inner), all: Arc::new(all), places: None }
    }

    /// With what warps issue at places.
    #[must_use]
    pub fn with_places(self, places: Vec<PlaceRan>) -> Trips {
        Trips { places: Some(Arc::new(places)), ..self }
    }

    /// Whether they say how lanes differ.
    pub(crate) fn know_places(&self) -> bool {
        self.places.is_some()
    }

    /// The places that a loop or an arm may be: the most likely ones have the line of its end (an arm: of its
    /// beginning), and lie as deep. Several are as likely where a compiler made copies.
    pub(crate) fn places(&self, of: &Sought, is_arm: bool, depth: u32) -> Vec<&PlaceRan> {
        let all = self.places.iter().flat_map(|places| places.iter()).filter(|place| place.is_arm == is_arm);
        let end = &of.lines[..of.lines.len().min(1)];
        let more = |place: &PlaceRan| (place.site.likeness(&of.function, end).is_some(), place.depth == depth);
        likeliest(all, |place| Some((place.site.likeness(&of.function, &of.lines)?, more(place))))
    }

    /// How many turns a lane takes that comes to this loop; none where it did not run. Of several that are as likely
    /// the one that turned most counts.
    pub(crate) fn turns(&self, of: &Sought) -> Option<f64> {
        let found = likeliest(self.all.iter(), |ran| ran.site.likeness(&of.function, &of.lines));
        let most = found.into_iter().max_by_key(|ran| ran.turns)?;
        Some(most.turns as f64 / most.entries.max(1) as f64)
    }

    /// The fetches that it saves to merge this loop, which so many hold, with the one around it; none where it did not
    /// run. One that more loops held where as much was inlined is a loop in this one, which was unrolled here.
    pub(crate) fn gain(&self, of: &Sought, depth: u32) -> Option<Gain> {
        let found = likeliest(self.inner.iter(), |ran| {
            let likeness = ran.site.likeness(&of.function, &of.lines)?;
            (likeness.calls != Calls::Same || ran.depth <= depth).then_some(likeness)
        });
        let gains = || found.iter().map(|ran| ran.gain - OF_A_TURN * ran.turns);
        Some(Gain { loops: found.len(), least: gains().min()?, most: gains().max()? })
    }
}

/// What merging saves at each of the loops of a trace that one of the code may be, in fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gain {
    pub loops: usize,
    pub least: i64,
    pub most: i64,
}

/// A loop or an arm of a branch that is looked for among what ran.
pub(crate) struct Sought {
    /// The symbol of the function that is compiled.
    pub function: String,
    /// The line of each instruction, with those of the calls through which it was inlined; that of a loop's end, or an
    /// arm's beginning, first.
    pub lines: Vec<Vec<Line>>,
}

impl Sought {
    /// With this code, of one function; none without code.
    pub fn of<'m>(code: impl IntoIterator<Item = Instruction<'m>>) -> Option<Sought> {
        let mut code = code.into_iter().peekable();
        let function = code.peek()?.block()?.function().name();
        let mut lines: Vec<Vec<Line>> = Vec::new();
        for line in code.map(Instruction::lines) {
            if !line.is_empty() && !lines.contains(&line) {
                lines.push(line);
            }
        }
        Some(Sought { function, lines })
    }
}

/// How surely code is what ran at a place with one of its lines; more is surer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    calls: Calls,
    /// The function has the name of the one that ran.
    is_of_function: bool,
    /// The line is that of the code itself, and not that of a call which was inlined.
    is_innermost: bool,
}

/// The calls through which both were inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Calls {
    /// Others: copies of one code, inlined at two places.
    Others,
    /// The same, as far as both were inlined: one before the other, or by another compiler.
    AsFar,
    /// The same.
    Same,
}

impl Site {
    /// How surely code of a function with these lines is what ran here; none: it isn't. A line is the same if its file
    /// is; in a function of the same name the file may have moved to another folder.
    fn likeness(&self, function: &str, lines: &[Vec<Line>]) -> Option<Likeness> {
        let (first, calls) = self.lines.split_first()?;
        let is_of_function = self.function == function || self.symbol.as_deref() == Some(function);
        let is_it = |line: &Line| is_one(line, first) && (is_of_function || may_be_one_file(&line.0, &first.0));
        let of = |lines: &Vec<Line>| {
            let at = lines.iter().position(is_it)?;
            let around = &lines[at + 1..];
            let are_same = around.iter().zip(calls).all(|(a, b)| is_one(a, b));
            let calls = match are_same {
                false => Calls::Others,
                true if around.len() == calls.len() => Calls::Same,
                true => Calls::AsFar,
            };
            Some(Likeness { calls, is_of_function, is_innermost: at == 0 })
        };
        lines.iter().filter_map(of).max()
    }
}

/// Those that are likeliest, of those that are likely at all.
fn likeliest<'a, T, L: Ord>(all: impl Iterator<Item = &'a T>, likeness: impl Fn(&T) -> Option<L>) -> Vec<&'a T> {
    let likely: Vec<(L, &T)> = all.filter_map(|ran| Some((likeness(ran)?, ran))).collect();
    let Some(most) = likely.iter().map(|(likeness, _)| likeness).max() else { return Vec::new() };
    likely.iter().filter(|(likeness, _)| likeness == most).map(|(_, ran)| *ran).collect()
}

/// Whether both have the same number, in files of the same name.
fn is_one(a: &Line, b: &Line) -> bool {
    a.1 == b.1 && Path::new(&a.0).file_name() == Path::new(&b.0).file_name()
}

/// Whether both paths may be of one file: they are the same, or one is the end of the other.
fn may_be_one_file(a: &str, b: &str) -> bool {
    let [a, b] = [a, b].map(|path| {
        let mut plain = PathBuf::new();
        for part in Path::new(path).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir if plain.file_name().is_some() => _ = plain.pop(),
                part => plain.push(part),
            }
        }
        plain
    });
    a.ends_with(&b) || b.ends_with(&a)
}

/// A place at which lanes are to wait for each other, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictedPlace {
    /// The name of its source file, or the end of its path.
    pub file: String,
    /// The line.
    pub line: u32,
    /// How many lanes there are enough; none: all that can come.
    pub enough: Option<usize>,
}

impl PredictedPlace {
    /// Whether a line of a file is it.
    #[must_use]
    pub fn is_at(&self, file: &str, line: u32) -> bool {
        let rest = file.strip_suffix(self.file.as_str());
        line == self.line && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    }
}

/// `FILE:LINE` or `FILE:LINE,threshold=N`.
impl std::str::FromStr for PredictedPlace {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<PredictedPlace, String> {
        let (place, enough) = match text.split_once(",threshold=") {
            Some((place, lanes)) => (place, Some(lanes.parse().map_err(|_| format!("{lanes} is no number of lanes"))?)),
            None => (text, None),
        };
        let parts = place.rsplit_once(':').and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
        let (file, line) = parts.ok_or_else(|| format!("{place} is no FILE:LINE"))?;
        Ok(PredictedPlace { file, line, enough })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_line_of_a_file_or_of_the_end_of_its_path() {
        let place: PredictedPlace = "b/c.cu:41,threshold=8".parse().unwrap();
        assert_eq!(place.enough, Some(8));
        assert!(place.is_at("/a/b/c.cu", 41) && place.is_at("b/c.cu", 41));
        assert!(!place.is_at("bb/c.cu", 41) && !place.is_at("c.cu", 41) && !place.is_at("b/c.cu", 42));
        assert!("c.cu".parse::<PredictedPlace>().is_err() && "c.cu:4,threshold=x".parse::<PredictedPlace>().is_err());
    }

    /// A line of a file in /p, then those of calls: `a.c:7 k.c:3`.
    fn lines(text: &str) -> Vec<Line> {
        let line = |line: &str| {
            let (file, number) = line.rsplit_once(':').unwrap();
            (Path::new("/p").join(file).display().to_string(), number.parse().unwrap())
        };
        text.split_whitespace().map(line).collect()
    }

    fn site(function: &str, symbol: &str, of: &str) -> Site {
        Site { function: function.to_owned(), symbol: Some(symbol.to_owned()), lines: lines(of) }
    }

    fn sought(function: &str, of: &[&str]) -> Sought {
        Sought { function: function.to_owned(), lines: of.iter().map(|of| lines(of)).collect() }
    }

    /// What merging gains at the likeliest loops; of each that ran: function, symbol, lines and gain.
    fn gains(ran: &[(&str, &str, &str, i64)], function: &str, of: &[&str]) -> Option<(i64, i64)> {
        let inner = |&(function, symbol, lines, gain): &(&str, &str, &str, i64)| InnerLoop {
            site: site(function, symbol, lines),
            depth: 2,
            gain: gain + OF_A_TURN,
            turns: 1,
        };
        let trips = Trips::of(ran.iter().map(inner).collect(), Vec::new());
        trips.gain(&sought(function, of), 2).map(|gain| (gain.least, gain.most))
    }

    #[test]
    fn a_loop_is_found_by_its_line_wherever_its_function_was_inlined() {
        let ran = [("f", "k", "a.c:7 k.c:3", 50)];
        let found = Some((50, 50));
        assert_eq!(gains(&ran, "k", &["a.c:6 k.c:3", "a.c:7 k.c:3"]), found, "both inlined it");
        assert_eq!(gains(&ran, "f", &["a.c:7"]), found, "the trace's compiler alone");
        assert_eq!(gains(&[("f", "f", "a.c:7", 50)], "k", &["a.c:7 k.c:3"]), found, "the other alone");
        assert_eq!(gains(&ran, "g", &["a.c:7 k.c:9"]), found, "a copy that did not run");
        assert_eq!(gains(&ran, "k", &["k.c:3"]), None, "the call's line is not the loop's");
        let iterator = ["/rustc/range.rs:9 a.rs:7 k.rs:3"];
        assert_eq!(gains(&[("f", "k", "a.rs:7 k.rs:3", 50)], "k", &iterator), found, "code of a library");
    }

    #[test]
    fn the_calls_through_which_a_loop_was_inlined_tell_its_copies_apart() {
        let ran = [("f", "k", "a.c:7 k.c:3", 50), ("f", "k", "a.c:7 k.c:4", -9), ("f", "f", "a.c:7", 5)];
        assert_eq!(gains(&ran, "k", &["a.c:7 k.c:3"]), Some((50, 50)));
        assert_eq!(gains(&ran, "k", &["a.c:7 k.c:4"]), Some((-9, -9)));
        assert_eq!(gains(&ran, "f", &["a.c:7"]), Some((5, 5)));
        assert_eq!(gains(&ran[..2], "f", &["a.c:7"]), Some((-9, 50)), "before inlining it is both");
    }

    #[test]
    fn the_function_tells_apart_what_shares_a_line() {
        // Two instances of a template.
        let ran = [("f<int>", "_Z1fIiEvv", "a.cpp:7", 50), ("f<long>", "_Z1fIlEvv", "a.cpp:7", -9)];
        assert_eq!(gains(&ran, "_Z1fIiEvv", &["a.cpp:7"]), Some((50, 50)));
        assert_eq!(gains(&ran, "_Z1fIlEvv", &["a.cpp:7"]), Some((-9, -9)));
        assert_eq!(gains(&ran, "_Z1fIcEvv", &["a.cpp:7"]), Some((-9, 50)));
        let two = [("f", "f", "a.c:7", 50), ("f", "f", "a.c:9", -3)];
        assert_eq!(gains(&two, "f", &["a.c:7", "a.c:9"]), Some((-3, 50)));
    }

    #[test]
    fn a_file_of_the_same_name_in_another_folder_is_another_but_in_the_same_function() {
        let ran = [("f", "f", "one/a.c:7", 50)];
        assert_eq!(gains(&ran, "g", &["one/a.c:7"]), Some((50, 50)));
        assert_eq!(gains(&ran, "g", &["two/../one/./a.c:7"]), Some((50, 50)));
        assert_eq!(gains(&ran, "g", &["two/a.c:7"]), None);
        assert_eq!(gains(&ran, "f", &["two/a.c:7"]), Some((50, 50)), "it was built elsewhere");
        assert_eq!(gains(&ran, "f", &["one/a.c:8", "one/b.c:7"]), None);
    }

    #[test]
    fn a_loop_that_was_unrolled_in_another_does_not_stand_for_it() {
        let inner = InnerLoop { site: site("f", "k", "a.c:7 k.c:3"), depth: 3, gain: 50, turns: 1 };
        let trips = Trips::of(vec![inner], Vec::new());
        let gain = |of: &str, depth| trips.gain(&sought("k", &[of]), depth).map(|gain| gain.least);
        assert_eq!(gain("a.c:7 k.c:3", 3), Some(50 - OF_A_TURN));
        assert_eq!(gain("a.c:7 k.c:3", 4), Some(50 - OF_A_TURN), "a loop around it that did not turn");
        assert_eq!(gain("a.c:7 k.c:3", 2), None);
        assert_eq!(gain("a.c:7", 2), Some(50 - OF_A_TURN), "another function's loops hold it");
    }

    #[test]
    fn turns_are_those_of_the_copy_that_was_inlined_at_the_same_call() {
        let ran = |calls, entries, turns| LoopTurns { site: site("f", "k", calls), entries, turns };
        let trips = Trips::of(Vec::new(), vec![ran("a.c:7 k.c:3", 2, 10), ran("a.c:7 k.c:4", 2, 200)]);
        assert_eq!(trips.turns(&sought("k", &["a.c:7 k.c:3"])), Some(5.0));
        assert_eq!(trips.turns(&sought("f", &["a.c:7"])), Some(100.0), "what turned most");
        assert_eq!(trips.turns(&sought("k", &["a.c:8 k.c:3"])), None);
    }

    #[test]
    fn a_place_is_of_the_function_has_the_line_of_the_end_and_lies_as_deep_as_far_as_there_is_one() {
        let place = |function: &str, line: u32, depth, is_arm| PlaceRan {
            is_arm,
            site: site(function, function, &format!("a.c:{line}")),
            depth,
            body: 1.0,
            at: format!("{function} {line} {depth}"),
            apart: Paid::default(),
            waits: Vec::new(),
        };
        let all = [("f", 7, 2, false), ("f", 7, 3, false), ("f", 9, 2, false), ("g", 7, 2, false), ("f", 7, 2, true)];
        let all = all.map(|(function, line, depth, is_arm)| place(function, line, depth, is_arm));
        let trips = Trips::default().with_places(all.to_vec());
        let found = |function: &str, depth, of: &[&str], is_arm| -> Vec<String> {
            trips.places(&sought(function, of), is_arm, depth).iter().map(|place| place.at.clone()).collect()
        };
        assert_eq!(found("f", 2, &["a.c:7", "a.c:9"], false), ["f 7 2"]);
        assert_eq!(found("f", 3, &["a.c:7", "a.c:9"], false), ["f 7 3"]);
        assert_eq!(found("f", 2, &["a.c:9", "a.c:7"], false), ["f 9 2"]);
        assert_eq!(found("f", 4, &["a.c:7"], false), ["f 7 2", "f 7 3"], "copies are as likely");
        assert_eq!(found("h", 2, &["a.c:7 h.c:1"], false), ["f 7 2", "g 7 2"], "it was inlined");
        assert_eq!(found("f", 2, &["a.c:7"], true).len(), 1);
        assert!(found("f", 2, &["a.c:8"], false).is_empty());
        assert!(trips.know_places() && !Trips::default().know_places());
    }
}
