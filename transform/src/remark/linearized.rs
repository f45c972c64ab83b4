//! What `linearize` says about a function.

use std::fmt;

/// The result for a function's control flow: the numbers of [`Reason::Linearized`](crate::Reason::Linearized).
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
    /// Unstructured edges that were there before, by the paper's definition 1 ([`flowgraph::unstructured_edges`]),
    /// once switches were branches. 0 where what makes the function unstructured escapes that definition.
    pub edges: usize,
    /// Branches and choices on equality of floating-point numbers, two jumps on x86, that became one.
    pub equalities: usize,
    /// By the prediction, if one was made: fetches of a warp that goes once through each region as it was.
    pub apart: i64,
    /// The same in rows.
    pub row: i64,
    /// What was added, less what went.
    pub added: Added,
}

/// What a pass added to a function: less than 0 where more went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Added {
    /// Blocks.
    pub blocks: i64,
    /// Comparisons of integers.
    pub compares: i64,
    /// Jumps and branches.
    pub branches: i64,
    /// Choices between two values.
    pub selects: i64,
    /// Phis: a value that is used behind a guard needs one at each guard in between. Code generation makes moves of
    /// those that do not get the register of what they join.
    pub phis: i64,
}

impl Linearized {
    pub(super) fn numbers(&self) -> Vec<(&'static str, i64)> {
        vec![
            ("switches", self.switches as i64),
            ("regions", self.regions as i64),
            ("parts", self.parts as i64),
            ("guards", self.guards as i64),
            ("backs", self.backs as i64),
            ("edges", self.edges as i64),
            ("equalities", self.equalities as i64),
            ("apart", self.apart),
            ("row", self.row),
            ("blocks", self.added.blocks),
            ("compares", self.added.compares),
            ("branches", self.added.branches),
            ("selects", self.added.selects),
            ("phis", self.added.phis),
        ]
    }
}

impl fmt::Display for Linearized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Linearized { switches, regions, parts, guards, backs, edges, equalities, added, .. } = self;
        let Added { blocks, compares, branches, selects, phis } = added;
        write!(
            f,
            "{edges} unstructured edges: {regions} regions with {parts} parts behind {guards} guards, and {backs} at the \
             ends of loops; {switches} switches are branches; {blocks:+} blocks, {compares:+} comparisons, \
             {branches:+} branches, {selects:+} choices, {phis:+} phis"
        )?;
        if self.apart != 0 {
            write!(f, "; a warp takes about {} instructions, in a row {}", self.apart, self.row)?;
        }
        if *equalities > 0 {
            write!(f, "; {equalities} floating-point comparisons for equality take one jump")?;
        }
        Ok(())
    }
}

/// Why loops were not merged.
pub(super) fn write_apart(f: &mut fmt::Formatter<'_>, costs: Option<i64>) -> fmt::Result {
    match costs {
        Some(costs) => {
            write!(f, "no profit: as one loop both take {costs} fetches more, by the trip counts of the trace")
        }
        None => f.write_str("the trace has no loop of this line in another"),
    }
}

/// Loops of which one alone pays as one with the loop around it.
pub(super) fn write_alike(f: &mut fmt::Formatter<'_>, loops: usize, costs: i64, gain: i64) -> fmt::Result {
    write!(
        f,
        "the trace has {loops} loops that this one may be, and not all pay: as one with the loop around it one saves \
         {gain} fetches, and another takes {costs} more"
    )
}

/// The result for a function whose control flow was made structured in another way: the numbers of
/// [`Reason::Split`](crate::Reason::Split). Sizes are blocks, and instructions without phis and accesses to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Split {
    /// Copies for one of several ways to a part.
    pub forward: usize,
    /// Copies of a loop's first iteration.
    pub backward: usize,
    /// Loops that are left in one place now.
    pub cuts: usize,
    /// The size before.
    pub before: (usize, usize),
    /// The size after.
    pub after: (usize, usize),
}

impl Split {
    pub(super) fn numbers(&self) -> Vec<(&'static str, i64)> {
        vec![
            ("forward", self.forward as i64),
            ("backward", self.backward as i64),
            ("cuts", self.cuts as i64),
            ("blocks-before", self.before.0 as i64),
            ("blocks-after", self.after.0 as i64),
            ("instructions-before", self.before.1 as i64),
            ("instructions-after", self.after.1 as i64),
        ]
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Split { forward, backward, cuts, before, after } = self;
        write!(
            f,
            "{forward} copies forward, {backward} backward, {cuts} loops cut; {} blocks became {}, {} instructions {}",
            before.0, after.0, before.1, after.1
        )
    }
}
