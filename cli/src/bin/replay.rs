//! `replay`: the short name of `lockstep replay`.

fn main() -> std::process::ExitCode {
    cli::replay(std::env::args_os())
}
