//! `lockstep report`: one HTML file that shows where threads part.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use heuristics::Spec;
use report::page::{self, Page, Request};
use verdict::{Machine, Subject};

use crate::output::{Output, counted, progress, say};
use crate::typed::machine;
use crate::typed::models::{self, Models};
use crate::typed::selection::{self, OneView};
use crate::typed::syntax::SyntaxName;

/// Write a page that shows how well a program runs in lockstep, and where it does not; of two traces, what changed
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The trace (- for standard input)
    trace: PathBuf,

    /// A trace to compare with: the first is before, this one is after
    after: Option<PathBuf>,

    /// The page (- for standard output)
    #[arg(long, short = 'o', value_name = "FILE", default_value = "report.html")]
    output: PathBuf,

    /// The reconvergence model that the page is about
    ///
    /// Default: that of --machine nvidia
    #[arg(long, short = 'H', visible_alias = "model", value_name = "HEURISTIC", value_parser = Spec::parse)]
    heuristic: Option<Spec>,

    /// The machine that the page is about
    ///
    /// Its nearest model, with the machine's warp size; the page also shows what other models of that machine say.
    /// Default: nvidia
    #[arg(long, value_name = "MACHINE", value_parser = machine::parser(), conflicts_with = "heuristic")]
    machine: Option<Machine>,

    /// The heuristics among which it is ranked
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = Models::parse)]
    models: Vec<Models>,

    /// Below each source line, show its instructions
    ///
    /// Written as objdump does in this syntax
    #[arg(long, value_name = "SYNTAX", value_enum)]
    syntax: Option<SyntaxName>,

    /// Beside each line, show what divergence analysis proved about it
    ///
    /// A file that `lockstep analyze --json` wrote; may be repeated
    #[arg(long, value_name = "FILE")]
    proved: Vec<PathBuf>,

    #[command(flatten)]
    selection: OneView,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let models = models::all_of(&args.models);
    let subject = Subject::of(args.machine, args.heuristic.iter().cloned().collect());
    let models = models::each_once(subject.models.iter().chain(&models));
    let paths: Vec<&PathBuf> = std::iter::once(&args.trace).chain(&args.after).collect();
    let traces = paths.iter().map(|path| selection::open(path)).collect::<Result<Vec<_>, _>>()?;
    let views = traces.iter().map(|trace| args.selection.view(trace)).collect::<Result<Vec<_>, _>>()?;
    // A page that cannot be written is not worth the replays.
    let mut out = Output::create(&args.output)?;
    let questions = traces.iter().map(|trace| args.selection.question(trace, subject.clone()));
    let questions = questions.collect::<Result<Vec<_>, _>>()?;
    let drawn = page::sample(&questions[0], &views.iter().collect::<Vec<_>>()).unwrap_or_default();
    let mut programs = Vec::new();
    for (number, (path, trace)) in paths.iter().zip(&traces).enumerate() {
        let lanes = drawn.get(number);
        let sample =
            lanes.map(|lanes| Ok::<_, replay::Error>(args.selection.view(trace)?.sample(lanes))).transpose()?;
        let (view, bar) = (&views[number], progress());
        let request = Request {
            question: &questions[number],
            setting: &args.selection.setting(path, trace, view),
            models: models.clone(),
            syntax: args.syntax.map(Into::into),
            is_page: true,
            sample: sample.as_ref(),
            done: &counted(&bar),
        };
        let program = page::program((trace, view), &request);
        bar.finish_and_clear();
        let mut program = program?;
        crate::shown::proofs::add(&mut program, &args.proved)?;
        program.notes.iter().for_each(|note| say!("lockstep: {}: {note}", path.display()));
        programs.push(program);
    }
    let path = out.path();
    let tool = format!("lockstep {}", env!("CARGO_PKG_VERSION"));
    let page = Page {
        command: as_typed(std::env::args_os().map(|word| word.to_string_lossy().into_owned())),
        ..page::page(tool, programs)
    };
    out.write_all(page::render(&page).as_bytes()).map_err(|source| replay::Error::Write { path, source })?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// A command line as a shell takes it; the program by its name alone.
fn as_typed(words: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    let quoted = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let name = |(i, word): (usize, String)| if i == 0 { "lockstep".to_owned() } else { quoted(word) };
    words.enumerate().map(name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_can_be_typed_as_it_is_shown() {
        let words = ["/usr/bin/lockstep", "report", "--loop", "a.c:3", "it's here.bin", ""].map(str::to_owned);
        let shown = super::as_typed(words.into_iter());
        assert_eq!(shown, r"lockstep report --loop a.c:3 'it'\''s here.bin' ''");
    }
}
