//! What `meld` says about two subgraphs.

use std::fmt;

/// Which of the cases of definition 6 of Saumya et al. (CFM, 2021) two melded subgraphs are, or the one beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeldCase {
    /// Case 1: isomorphic.
    Regions,
    /// Case 2: a block and a region.
    BlockWithRegion,
    /// Case 3: two blocks.
    Blocks,
    /// Isomorphic once an edge of one of them has a block.
    NearlyAlike,
}

impl MeldCase {
    /// Its name, which stays.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MeldCase::Regions => "regions",
            MeldCase::BlockWithRegion => "block-with-region",
            MeldCase::Blocks => "blocks",
            MeldCase::NearlyAlike => "nearly-alike",
        }
    }
}

/// Why a part of an arm is no subgraph that can be melded: what [`Reason::NoSubgraph`](crate::Reason::NoSubgraph) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmeldable {
    /// It ends the function, or never ends.
    Ends,
    /// Lanes leave it to a block that other code leads to as well.
    LeavesEarly,
    /// It holds instructions that cannot be moved, or branches that cannot be changed: a switch, an alloca, a
    /// convergent call, or one that may unwind.
    Fixed,
    /// It has too many blocks.
    TooLarge,
}

impl Unmeldable {
    /// Its name, which stays.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unmeldable::Ends => "ends",
            Unmeldable::LeavesEarly => "leaves-early",
            Unmeldable::Fixed => "fixed",
            Unmeldable::TooLarge => "too-large",
        }
    }
}

impl fmt::Display for Unmeldable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unmeldable::Ends => "a part of an arm ends the function, or never ends, so it has no exit",
            Unmeldable::LeavesEarly => {
                "lanes leave a part of an arm early, to a block that other code leads to as \
                 well"
            }
            Unmeldable::Fixed => {
                "a part of an arm holds what cannot be moved: a switch, an alloca, a convergent call, or one that may \
                 unwind"
            }
            Unmeldable::TooLarge => "a part of an arm has too many blocks",
        })
    }
}

/// Two subgraphs as one: what [`Reason::Melded`](crate::Reason::Melded) and
/// [`Reason::MeldWithoutProfit`](crate::Reason::MeldWithoutProfit) say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Melding {
    /// Why they can be one.
    pub case: MeldCase,
    /// The share of both sides' cycles that is saved at best, in percent.
    pub score: i64,
    /// Instructions that stand for two.
    pub pairs: usize,
    /// Choices between operands.
    pub selects: usize,
    /// Branches around instructions of one side.
    pub branches: usize,
    /// What a GPU issues for both sides where lanes part.
    pub apart: i64,
    /// What it issues for the melded subgraph.
    pub melded: i64,
    /// What it saves of a GPU's time, in the time of so many instructions: for a processor's code what it issues less.
    pub saved: i64,
    /// Loads and stores of which each side's lanes go to a place of their own.
    pub places: usize,
    /// Cycles saved.
    pub cycles: i64,
    /// Blocks of the melded subgraph that are in a loop of it.
    pub loops: usize,
    /// Values of one side that are used where both sides now pass.
    pub exit_phis: usize,
    /// Values of one side that are used behind where both sides now come by.
    pub carried: usize,
    /// How many fetches of the processor are lost at most where lanes agree.
    pub loss: i64,
    /// So many more at most for each turn of a loop of the melded subgraph.
    pub loss_of_turn: i64,
}

impl fmt::Display for Melding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Melding { score, pairs, selects, branches, apart, melded, cycles, loops, exit_phis, carried, .. } = self;
        let Melding { loss, loss_of_turn, saved, places, .. } = self;
        write!(
            f,
            "{}, score {score}%: {pairs} pairs, {selects} selects, {branches} branches; lanes that part need about \
             {apart} instructions, melded {melded}, on a GPU",
            self.case.name()
        )?;
        if *saved != apart - melded {
            write!(f, ", where memory takes longer: in time {saved} are gained")?;
        }
        if *places > 0 {
            write!(f, "; {places} accesses go to two places, as many transactions as before")?;
        }
        write!(
            f,
            "; {cycles} cycles are saved; {loops} blocks in loops, {exit_phis} \
             phis at the exit, {carried} values carried; where lanes agree at most {loss} are lost, {loss_of_turn} \
             more for each iteration of a loop"
        )
    }
}
