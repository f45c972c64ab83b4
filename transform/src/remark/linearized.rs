//! What `linearize` says about a function.

use std::fmt;

/// What became of a function's control flow: what [`Reason::Linearized`](crate::Reason::Linearized) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Linearized {
    /// Switches that became branches.
    pub switches: usize,
    /// Regions whose parts were put in a row.
    pub regions: usize,
    /// The parts of these, each structured already.
    pub parts: usize,
    /// Guards of parts.
    pub guards: usize,
    /// Guards at the ends of loops.
    pub backs: usize,
}

impl Linearized {
    pub(super) fn numbers(&self) -> Vec<(&'static str, i64)> {
        vec![
            ("switches", self.switches as i64),
            ("regions", self.regions as i64),
            ("parts", self.parts as i64),
            ("guards", self.guards as i64),
            ("backs", self.backs as i64),
        ]
    }
}

impl fmt::Display for Linearized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Linearized { switches, regions, parts, guards, backs } = self;
        write!(
            f,
            "{regions} regions with {parts} parts behind {guards} guards, and {backs} at the ends of loops; {switches} \
             switches are branches"
        )
    }
}
