//! The verbs of `lockstep` that need LLVM, which `lockstep` starts.

fn main() -> std::process::ExitCode {
    cli::with_llvm(std::env::args_os())
}
