//! What is known about a value: which lane made it, and how.

use machine::Operator;

/// How a value came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Made {
    /// In some way.
    #[default]
    Somehow,
    /// From one that was there before the lanes, by adding what is the same for all lanes.
    Steps,
    /// From one that was there before, by taking more values into it.
    Taken(Operator),
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Value {
    /// The lane that made it: 0 for none, n + 1 for lane n.
    pub lane: u32,
    /// The instruction that made it.
    pub site: u32,
    pub made: Made,
    /// In memory: the register, and 1, whose value was put here to be taken back; else 0.
    pub saved: u8,
}

/// What is known about a register.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    pub value: Value,
    /// The address from which it was loaded, if it was, or for which it was computed since; else 0.
    pub home: u64,
    /// What lay at `home`, where the load alone made the value.
    pub under: Option<Value>,
    /// Whether `home` is a fixed place of the function's frame.
    pub in_frame: bool,
    /// What copied it first in this lane, of what another lane has made.
    pub copied_by: Option<u32>,
}

impl Held {
    pub fn of(value: Value) -> Held {
        Held { value, ..Held::default() }
    }

    /// What an update takes for its accumulator.
    pub fn accumulator(&self) -> Value {
        self.under.unwrap_or(self.value)
    }
}
