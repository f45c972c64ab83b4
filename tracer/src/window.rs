//! Which part of a program's run is recorded, and the places in its code at which that part may begin or end.

use trace_format::Marker;

/// Which part of a program's run is recorded: its *window*. The program may enter and leave it any number of times.
/// There is one window for the whole program: when one thread enters it, all threads are recorded from there on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// All of it.
    #[default]
    Whole,
    /// From each entry of the one function on, up to each entry of the other.
    Between {
        /// The function; where there is none, from the beginning.
        start: Option<String>,
        /// The function; where there is none, to the end.
        stop: Option<String>,
    },
    /// While a thread is in a call of this function.
    Calls(String),
    /// Between `LOCKSTEP_BEGIN` and `LOCKSTEP_END` of `lockstep.h`.
    Markers,
}

impl Window {
    /// The window for these two functions: a function that is both is recorded from its entry to its return.
    #[must_use]
    pub fn of(start: Option<String>, stop: Option<String>) -> Window {
        match (start, stop) {
            (None, None) => Window::Whole,
            (Some(start), Some(stop)) if start == stop => Window::Calls(start),
            (start, stop) => Window::Between { start, stop },
        }
    }

    /// What it is, for people; none where it is all of the run.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        Some(match self {
            Window::Whole | Window::Between { start: None, stop: None } => return None,
            Window::Between { start: Some(start), stop: Some(stop) } => format!("from {start} to {stop}"),
            Window::Between { start: Some(start), stop: None } => format!("from {start} on"),
            Window::Between { start: None, stop: Some(stop) } => format!("up to {stop}"),
            Window::Calls(function) => format!("calls of {function}"),
            Window::Markers => "between markers".to_owned(),
        })
    }

    /// Whether the program begins in it.
    #[must_use]
    pub(crate) fn is_open_at_first(&self) -> bool {
        matches!(self, Window::Whole | Window::Between { start: None, .. })
    }

    /// The functions whose entries count, and what they are.
    pub(crate) fn functions(&self) -> Vec<(&str, Gate)> {
        match self {
            Window::Whole | Window::Markers => Vec::new(),
            Window::Between { start, stop } => {
                let start = start.as_deref().map(|name| (name, Gate::Start));
                start.into_iter().chain(stop.as_deref().map(|name| (name, Gate::Stop))).collect()
            }
            Window::Calls(name) => vec![(name, Gate::Function)],
        }
    }
}

/// A place in the program's code at which the window may begin or end, before the instruction there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// The window begins.
    Start,
    /// The window ends.
    Stop,
    /// The entry of the function whose calls are the window.
    Function,
    /// Where such a call may return to.
    Return,
    /// `LOCKSTEP_BEGIN`.
    Begin,
    /// `LOCKSTEP_END`.
    End,
}

impl Gate {
    /// The marker that these bytes of code start with.
    #[must_use]
    pub fn marker(code: &[u8]) -> Option<Gate> {
        match Marker::in_code(code)? {
            Marker::Begin => Some(Gate::Begin),
            Marker::End => Some(Gate::End),
            Marker::IterationBegin | Marker::IterationEnd => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_function_for_both_means_its_calls() {
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(Window::of(None, None), Window::Whole);
        assert_eq!(Window::of(name("f"), name("f")), Window::Calls("f".to_owned()));
        assert_eq!(Window::of(name("f"), None), Window::Between { start: name("f"), stop: None });
        assert!(Window::of(None, name("g")).is_open_at_first() && !Window::of(name("f"), name("g")).is_open_at_first());
    }
}
