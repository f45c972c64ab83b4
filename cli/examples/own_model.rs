//! The program that `lockstep new-model` writes.

extern crate cli as lockstep;

include!("../templates/new-model/main.rs");
