//! `replay`: the short name of `lockstep replay`.

#[path = "../starter.rs"]
mod starter;

fn main() -> std::process::ExitCode {
    starter::start("replay")
}
