//! Verbs that need libLLVM. They are in another binary, `lockstep-llvm`, which lies beside this one.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::exit;
use crate::output::say;

/// The verbs that only the other binary has.
const VERBS: [&str; 5] = ["cc", "c++", "transform", "analyze", "verify"];

/// The arguments of such a verb, as they were typed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What the verb is told
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

impl Args {
    /// Starts the verb.
    pub(crate) fn start(self, verb: &str) -> anyhow::Result<ExitCode> {
        start(&[vec![verb.into()], self.words].concat())
    }
}

/// What to tell the other binary, if this command line (the program's name first) is for it.
pub(crate) fn words(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let is_there = |word: &OsString| VERBS.iter().any(|verb| word == verb);
    match arguments {
        [_, help, verb] if help == "help" && is_there(verb) => Some(vec![verb.clone(), "--help".into()]),
        // It knows the options of all verbs; this one can do without.
        [_, verb, ..] if is_there(verb) || verb == "setup" && beside().is_ok_and(|path| path.exists()) => {
            Some(arguments[1..].to_vec())
        }
        _ => None,
    }
}

fn beside() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("lockstep-llvm"))
}

/// Becomes the other binary.
pub(crate) fn start(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let path = beside().map_err(|source| tracer::Error::Start { path: "lockstep".into(), source })?;
    let error = Command::new(&path).arg0("lockstep").args(words).exec();
    say!(
        "lockstep: {}: cannot start it for the verb {}: {error}; cargo install --path cli puts it beside lockstep",
        path.display(),
        words[0].display()
    );
    Ok(ExitCode::from(exit::NOT_FOUND))
}
