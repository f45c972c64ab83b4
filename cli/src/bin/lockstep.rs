//! `lockstep <verb>`.

fn main() -> std::process::ExitCode {
    cli::lockstep(std::env::args_os())
}
