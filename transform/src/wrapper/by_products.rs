//! Files that clang writes besides the code. Each half of a compile job would write its own; the output of the second
//! half is appended to that of the first.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::jobs::Job;
use crate::{Error, Result};

/// A file of both halves.
pub(super) struct ByProduct {
    kind: Kind,
    /// Where the user wants it, and the first half has written it.
    at: PathBuf,
    /// Where the second half writes.
    second: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// `-ftime-trace`: spans of time, as JSON.
    TimeTrace,
    /// `-fsave-optimization-record`: remarks, as YAML documents.
    Remarks,
    /// `-save-stats`: counts, as a JSON object.
    Statistics,
}

/// The second half of a compile job with other places for its files, and these files.
pub(super) fn redirected(mut job: Job, folder: &Path) -> (Job, Vec<ByProduct>) {
    if job.value_of("-opt-record-format").is_some_and(|format| format != "yaml")
        && let Some(file) = job.value_of("-opt-record-file")
    {
        super::build::warn(&format!(
            "writing {}: remarks of code generation are left out, since files in this format cannot be joined; use \
             -fsave-optimization-record=yaml to get them",
            file.display()
        ));
        job.leave_out(&["-opt-record-file"]);
    }
    let mut files = Vec::new();
    for place in 0..job.0.len() {
        let (prefix, kind) = match job.0[place].as_bytes() {
            word if word.starts_with(b"-ftime-trace=") => ("-ftime-trace=", Kind::TimeTrace),
            word if word.starts_with(b"-stats-file=") => ("-stats-file=", Kind::Statistics),
            _ if place > 0 && job.0[place - 1] == "-opt-record-file" => ("", Kind::Remarks),
            _ => continue,
        };
        let second = folder.join(format!("by-product.{place}"));
        let at = OsStr::from_bytes(&job.0[place].as_bytes()[prefix.len()..]).into();
        let word = [prefix.as_bytes(), second.as_os_str().as_bytes()].concat();
        job.0[place] = OsString::from_vec(word);
        files.push(ByProduct { kind, at, second });
    }
    (job, files)
}

impl ByProduct {
    /// Joins what the second half wrote to what the first half wrote. `passes` is when the passes ran, in between.
    pub(super) fn join(&self, passes: (SystemTime, SystemTime)) -> Result<()> {
        let Ok(second) = std::fs::read(&self.second) else { return Ok(()) };
        match self.kind {
            Kind::Remarks => self.append(&second),
            Kind::TimeTrace => self.join_json(&second, |first, second| join_traces(first, second, passes)),
            Kind::Statistics => self.join_json(&second, add_up),
        }
    }

    fn append(&self, text: &[u8]) -> Result<()> {
        let file = std::fs::File::options().append(true).create(true).open(&self.at);
        file.and_then(|mut file| file.write_all(text)).map_err(|source| self.unwritable(source))
    }

    /// Where the first half's file is not there or is a device, the second half's takes its place, as it would without
    /// us.
    fn join_json(&self, second: &[u8], join: impl FnOnce(&mut Map<String, Value>, Map<String, Value>)) -> Result<()> {
        let parse = |bytes: &[u8]| serde_json::from_slice::<Map<String, Value>>(bytes).ok();
        let first = if self.at.is_file() { std::fs::read(&self.at).ok() } else { None };
        let written = match (first.as_deref().and_then(parse), parse(second)) {
            (Some(mut first), Some(second)) => {
                join(&mut first, second);
                std::fs::write(&self.at, Value::Object(first).to_string())
            }
            _ => std::fs::write(&self.at, second),
        };
        written.map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: std::io::Error) -> Error {
        Error::Write { path: self.at.clone(), source }
    }
}

const BEGINNING: &str = "beginningOfTime";
const EVENTS: &str = "traceEvents";

