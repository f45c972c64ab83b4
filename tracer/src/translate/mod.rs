//! The engine `translate`: dynamic binary translation from outside of the program.
//!
//! The program runs copies of its own code, which this process makes and links in memory that both share. The copies do
//! what the originals do, and write down which path they took. In the long run nothing stops. System calls are made by
//! the program itself. A thread stops for us only at code that it has not reached before (an `int3`), when its buffer
//! is full (a page that may not be touched), for the few system calls that change something we have to know, and for
//! signals.
//!
//! The parts, each of which knows only those above it:
//!
//! - `addresses`, `layout`: kinds of addresses, and what lies where. `calls`: which system calls are looked at.
//!   `remote` makes them in the program's place. `hooks`: what tests ask for.
//! - `code`, one translation: `assembler`, `expansions`, `rewrite`, `handler_code` are the code that is put between the
//!   program's own; `values` is what is recorded besides the path, for memory addresses. `builder` makes a `superblock`
//!   by a `plan`, along a `route` if one was seen; `packed` keeps it in few bytes.
//! - `memory`: what is shared with one process (`space`), and how code is found at run time (`tables`).
//! - `program`: the program's code as it is read, its files, and the gates in it.
//! - `translator`: all translations of a process, made, found, linked and given up.
//! - `expand`: from records to the trace.
//! - `session`: the threads, and what each of their stops means.

mod addresses;
mod calls;
mod code;
mod expand;
mod hooks;
mod layout;
mod memory;
mod program;
mod remote;
mod session;
mod translator;

use crate::engine::{Engine, Outcome, TraceOptions};
use crate::error::Result;
pub use hooks::Hooks;

/// The engine; see the module.
pub struct Translate(pub Hooks);

impl Translate {
    /// As users have it.
    pub const PLAIN: Translate = Translate(Hooks {
        thrown_away_at_random: None,
        routes_at_once: false,
        small_buffers: None,
        killed_after: None,
    });
}

impl Engine for Translate {
    fn name(&self) -> &'static str {
        "translate"
    }

    fn description(&self) -> &'static str {
        "dynamic binary translation: close to native speed"
    }

    fn run(&self, options: &TraceOptions) -> Result<Outcome> {
        session::record(options, self.0)
    }
}
