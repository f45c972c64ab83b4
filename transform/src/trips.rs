//! What a trace says about nested loops: which of them pay as one.

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
}

/// The inner loops of a trace.
#[derive(Clone, Debug, Default)]
pub struct Trips(Arc<Vec<InnerLoop>>);

impl Trips {
    /// Of these loops.
    #[must_use]
    pub fn of(loops: Vec<InnerLoop>) -> Trips {
        Trips(Arc::new(loops))
    }

    /// What it saves to merge the loop of a function that has these lines, of files without folders; none where no such
    /// loop ran. Of several that share lines the one that gains least counts.
    #[must_use]
    pub fn gain<'a>(&self, function: &str, lines: impl Iterator<Item = (&'a str, u32)> + Clone) -> Option<i64> {
        let is_it = |of: &&InnerLoop| {
            of.function == function && lines.clone().any(|(file, line)| file == of.file && line == of.line)
        };
        self.0.iter().filter(is_it).map(|of| of.gain).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_found_by_its_function_and_a_line_and_the_least_gain_counts() {
        let inner = |function: &str, line, gain| InnerLoop {
            function: function.to_owned(),
            file: "a.c".to_owned(),
            line,
            gain,
        };
        let trips = Trips::of(vec![inner("f", 7, 50), inner("f", 9, -3), inner("g", 7, 1)]);
        assert_eq!(trips.gain("f", [("a.c", 6), ("a.c", 7)].into_iter()), Some(50));
        assert_eq!(trips.gain("f", [("a.c", 7), ("a.c", 9)].into_iter()), Some(-3));
        assert_eq!(trips.gain("f", [("b.c", 7)].into_iter()), None);
        assert_eq!(trips.gain("h", [("a.c", 7)].into_iter()), None);
    }
}