/// Both halves are processes of one trace, on one clock, with the passes between them.
fn join_traces(first: &mut Map<String, Value>, mut second: Map<String, Value>, passes: (SystemTime, SystemTime)) {
    let beginning = |trace: &Map<String, Value>| trace.get(BEGINNING).and_then(Value::as_i64).unwrap_or(0);
    let start = beginning(first);
    let shift = beginning(&second) - start;
    let Some(Value::Array(mut events)) = second.remove(EVENTS) else { return };
    for event in &mut events {
        // Sums over all events of a name stand at 0, as names of processes do.
        let is_span = event["ph"] == "X" && !event["name"].as_str().is_some_and(|name| name.starts_with("Total "));
        if let (true, Some(at)) = (is_span, event["ts"].as_i64()) {
            event["ts"] = json!(at + shift);
        }
    }
    let micros = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
    let (from, to) = (micros(passes.0), micros(passes.1));
    let own = std::process::id();
    events.push(
        json!({"pid": own, "tid": own, "ph": "X", "ts": from - start, "dur": to - from, "name": "lockstep passes"}),
    );
    events.push(json!({"pid": own, "tid": own, "ph": "M", "ts": 0, "cat": "", "name": "process_name", "args": {"name": "lockstep"}}));
    if let Some(Value::Array(all)) = first.get_mut(EVENTS) {
        all.extend(events);
    }
}

/// Adds counts of one name.
fn add_up(first: &mut Map<String, Value>, second: Map<String, Value>) {
    for (name, more) in second {
        let sum = match (first.get(&name).and_then(Value::as_u64), more.as_u64()) {
            (Some(a), Some(b)) => json!(a + b),
            _ => match (first.get(&name).and_then(Value::as_f64), more.as_f64()) {
                (Some(a), Some(b)) => json!(a + b),
                _ => more,
            },
        };
        first.insert(name, sum);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_halves_files_are_told_apart_and_options_keep_their_form() {
        let words =
            ["clang", "-cc1", "-ftime-trace=a.json", "-opt-record-file", "a.yaml", "-stats-file=a.stats", "-o", "a.o"];
        let (job, files) = redirected(Job(words.map(OsString::from).to_vec()), Path::new("/f"));
        let kinds: Vec<_> = files.iter().map(|file| (file.kind, file.at.to_str().unwrap())).collect();
        assert_eq!(kinds, [(Kind::TimeTrace, "a.json"), (Kind::Remarks, "a.yaml"), (Kind::Statistics, "a.stats")]);
        let expected = [
            "clang",
            "-cc1",
            "-ftime-trace=/f/by-product.2",
            "-opt-record-file",
            "/f/by-product.4",
            "-stats-file=/f/by-product.5",
            "-o",
            "a.o",
        ];
        assert_eq!(job, Job(expected.map(OsString::from).to_vec()));
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn spans_of_the_second_half_stand_on_the_clock_of_the_first_and_sums_stay_at_0() {
        let mut first =
            object(json!({"traceEvents": [{"ph": "X", "ts": 5, "name": "Frontend"}], "beginningOfTime": 1000}));
        let second = object(json!({"traceEvents": [{"ph": "X", "ts": 7, "name": "Backend"},
            {"ph": "X", "ts": 0, "name": "Total Backend"}], "beginningOfTime": 1400}));
        let at = |micros| UNIX_EPOCH + Duration::from_micros(micros);
        join_traces(&mut first, second, (at(1100), at(1300)));
        let times: Vec<_> = first[EVENTS].as_array().unwrap().iter().map(|e| e["ts"].as_i64().unwrap()).collect();
        assert_eq!(times, [5, 407, 0, 100, 0]);
        assert_eq!(first[EVENTS][3]["dur"], 200);
    }

    #[test]
    fn counts_of_both_halves_are_added() {
        let mut first = object(json!({"a": 1, "time.user": 0.5}));
        add_up(&mut first, object(json!({"a": 2, "b": 3, "time.user": 0.25})));
        assert_eq!(Value::Object(first), json!({"a": 3, "time.user": 0.75, "b": 3}));
    }
}
