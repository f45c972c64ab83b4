//! Why a pass decided as it did, in words.

use std::fmt;

use super::{Aligned, GuardKind, Reason, linearized};

impl fmt::Display for Aligned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Aligned { pairs, apart, fused } = self;
        write!(f, "{pairs} pairs; lanes that part need about {apart} instructions, fused {fused}")
    }
}

/// The reason in words.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Reason::CallsFused { callee, fusion, guard } => {
                let guard = match guard {
                    GuardKind::Condition => "guarded by the branch's condition",
                    GuardKind::Phi => "guarded by a phi",
                };
                return write!(
                    f,
                    "the callee costs about {callee} instructions, the fusion {fusion}; {guard}; lanes that stay together \
                     lose {fusion} each time"
                );
            }
            Reason::TailsMerged { common } => return write!(f, "{common} instructions in common"),
            Reason::ArmsFused(aligned) => return write!(f, "{aligned}"),
            Reason::Linearized(done) => return write!(f, "{done}"),
            Reason::Split(done) => return write!(f, "{done}"),
            Reason::Spilled(spills) => return write!(f, "{spills}"),
            Reason::NotSpilled(why) | Reason::IterationsNotMarked(why) | Reason::NoTurns(why) => why,
            Reason::IterationsMarked => "each iteration is marked; so the loop stays scalar, and is not unrolled",
            Reason::Barrier(place) => return write!(f, "{place}"),
            Reason::MarkCopied { behind, past } => {
                return write!(
                    f,
                    "the compiler copied the place; lanes that met here reach {behind} copies after it together, and \
                     {past} past it, where no lane is collected"
                );
            }
            Reason::MarkLost(why) => return write!(f, "{why}"),
            Reason::TakesTurns(turns) => return write!(f, "{turns}"),
            Reason::PlaceFound { gain, enough } => {
                let who = enough.map_or("all that can come".to_owned(), |lanes| format!("{lanes} lanes"));
                return write!(f, "by estimate a warp issues {gain}% of what it would if {who} wait here");
            }
            Reason::PlaceRan { gain, enough, apart, together, at } => {
                let who = enough.map_or("all that can come".to_owned(), |lanes| format!("{lanes} lanes"));
                return write!(
                    f,
                    "by the trace warps issue {gain}% of what they would if {who} wait here: its body, {at} in the trace, \
                     {apart} times now and {together} times then"
                );
            }
            Reason::SharedMemoryFull { bytes, capacity } => {
                return write!(f, "a warp's chain of calls would share {bytes} bytes, and it has {capacity}");
            }
            Reason::CallsWithoutProfit { callee, fusion } => {
                return write!(f, "no profit: the callee costs about {callee} instructions, the fusion {fusion}");
            }
            Reason::TailsWithoutProfit { common, jumps } => {
                return write!(f, "no profit: {common} instructions in common, {jumps} more jumps");
            }
            Reason::ArmsWithoutProfit(aligned) => return write!(f, "no profit: {aligned}"),
            Reason::Melded(melding) => return write!(f, "{melding}"),
            Reason::MeldWithoutProfit(melding) => return write!(f, "no profit: {melding}"),
            Reason::LanesAgree => "all lanes of a warp take the same side of the branch",
            Reason::VersionsOfCode => {
                "both sides have the optimiser's versions of one loop: all lanes are taken to need the same"
            }
            Reason::WaitsApart => {
                "lanes of one side would wait here for the other's, which may wait for them in a call before: for a \
                 lock, or at a barrier"
            }
            Reason::HeldUp => {
                "lanes would be held here while others wait for what those do later: give a lock back, come to a \
                 barrier, or end a loop by what they write"
            }
            Reason::MeldTooLarge => "the subgraphs are too large to be compared",
            Reason::NoSubgraph(why) => return write!(f, "{why}"),
            Reason::Attribute(name) => return write!(f, "the calls differ in the attribute {name}"),
            Reason::ArmCalls(callee) => return write!(f, "an arm calls {callee}, and calls are left to fcs"),
            Reason::LoopsApart { costs } => return linearized::write_apart(f, *costs),
            Reason::LoopsAlike { loops, costs, gain } => return linearized::write_alike(f, *loops, *costs, *gain),
            Reason::RowsWithoutProfit { apart, row } => {
                return write!(f, "no profit: a warp takes about {apart} instructions, in a row {row}");
            }
            Reason::PricedAsOther(target) => {
                return write!(f, "there are no costs for {target}; code is priced, and gains are meant, as on x86-64");
            }
            Reason::OtherTarget(target) => {
                return write!(f, "the pass is for x86-64 under Linux, and the module for {target}");
            }
            Reason::GrowsTooMuch { added, most } => {
                return write!(f, "it would add {added} instructions or more by estimate, and may add {most}");
            }
            Reason::GoneOver { left } => {
                return write!(f, "{left} candidates are left, and the limit of passes over the function is reached");
            }
            Reason::Refused(why) => why,
            Reason::BehindJoin => "one call stands after the join, which the other call's path reaches too",
            Reason::NoBranch => "the paths do not part at a branch",
            Reason::InLoop => "a call is in a loop that does not contain the branch or the other call",
            Reason::IrreducibleLoop => "the loop around the branch has several entries",
            Reason::MayUnwind => "a call may unwind into a handler of exceptions",
            Reason::MustBeTail => "a call must be a jump at the end of its function",
            Reason::Bundles => "a call has operand bundles",
            Reason::ReturnsTwice => "the callee returns twice",
            Reason::NoMerge => "the calls are marked nomerge",
            Reason::UnjoinableArgument => "an argument is not a value that a phi can join",
            Reason::AddressTaken => "the address of a block is taken",
            Reason::InHandler => "a call stands where an exception lands",
            Reason::EnteredByAssembly => "a block is entered by inline assembly",
            Reason::UnstorableValue => "a value that cannot be stored is used after a call",
            Reason::ResultOfInvoke => "the result of a call that may throw is used after a call",
            Reason::FunctionTypes => "the calls use different function types",
            Reason::ArgumentTypes => "the calls pass values of different types",
            Reason::ConstantArgument => "the calls differ in an argument that must be a constant",
            Reason::CallingConventions => "the calls have different calling conventions",
            Reason::Convergent => "a call must not depend on more branches than before",
            Reason::Endless => "the callee does not return, so nothing is gained",
        };
        f.write_str(words)
    }
}
