//! `trace`: the short name of `lockstep trace`.

fn main() -> std::process::ExitCode {
    cli::trace(std::env::args_os())
}
