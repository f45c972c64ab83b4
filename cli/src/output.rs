//! Where results go: files, written whole or not at all, and standard output. Where remarks go: standard error.
//!
//! No verb writes to either stream past this file (`clippy.toml` says so): a failure of standard output is an
//! unwritable file like any other, and a failure of standard error changes nothing.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use replay::{LaneOrigin, Outcome, Setting};

use crate::width;

/// What errors call standard output.
const STDOUT: &str = "standard output";

/// Writes a remark, a line, to standard error. If that fails, as for a pipe whose reader is gone, the remark is lost
/// and the work goes on.
macro_rules! say {
    ($($words:tt)*) => { $crate::output::remark(format_args!($($words)*)) };
}
pub(crate) use say;

thread_local! {
    /// What was said on this thread, where somebody wants to hear it.
    static HEARD: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// What is said on this thread while something is done, in place of on standard error; without the program's name.
pub(crate) fn heard<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    HEARD.set(Some(Vec::new()));
    let done = work();
    (done, HEARD.take().unwrap_or_default())
}

/// As [`say!`].
pub(crate) fn remark(words: std::fmt::Arguments) {
    let is_heard = HEARD.with_borrow_mut(|heard| {
        let text = || words.to_string();
        heard.as_mut().map(|heard| heard.push(text().trim_start_matches("lockstep: ").to_owned())).is_some()
    });
    if is_heard {
        return;
    }
    // One write, so that lines of processes that run side by side do not mix.
    let words = width::of_notes().wrapped(&format!("{words}\n"));
    let _ = std::io::stderr().write_all(words.as_bytes());
}

/// A bar that counts finished replays, on standard error; hidden where that is no terminal.
pub(crate) fn progress() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} replays, {elapsed}");
    ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Counts the replays of several calls on one bar. Those of the first call are counted when it has done one.
pub(crate) fn counted(bar: &ProgressBar) -> impl Fn(usize, usize) + Sync {
    |done, all| {
        if done == 1 {
            bar.set_length(bar.length().unwrap_or(0) + all as u64);
        }
        bar.inc(1);
    }
}

/// Writes what people read to standard output, as [`print`] does, its longer lines broken between words.
pub(crate) fn show(text: &str, with_colours: WithColours) -> replay::Result<()> {
    print(&width::of_results().wrapped(text), with_colours)
}

/// Writes a result to standard output, whole; `with_colours`: escapes for colours stay where it is a terminal.
pub(crate) fn print(text: &str, with_colours: WithColours) -> replay::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "this is the place that the others are sent to")]
    let printed = match with_colours {
        WithColours::No => std::io::stdout().lock().write_all(text.as_bytes()),
        WithColours::Yes => anstream::stdout().lock().write_all(text.as_bytes()),
    };
    #[expect(clippy::disallowed_methods, reason = "this is the place that the others are sent to")]
    let printed = printed.and_then(|()| std::io::stdout().flush());
    printed.map_err(|source| replay::Error::Write { path: STDOUT.into(), source })
}

/// Writes rows of outcomes to this file.
pub(crate) fn write_rows(path: &Path, setting: &Setting, outcomes: &[Outcome]) -> replay::Result<()> {
    let mut out = Output::create(path)?;
    let path = out.path();
    replay::write_csv(setting, outcomes, &mut out, &path)?;
    out.finish()
}

/// The file of `--lanes-out`: a row of CSV for each lane, whatever their number.
pub(crate) struct LanesOut {
    out: Output,
}

impl LanesOut {
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn create(path: &Path) -> replay::Result<LanesOut> {
        let mut lanes = LanesOut { out: Output::create(path)? };
        lanes.row(format_args!("locks,lane,thread,generation,thread_instructions"))?;
        Ok(lanes)
    }

    /// Adds the lanes of an outcome under this rule for locks. `origins` says where they come from, in the same order;
    /// lanes that were regrouped come from no one place.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn add(&mut self, rule: &str, origins: Option<&[LaneOrigin]>, outcome: &Outcome) -> replay::Result<()> {
        for (lane, instructions) in outcome.lane_instructions.iter().enumerate() {
            match origins.map(|origins| &origins[lane]) {
                Some(LaneOrigin { thread, generation, .. }) => {
                    self.row(format_args!("{rule},{lane},{},{generation},{instructions}", thread.0))?;
                }
                None => self.row(format_args!("{rule},{lane},,,{instructions}"))?,
            }
        }
        Ok(())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn finish(self) -> replay::Result<()> {
        self.out.finish()
    }

    fn row(&mut self, row: std::fmt::Arguments) -> replay::Result<()> {
        writeln!(self.out, "{row}").map_err(|source| replay::Error::Write { path: self.out.path(), source })
    }
}

/// Refuses to write more than one result to standard output. Each item is an option, and whether it asks for standard
/// output.
///
/// # Errors
/// Of usage, when there are two.
pub(crate) fn only_one(asked: &[(&str, bool)]) -> Result<(), clap::Error> {
    let asked: Vec<&str> = asked.iter().filter(|(_, is)| *is).map(|(option, _)| *option).collect();
    match asked[..] {
        [first, second, ..] => {
            let text = format!("{first} and {second} both write to standard output; name a file for one of them\n");
            Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, text))
        }
        _ => Ok(()),
    }
}

/// Whether the name of a file stands for standard output.
pub(crate) fn is_stdout(path: &Option<PathBuf>) -> bool {
    path.as_ref().is_some_and(|path| path.as_os_str() == "-")
}

/// Whether a text has escapes for colours. They are taken out where standard output is no terminal or the user wants
/// none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithColours {
    No,
    Yes,
}

/// A file for results, or standard output for the name `-`. The file appears under its name only when it is finished,
/// so that a full disk or a killed command leaves what was there before.
pub(crate) struct Output {
    out: BufWriter<Box<dyn Write + Send>>,
    path: PathBuf,
    unfinished: Option<PathBuf>,
}

impl Output {
    pub(crate) fn create(path: &Path) -> replay::Result<Output> {
        if path.as_os_str() == "-" {
            #[expect(clippy::disallowed_methods, reason = "this is the place that the others are sent to")]
            let out = BufWriter::new(Box::new(std::io::stdout()) as Box<dyn Write + Send>);
            return Ok(Output { out, path: STDOUT.into(), unfinished: None });
        }
        // Devices and pipes are written directly: nothing may be renamed over them.
        let direct = path.metadata().is_ok_and(|m| !m.is_file());
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".unfinished-{}", std::process::id()));
        let unfinished = (!direct).then(|| PathBuf::from(name));
        let target = unfinished.as_deref().unwrap_or(path);
        let file = if direct { File::options().write(true).open(target) } else { File::create(target) };
        let file = file.map_err(|source| replay::Error::Write { path: path.to_owned(), source })?;
        Ok(Output { out: BufWriter::new(Box::new(file)), path: path.to_owned(), unfinished })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Writes the rest and gives the file its name; on a terminal, says so.
    pub(crate) fn finish(mut self) -> replay::Result<()> {
        let finished = self.out.flush().and_then(|()| match &self.unfinished {
            Some(unfinished) => std::fs::rename(unfinished, &self.path),
            None => Ok(()),
        });
        if finished.is_ok() && self.unfinished.take().is_some() && std::io::stderr().is_terminal() {
            say!("lockstep: wrote {}", self.path.display());
        }
        finished.map_err(|source| replay::Error::Write { path: self.path.clone(), source })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // The file could not be finished; nothing more can be done about it here.
            let _ = std::fs::remove_file(unfinished);
        }
    }
}
