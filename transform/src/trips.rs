//! What a user or a trace says about a program: which nested loops pay as one, and where lanes are to wait.

use std::sync::Arc;

/// An inner loop that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InnerLoop {
    /// The function that it is in.
    pub function: String,
    /// The name of its source file, without folders.
    pub file: String,
    /// A line of its iterations.
    pub line: u32,
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
    /// The function that it is in.
    pub function: String,
    /// The name of its source file, without folders.
    pub file: String,
    /// A line of its iterations.
    pub line: u32,
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
    /// The function that it is in.
    pub function: String,
    /// The name of its source file, without folders.
    pub file: String,
    /// A line of the loop's iterations, or the arm's first.
    pub line: u32,
    /// How many loops of the function hold it.
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

    /// The places that a loop or an arm of a function may be, by its lines: the most likely ones are of that function,
    /// have the line of its end (an arm: of its beginning), and lie as deep. Several are as likely where a compiler
    /// made copies.
    pub(crate) fn places(&self, of: &Sought<'_>) -> Vec<&PlaceRan> {
        let all = self.places.iter().flat_map(|places| places.iter());
        let is_one = |lines: &[(String, u32)], place: &PlaceRan| {
            lines.iter().any(|(file, line)| *file == place.file && *line == place.line)
        };
        let likely = |place: &&PlaceRan| {
            let is_at_end = is_one(&of.lines[..of.lines.len().min(1)], place);
            (place.function == of.function, is_at_end, place.depth == of.depth)
        };
        let mut found: Vec<&PlaceRan> =
            all.filter(|place| place.is_arm == of.is_arm && is_one(&of.lines, place)).collect();
        let most = found.iter().map(likely).max();
        found.retain(|place| Some(likely(place)) == most);
        found
    }

    /// How many turns a lane takes that comes to the loop of a function that has these lines, of files without folders;
    /// none where no such loop ran. Of several that share lines one of a function of this name counts before others,
    /// which one compiler inlined and another did not, and then the one that turned most.
    #[must_use]
    pub fn turns<'a>(&self, function: &str, lines: impl Iterator<Item = (&'a str, u32)> + Clone) -> Option<f64> {
        let is_it = |of: &&LoopTurns| lines.clone().any(|(file, line)| file == of.file && line == of.line);
        let of = self.all.iter().filter(is_it).max_by_key(|of| (of.function == function, of.turns))?;
        Some(of.turns as f64 / of.entries.max(1) as f64)
    }

    /// The fetches that it saves to merge the loop of a function that has these lines, of files without folders; none
    /// where no such loop ran. Of several that share lines the one that gains least counts.
    #[must_use]
    pub fn gain<'a>(&self, function: &str, lines: impl Iterator<Item = (&'a str, u32)> + Clone) -> Option<i64> {
        let is_it = |of: &&InnerLoop| {
            of.function == function && lines.clone().any(|(file, line)| file == of.file && line == of.line)
        };
        self.inner.iter().filter(is_it).map(|of| of.gain - OF_A_TURN * of.turns).min()
    }
}

/// A loop or an arm of a branch that is looked for among what ran.
pub(crate) struct Sought<'a> {
    pub is_arm: bool,
    pub function: &'a str,
    pub depth: u32,
    /// Its lines, of files without folders; that of its end, or an arm's beginning, first.
    pub lines: Vec<(String, u32)>,
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

    #[test]
    fn a_loop_is_found_by_its_function_and_a_line_and_the_least_gain_counts() {
        let inner = |function: &str, line, gain| InnerLoop {
            function: function.to_owned(),
            file: "a.c".to_owned(),
            line,
            gain,
            turns: 1,
        };
        let trips = Trips::of(vec![inner("f", 7, 58), inner("f", 9, 5), inner("g", 7, 9)], Vec::new());
        assert_eq!(trips.gain("f", [("a.c", 6), ("a.c", 7)].into_iter()), Some(50));
        assert_eq!(trips.gain("f", [("a.c", 7), ("a.c", 9)].into_iter()), Some(-3));
        assert_eq!(trips.gain("f", [("b.c", 7)].into_iter()), None);
        assert_eq!(trips.gain("h", [("a.c", 7)].into_iter()), None);
    }

    #[test]
    fn a_place_is_of_the_function_has_the_line_of_the_end_and_lies_as_deep_as_far_as_there_is_one() {
        let place = |function: &str, line, depth, is_arm| PlaceRan {
            is_arm,
            function: function.to_owned(),
            file: "a.c".to_owned(),
            line,
            depth,
            body: 1.0,
            at: format!("{function} {line} {depth}"),
            apart: Paid::default(),
            waits: Vec::new(),
        };
        let all = [("f", 7, 2, false), ("f", 7, 3, false), ("f", 9, 2, false), ("g", 7, 2, false), ("f", 7, 2, true)];
        let all = all.map(|(function, line, depth, is_arm)| place(function, line, depth, is_arm));
        let trips = Trips::default().with_places(all.to_vec());
        let found = |function: &str, depth, lines: &[u32], is_arm| -> Vec<String> {
            let lines = lines.iter().map(|line| ("a.c".to_owned(), *line)).collect();
            trips.places(&Sought { is_arm, function, depth, lines }).iter().map(|place| place.at.clone()).collect()
        };
        assert_eq!(found("f", 2, &[7, 9], false), ["f 7 2"]);
        assert_eq!(found("f", 3, &[7, 9], false), ["f 7 3"]);
        assert_eq!(found("f", 2, &[9, 7], false), ["f 9 2"]);
        assert_eq!(found("f", 4, &[7], false), ["f 7 2", "f 7 3"], "copies are as likely");
        assert_eq!(found("h", 2, &[7], false), ["f 7 2", "g 7 2"], "it was inlined");
        assert_eq!(found("f", 2, &[7], true).len(), 1);
        assert!(found("f", 2, &[8], false).is_empty());
        assert!(trips.know_places() && !Trips::default().know_places());
    }
}
