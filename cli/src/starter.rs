//! Becomes the program `lockstep` beside this one, under another name. It links nothing of lockstep's own, so that a
//! short name costs no second copy of it.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// Runs `lockstep` under this name, with this process's arguments.
pub(crate) fn start(name: &str) -> ExitCode {
    let error = match std::env::current_exe() {
        Ok(own) => {
            let lockstep = own.with_file_name("lockstep");
            let failed = Command::new(&lockstep).arg0(name).args(std::env::args_os().skip(1)).exec();
            format!("{}: cannot start: {failed}", lockstep.display())
        }
        Err(error) => format!("cannot find the program's own file: {error}"),
    };
    // If that cannot be written, the exit status still says it.
    let _ = writeln!(std::io::stderr(), "{name}: {error}");
    ExitCode::from(127)
}
