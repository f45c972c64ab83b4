//! `lockstep new-model`: a crate that has lockstep and one more model.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::output::say;

/// Write a crate whose program is lockstep with one more reconvergence model, to be built with cargo
///
/// The folder NAME gets a manifest and a source file of 30 lines, whose model runs. All verbs of the program that
/// `cargo build` makes of it know the model.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The name of the model, the crate and the new folder: small letters, digits and hyphens
    #[arg(value_parser = name)]
    name: String,

    /// The folder of lockstep's sources. Default: the one that this program was built from
    #[arg(long, value_name = "FOLDER")]
    source: Option<PathBuf>,
}

const MANIFEST: &str = include_str!("../../templates/new-model/Cargo.toml.in");
const PROGRAM: &str = include_str!("../../templates/new-model/main.rs");

fn name(text: &str) -> Result<String, String> {
    let is_word = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
    if !begins || !text.split('-').all(|word| !word.is_empty() && is_word(word)) {
        return Err("give small letters, digits and hyphens, a letter first: largest-pc".to_owned());
    }
    match heuristics::all().iter().any(|entry| entry.name == text) {
        true => Err("there is a model of this name: give another".to_owned()),
        false => Ok(text.to_owned()),
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let built_from = || Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned);
    let source = args.source.clone().or_else(built_from).and_then(|folder| folder.canonicalize().ok());
    let Some(source) = source.filter(|folder| folder.join("cli/Cargo.toml").exists()) else {
        let text = "the sources of lockstep are not there: name their folder with --source";
        return Err(replay::Error::Request(text.to_owned()).into());
    };
    let folder = Path::new(&args.name);
    let type_name: String = args.name.split('-').map(|word| word[..1].to_uppercase() + &word[1..]).collect();
    let manifest = MANIFEST.replace("own-model", &args.name).replace("SOURCE", &source.to_string_lossy());
    let program = PROGRAM.replace("own-model", &args.name).replace("OwnModel", &type_name);
    let failed = |source| replay::Error::Write { path: folder.to_owned(), source };
    // A folder that is there is somebody's work.
    std::fs::create_dir(folder).map_err(failed)?;
    std::fs::create_dir(folder.join("src")).map_err(failed)?;
    std::fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)?;
    std::fs::write(folder.join("src/main.rs"), program).map_err(failed)?;
    say!(
        "lockstep: {0}/src/main.rs has the model: cd {0} && cargo run -- replay --heuristic {0},minpc trace.bin",
        args.name
    );
    Ok(ExitCode::SUCCESS)
}
