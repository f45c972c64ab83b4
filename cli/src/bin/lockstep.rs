//! `lockstep <verb>`; as `trace` or `replay`, where it is called so, one of its verbs.

fn main() -> std::process::ExitCode {
    cli::main(std::env::args_os())
}
