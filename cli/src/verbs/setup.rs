//! `lockstep setup`: what `cargo install` does not place.

use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::output::say;

/// Write the links trace and replay, shell completions and manual pages
///
/// Links go to PREFIX/bin, manual pages to PREFIX/share/man/man1, and completions for bash, zsh and fish to the places
/// under PREFIX/share where these shells look. Files from an earlier setup are replaced.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder under which all files are written. Default: ~/.local
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<PathBuf>,
}

/// The short names.
const LINKS: [&str; 2] = ["trace", "replay"];

pub(crate) fn run(args: &Args, lockstep: Command) -> anyhow::Result<ExitCode> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local"));
    let Some(prefix) = args.prefix.clone().or_else(home) else {
        return Err(replay::Error::Request("there is no home folder: name one with --prefix".into()).into());
    };
    let own = std::env::current_exe().map_err(|source| tracer::Error::Start { path: "lockstep".into(), source })?;
    for name in LINKS {
        link(&own.with_file_name("lockstep"), &prefix.join("bin").join(name))?;
    }
    for command in [lockstep, crate::Trace::command(), crate::Replay::command()] {
        complete(&command, &prefix.join("share"))?;
        manual(command, &prefix.join("share/man/man1"))?;
    }
    say!("lockstep: links, completions and manual pages are in {}", prefix.display());
    Ok(ExitCode::SUCCESS)
}

/// Makes a link, and replaces another link. A program of that name that lies beside `lockstep` is lockstep's own.
fn link(lockstep: &Path, at: &Path) -> replay::Result<()> {
    let failed = |source| replay::Error::Write { path: at.to_owned(), source };
    let folder = at.parent().unwrap_or(at);
    std::fs::create_dir_all(folder).map_err(failed)?;
    match at.symlink_metadata() {
        Ok(there) if there.is_symlink() => std::fs::remove_file(at).map_err(failed)?,
        Ok(_) if folder.canonicalize().ok().as_deref() == lockstep.parent() => return Ok(()),
        Ok(_) => return Err(failed(io::Error::new(ErrorKind::AlreadyExists, "another program has this name"))),
        Err(_) => {}
    }
    symlink(lockstep, at).map_err(failed)
}

/// Writes what completes a command in each shell.
fn complete(command: &Command, share: &Path) -> replay::Result<()> {
    let name = command.get_name().to_owned();
    for (shell, folder, file) in [
        (Shell::Bash, "bash-completion/completions", name.clone()),
        (Shell::Zsh, "zsh/site-functions", format!("_{name}")),
        (Shell::Fish, "fish/vendor_completions.d", format!("{name}.fish")),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), &name, &mut script);
        write(&share.join(folder), &file, &script)?;
    }
    Ok(())
}

/// Writes the manual page of a command, and one for each of its verbs.
fn manual(command: Command, folder: &Path) -> replay::Result<()> {
    let made = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command.disable_help_subcommand(true), folder));
    made.map_err(|source| replay::Error::Write { path: folder.to_owned(), source })
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> replay::Result<()> {
    let path = folder.join(name);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, bytes));
    written.map_err(|source| replay::Error::Write { path, source })
}
