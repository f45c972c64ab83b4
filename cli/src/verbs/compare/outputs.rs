//! Whether two builds print the same, but for what each prints otherwise every time, as times are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often a program runs again where outputs differ.
const RUNS: usize = 2;
/// How long before each: it is another second of the day, then, which programs print.
const PAUSE: Duration = Duration::from_millis(1100);

/// What two builds print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Printed {
    /// The same; with how many lines that change from run to run.
    Same {
        but: usize,
    },
    Different,
    /// Nothing that is the same in all runs of one build.
    Unknown,
}

/// Compares what the two builds printed; runs both again, without recording, where that differs. Of a program that
/// cannot be run again, or fails then, all that it printed counts.
pub(super) fn compare(builds: [(&Path, &[u8]); 2], arguments: &[OsString]) -> Printed {
    if builds[0].1 == builds[1].1 {
        return Printed::Same { but: 0 };
    }
    let runs = |(program, printed): (&Path, &[u8])| -> Option<Vec<Vec<u8>>> {
        let again = (0..RUNS).map(|_| run(program, arguments));
        std::iter::once(Some(printed.to_vec())).chain(again).collect()
    };
    let [Some(before), Some(after)] = builds.map(runs) else { return Printed::Different };
    match (stable(&before), stable(&after)) {
        (Some(before), Some(after)) => of_lines(&before, &after),
        _ => Printed::Unknown,
    }
}

/// The lines that are the same in all runs, each in its place; none where runs print more lines than others.
fn stable(runs: &[Vec<u8>]) -> Option<Vec<Option<&[u8]>>> {
    let lines: Vec<Vec<&[u8]>> = runs.iter().map(|run| run.split(|byte| *byte == b'\n').collect()).collect();
    let (first, others) = lines.split_first()?;
    if others.iter().any(|other| other.len() != first.len()) {
        return None;
    }
    let is_stable = |(at, line): (usize, &&[u8])| others.iter().all(|other| other[at] == *line);
    Some(first.iter().enumerate().map(|(at, line)| is_stable((at, line)).then_some(*line)).collect())
}

fn of_lines(before: &[Option<&[u8]>], after: &[Option<&[u8]>]) -> Printed {
    if before.len() != after.len() {
        return Printed::Different;
    }
    let kept: Vec<(&[u8], &[u8])> =
        before.iter().zip(after).filter_map(|(one, other)| Some(((*one)?, (*other)?))).collect();
    match () {
        () if kept.iter().any(|(one, other)| one != other) => Printed::Different,
        // What stands behind the last line's end is one, too.
        () if kept.iter().all(|(line, _)| line.is_empty()) => Printed::Unknown,
        () => Printed::Same { but: before.len() - kept.len() },
    }
}

/// Runs a program as it is; returns what it printed, if it succeeds.
fn run(program: &Path, arguments: &[OsString]) -> Option<Vec<u8>> {
    std::thread::sleep(PAUSE);
    let ran = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    ran.ok().filter(|output| output.status.success()).map(|output| output.stdout)
}

/// A bare name is a file here, as for the reader of this command line, not a program of PATH.
pub(super) fn file(program: &Path) -> PathBuf {
    if program.components().count() == 1 { Path::new(".").join(program) } else { program.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: [&str; 3], after: [&str; 3]) -> Printed {
        let [before, after] = [before, after].map(|runs| runs.map(|run| run.as_bytes().to_vec()));
        match (stable(&before), stable(&after)) {
            (Some(before), Some(after)) => of_lines(&before, &after),
            _ => Printed::Unknown,
        }
    }

    #[test]
    fn lines_that_change_from_run_to_run_are_not_compared() {
        let before = ["sum 5\ntime 1\n", "sum 5\ntime 2\n", "sum 5\ntime 1\n"];
        assert_eq!(of(before, ["sum 5\ntime 3\n"; 3]), Printed::Same { but: 1 });
        assert_eq!(of(before, ["sum 6\ntime 3\n"; 3]), Printed::Different);
        assert_eq!(of(before, ["sum 5\ntime 3\nmore\n"; 3]), Printed::Different);
        assert_eq!(of(["time 1\n", "time 2\n", "time 1\n"], ["time 9\n"; 3]), Printed::Unknown);
        assert_eq!(of(["a\n", "a\nb\n", "a\n"], ["a\n"; 3]), Printed::Unknown);
    }
}
