//! Records a program: the smallest user of this crate. `record TRACE PROGRAM [ARGUMENTS…]`
//!
//! Ends with the program's own exit status, 128+n for signal n. `RECORD_OPTIONS` may hold words: `memory`,
//! `follow-forks`, `aslr`, `limit=N`, `start=FUNCTION`, `stop=FUNCTION`, `markers`, `engine=NAME`, `cache=BYTES`,
//! `remember=FOLDER`, `throw=SEED`, `routes=soon`, `small=SEED` and `kill=STOPS` (see `Hooks`). With
//! `RECORD_OUTCOME=FILE` the outcome is written there.

use std::ffi::OsString;
use std::process::ExitCode;

use tracer::{Exit, Hooks, Interrupt, Remember, TraceOptions, Translate, Window, engine_named, trace, use_large_pages};

fn main() -> ExitCode {
    use_large_pages();
    let mut arguments = std::env::args_os().skip(1);
    let output = arguments.next().unwrap_or_default();
    let mut options = TraceOptions::new(arguments.collect::<Vec<OsString>>(), output);
    options.interrupt = Interrupt::on_signals();
    let (mut start, mut stop, mut hooks) = (None, None, Hooks::default());
    for word in std::env::var("RECORD_OPTIONS").unwrap_or_default().split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("memory", _) => options.memory = true,
            ("follow-forks", _) => options.follow_forks = true,
            ("aslr", _) => options.aslr = true,
            ("limit", n) => options.limit = n.parse().ok(),
            ("start", name) => start = Some(name.to_owned()),
            ("stop", name) => stop = Some(name.to_owned()),
            ("markers", _) => options.window = Window::Markers,
            ("cache", bytes) => options.translation.code = bytes.parse().unwrap_or(0),
            ("remember", folder) => options.remember = Remember::In(folder.into()),
            ("throw", seed) => hooks.thrown_away_at_random = seed.parse().ok(),
            ("kill", stops) => hooks.killed_after = stops.parse().ok(),
            ("small", seed) => hooks.small_buffers = seed.parse().ok(),
            ("routes", when) => hooks.routes_at_once = when == "soon",
            ("engine", name) => match engine_named(name) {
                Ok(engine) => options.engine = engine,
                Err(error) => return fail(&error.to_string()),
            },
            _ => return fail(&format!("unknown option {word}")),
        }
    }
    if hooks != Hooks::default() {
        options.engine = Box::leak(Box::new(Translate(hooks)));
    }
    if start.is_some() || stop.is_some() {
        options.window = Window::of(start, stop);
    }
    let outcome = match trace(&options) {
        Ok(outcome) => outcome,
        Err(error) => return fail(&error.to_string()),
    };
    if let Some(file) = std::env::var_os("RECORD_OUTCOME")
        && let Err(error) = std::fs::write(file, format!("{outcome:#?}\n"))
    {
        return fail(&error.to_string());
    }
    match outcome.exit {
        Exit::Exited(status) => ExitCode::from(status as u8),
        Exit::Signalled(signal) => ExitCode::from(128 + signal as u8),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("record: {message}");
    ExitCode::from(125)
}
