//! What a remedy changes.

/// What to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lanes that wait for each other behind a lock.
    Meet,
    /// Less under a lock.
    Shorten,
    /// An atomic operation in place of a lock.
    TakeNumber,
    /// Another lock granularity.
    Lock,
    /// A fixed share of the work for each thread.
    FixedShare,
    /// One loop in place of an inner loop and the one around it.
    MergeLoops,
    /// Lanes that are alike in one warp.
    Regroup,
    /// Lanes of equal length.
    EqualWork,
    /// Iterations of an inner loop made equal.
    EqualTurns,
    /// One call for both sides of a branch.
    Fuse,
    /// What both sides of a branch compute, before it.
    Hoist,
    /// Both sides computed, and one chosen.
    NoBranch,
    /// Items in an order in which lanes agree.
    Sort,
    /// Items in the order of what they call.
    SortByCallee,
    /// Work of one lane, during which the others wait, spread over all or repeated in each.
    ShareOut,
    /// Phases between barriers of equal length.
    EvenPhases,
    /// As many lanes as seats.
    FillWarps,
}

impl Kind {
    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Meet => "meet behind the lock",
            Kind::Shorten => "shorten the lock",
            Kind::TakeNumber => "atomic in place of the lock",
            Kind::Lock => "lock granularity",
            Kind::FixedShare => "fixed share",
            Kind::MergeLoops => "merge loops",
            Kind::Regroup => "regroup lanes",
            Kind::EqualWork => "equal work",
            Kind::EqualTurns => "equal turns",
            Kind::Fuse => "fuse",
            Kind::Hoist => "hoist",
            Kind::NoBranch => "no branch",
            Kind::Sort => "sort",
            Kind::SortByCallee => "sort by callee",
            Kind::ShareOut => "share out",
            Kind::EvenPhases => "even phases",
            Kind::FillWarps => "fill warps",
        }
    }
}
