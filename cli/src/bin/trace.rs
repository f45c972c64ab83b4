//! `trace`: the short name of `lockstep trace`.

#[path = "../starter.rs"]
mod starter;

fn main() -> std::process::ExitCode {
    starter::start("trace")
}
