//! What a pass considered, what it decided, and why: as text for people, and as values with stable names, for programs.

mod barriers;
mod json;
mod linearized;
mod melding;
mod spills;
mod wording;
mod yaml;

use std::fmt;
use std::fmt::Write;

pub use self::barriers::{BarrierPlace, MarkFault, Turns};
pub use self::linearized::{Added, Linearized, Split};
pub use self::melding::{MeldCase, Melding, Unmeldable};
pub use self::spills::Spills;

/// How remarks are written. Each form can be appended to what was written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// A line each, for people.
    #[default]
    Text,
    /// A line each, with a JSON object.
    Json,
    /// Documents of YAML in the form of LLVM's optimisation remarks, which `llvm-remarkutil`, `llvm-opt-report` and
    /// viewers read.
    Yaml,
}

impl Format {
    /// Remarks in this form, in order.
    #[must_use]
    pub fn write(self, remarks: &[Remark]) -> String {
        let mut text = String::new();
        for remark in remarks {
            match self {
                Format::Text => writeln!(text, "{remark}"),
                Format::Json => writeln!(text, "{}", json::of(remark)),
                Format::Yaml => write!(text, "{}", yaml::of(remark)),
            }
            .expect("text can be written to text");
        }
        text
    }
}

/// A place where a pass could have changed the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The pass.
    pub pass: &'static str,
    /// The function; the source file, for what is about a whole module.
    pub function: String,
    /// What it is about: the function that both sites call, or what the arms have in common.
    pub subject: String,
    /// The places that could become one, in order; `None` where the module has no lines. Empty for what is about all of
    /// a function or module.
    pub places: Vec<Option<Place>>,
    /// What was decided, and why.
    pub reason: Reason,
    /// How many fetches of a warp whose lanes part the change saves each time, by the cost model, where it was
    /// reckoned: under models that join lanes at post-dominators or at the lowest pc. How often they part is not known;
    /// where they stay together, the change costs.
    pub gain: Option<i64>,
}

/// The decision of a [`Remark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The program was changed.
    Taken,
    /// The program was left as it is.
    Left,
    /// The pass found its own work wrong, so that the whole module is left as it was before all passes.
    Refused,
}

impl Kind {
    /// The word for it in texts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Taken => "taken",
            Kind::Left => "left",
            Kind::Refused => "refused",
        }
    }
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as the compiler was told.
    pub file: String,
    /// The line; 0 where the compiler says that no one line is right.
    pub line: u32,
    /// The column; 0 where it is unknown.
    pub column: u32,
    /// The call into which this code was inlined.
    pub inlined_at: Option<Box<Place>>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// How control returns after a fused call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// By the condition of the branch.
    Condition,
    /// By a phi that says where control came from.
    Phi,
}

/// Arms aligned: what [`Reason::ArmsFused`] and [`Reason::ArmsWithoutProfit`] say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aligned {
    /// Instructions that stand for two.
    pub pairs: usize,
    /// Fetches of both arms where lanes part.
    pub apart: i64,
    /// Fetches of the fused arms.
    pub fused: i64,
}

/// Why a pass decided as it did. Numbers are fetches by the cost model unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Taken: two calls became one.
    CallsFused {
        /// What the callee costs.
        callee: i64,
        /// What the fusion adds.
        fusion: i64,
        /// How control finds back.
        guard: GuardKind,
    },
    /// Taken: two arms end with the same instructions, which became one.
    TailsMerged {
        /// How many instructions.
        common: usize,
    },
    /// Taken: two arms became one row of instructions.
    ArmsFused(Aligned),
    /// Taken: two subgraphs became one.
    Melded(Melding),
    /// Left: a GPU would issue as much for the melded subgraph, or nearly so.
    MeldWithoutProfit(Melding),
    /// Left: a subgraph has too many blocks.
    MeldTooLarge,
    /// Left: the branch chooses between versions of the same code.
    VersionsOfCode,
    /// Left: lanes of one arm alone may wait for others in front of what would be one.
    WaitsApart,
    /// Left: lanes would be held, and others may wait for what those do later.
    HeldUp,
    /// Left: a part of an arm is no subgraph that can be melded.
    NoSubgraph(Unmeldable),
    /// Left: all lanes go the same way.
    LanesAgree,
    /// Taken: unstructured control flow became structured.
    Linearized(Linearized),
    /// Taken: control flow became structured by copies, or by LLVM's own pass.
    Split(Split),
    /// Taken: values were spilled.
    Spilled(Spills),
    /// Left: values stay where they are, for a reason that the text says.
    NotSpilled(&'static str),
    /// Taken: each iteration of a loop that threads share is marked.
    IterationsMarked,
    /// Left: the iterations of such a loop are not marked, for a reason that the text says.
    IterationsNotMarked(&'static str),
    /// Left: an operation on a barrier that a mark makes; it takes no code.
    Barrier(BarrierPlace),
    /// Left: the compiler copied the place at which a mark makes lanes wait.
    MarkCopied {
        /// Copies that lanes reach which have met.
        behind: usize,
        /// Copies that lanes reach past it.
        past: usize,
    },
    /// Left: what the compiler left of a mark has no effect.
    MarkLost(MarkFault),
    /// Taken: lanes wait at a predicted place, in turns that they agree on.
    TakesTurns(Turns),
    /// Left: by estimate it would pay to wait at a place.
    PlaceFound {
        /// What a warp issues before / after, in percent.
        gain: i64,
        /// How many lanes are enough; none: all that can come.
        enough: Option<usize>,
    },
    /// Left: what a trace says of waiting at a place.
    PlaceRan {
        /// What warps issue before / after, in percent.
        gain: i64,
        /// How many lanes are enough; none: all that can come.
        enough: Option<usize>,
        /// How often warps issue its body without a wait.
        apart: i64,
        /// How often with one.
        together: i64,
        /// The address in the trace at which the body begins.
        at: String,
    },
    /// Left: lanes don't wait at a predicted place, for a reason that the text says.
    NoTurns(&'static str),
    /// Left: calls need more memory that a warp shares than there is.
    SharedMemoryFull {
        /// Bytes that a warp's deepest chain of calls needs.
        bytes: u64,
        /// Bytes that a warp has.
        capacity: u64,
    },
    /// Left: the callee costs less than the fusion adds, or not enough more.
    CallsWithoutProfit {
        /// What the callee costs.
        callee: i64,
        /// What the fusion adds.
        fusion: i64,
    },
    /// Left: too few instructions in common.
    TailsWithoutProfit {
        /// How many instructions.
        common: usize,
        /// Jumps more.
        jumps: i64,
    },
    /// Left: the fused arms would need as many fetches, or not enough fewer.
    ArmsWithoutProfit(Aligned),
    /// Left: one call can be reached from the other.
    BehindJoin,
    /// Left: what parts the paths is no branch.
    NoBranch,
    /// Left: a loop around one of them does not hold the other, or the branch.
    InLoop,
    /// Left: the loop around the branch can be entered in several places.
    IrreducibleLoop,
    /// Left: a call may unwind into a handler.
    MayUnwind,
    /// Left: a call must be a jump.
    MustBeTail,
    /// Left: a call has operand bundles.
    Bundles,
    /// Left: the callee returns twice, as `setjmp` does.
    ReturnsTwice,
    /// Left: somebody forbade to merge the calls.
    NoMerge,
    /// Left: an argument has a type that phis cannot join.
    UnjoinableArgument,
    /// Left: a block that would have to be split can be jumped to by its address.
    AddressTaken,
    /// Left: a block that would have to be split is a handler.
    InHandler,
    /// Left: a block that would have to be split is entered by inline assembly.
    EnteredByAssembly,
    /// Left: a value has to be carried past a call, and cannot be stored.
    UnstorableValue,
    /// Left: the result of a call that may throw would have to be carried past a call.
    ResultOfInvoke,
    /// Left: the calls use different function types.
    FunctionTypes,
    /// Left: the calls pass values of different types.
    ArgumentTypes,
    /// Left: the calls differ in an argument that must be a constant.
    ConstantArgument,
    /// Left: the calls have different calling conventions.
    CallingConventions,
    /// Left: the calls differ in an attribute.
    Attribute(&'static str),
    /// Left: a call must not depend on more branches than before, like a GPU's barrier.
    Convergent,
    /// Left: the callee does not return.
    Endless,
    /// Left: an arm calls a function, and calls are left to another pass.
    ArmCalls(String),
    /// Left: by the trip counts of a trace, two loops take more as one.
    LoopsApart {
        /// So many fetches more; none where the trace has no turn of the loop.
        costs: Option<i64>,
    },
    /// Left: a trace has several loops that this one may be, and not all pay as one with the loop around them.
    LoopsAlike {
        /// How many.
        loops: usize,
        /// So many fetches more at the one that pays least.
        costs: i64,
        /// So many less at the one that pays most.
        gain: i64,
    },
    /// Left: by prediction, no region of the function gains in a row.
    RowsWithoutProfit {
        /// Fetches of a warp that goes through it once, of the region that loses least.
        apart: i64,
        /// The same in a row.
        row: i64,
    },
    /// Left: code for this target is priced as if it were for another, since there are no costs for it.
    PricedAsOther(String),
    /// Left: the pass knows nothing of this target.
    OtherTarget(String),
    /// Left: the function would grow too much.
    GrowsTooMuch {
        /// How many instructions it would get by estimate, as far as they were counted.
        added: usize,
        /// How many it may get.
        most: usize,
    },
    /// Left: the pass reached its limit of passes over the function.
    GoneOver {
        /// How many candidates were left.
        left: usize,
    },
    /// Refused: what the pass found wrong with its own work.
    Refused(String),
}

impl Reason {
    /// What was decided.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Reason::CallsFused { .. }
            | Reason::TailsMerged { .. }
            | Reason::ArmsFused(_)
            | Reason::Melded(_)
            | Reason::Linearized(_)
            | Reason::Split(_)
            | Reason::Spilled(_)
            | Reason::TakesTurns(_)
            | Reason::IterationsMarked => Kind::Taken,
            Reason::Refused(_) => Kind::Refused,
            _ => Kind::Left,
        }
    }

    /// Its name: that of its variant, which is stable, whatever happens to the text.
    #[must_use]
    pub fn name(&self) -> String {
        let text = format!("{self:?}");
        text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
    }

    /// Its numbers, by name.
    #[must_use]
    pub fn numbers(&self) -> Vec<(&'static str, i64)> {
        match *self {
            Reason::CallsFused { callee, fusion, .. } | Reason::CallsWithoutProfit { callee, fusion } => {
                vec![("callee", callee), ("fusion", fusion)]
            }
            Reason::TailsMerged { common } => vec![("common", common as i64)],
            Reason::TailsWithoutProfit { common, jumps } => vec![("common", common as i64), ("jumps", jumps)],
            Reason::ArmsFused(Aligned { pairs, apart, fused })
            | Reason::ArmsWithoutProfit(Aligned { pairs, apart, fused }) => {
                vec![("pairs", pairs as i64), ("apart", apart), ("fused", fused)]
            }
            Reason::Melded(m) | Reason::MeldWithoutProfit(m) => vec![
                ("score", m.score),
                ("pairs", m.pairs as i64),
                ("selects", m.selects as i64),
                ("branches", m.branches as i64),
                ("apart", m.apart),
                ("melded", m.melded),
                ("saved", m.saved),
                ("places", m.places as i64),
                ("cycles", m.cycles),
                ("loops", m.loops as i64),
                ("phis", m.exit_phis as i64),
                ("carried", m.carried as i64),
                ("loss", m.loss),
                ("turn", m.loss_of_turn),
            ],
            Reason::Linearized(done) => done.numbers(),
            Reason::Split(done) => done.numbers(),
            Reason::Spilled(spills) => spills.numbers(),
            Reason::Barrier(place) => place.numbers(),
            Reason::TakesTurns(turns) => turns.numbers(),
            Reason::PlaceFound { gain, enough } => {
                vec![("percent", gain), ("enough", enough.map_or(0, |lanes| lanes as i64))]
            }
            Reason::PlaceRan { gain, enough, apart, together, .. } => vec![
                ("percent", gain),
                ("enough", enough.map_or(0, |lanes| lanes as i64)),
                ("apart", apart),
                ("together", together),
            ],
            Reason::MarkCopied { behind, past } => vec![("behind", behind as i64), ("past", past as i64)],
            Reason::SharedMemoryFull { bytes, capacity } => {
                vec![("bytes", bytes as i64), ("capacity", capacity as i64)]
            }
            Reason::LoopsApart { costs } => costs.map(|costs| ("costs", costs)).into_iter().collect(),
            Reason::LoopsAlike { loops, costs, gain } => {
                vec![("loops", loops as i64), ("gain", gain), ("costs", costs)]
            }
            Reason::RowsWithoutProfit { apart, row } => vec![("apart", apart), ("row", row)],
            Reason::GrowsTooMuch { added, most } => vec![("added", added as i64), ("most", most as i64)],
            Reason::GoneOver { left } => vec![("left", left as i64)],
            _ => Vec::new(),
        }
    }

    /// What else it says than [`Reason::numbers`], by name.
    #[must_use]
    pub fn words(&self) -> Option<(&'static str, &str)> {
        match self {
            Reason::CallsFused { guard: GuardKind::Condition, .. } => Some(("guard", "condition")),
            Reason::CallsFused { guard: GuardKind::Phi, .. } => Some(("guard", "phi")),
            Reason::Attribute(name) => Some(("attribute", name)),
            Reason::Melded(m) | Reason::MeldWithoutProfit(m) => Some(("case", m.case.name())),
            Reason::NoSubgraph(why) => Some(("why", why.name())),
            Reason::NotSpilled(why) | Reason::IterationsNotMarked(why) | Reason::NoTurns(why) => Some(("why", why)),
            Reason::Barrier(place) => Some(("action", place.action.name())),
            Reason::PlaceRan { at, .. } => Some(("at", at)),
            Reason::MarkLost(why) => Some(("why", why.name())),
            Reason::ArmCalls(callee) => Some(("callee", callee)),
            Reason::PricedAsOther(target) | Reason::OtherTarget(target) => Some(("target", target)),
            Reason::Refused(why) => Some(("why", why)),
            _ => None,
        }
    }
}

impl Remark {
    /// What was decided.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.reason.kind()
    }

    /// Whether the program was changed.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.kind() == Kind::Taken
    }
}

/// On one line.
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}: {}", self.pass, self.kind().word(), self.function, self.subject)?;
        if !self.places.is_empty() {
            let places = self.places.iter().map(|p| p.as_ref().map_or_else(|| "?".to_owned(), Place::to_string));
            write!(f, " at {}", places.collect::<Vec<_>>().join(" and "))?;
        }
        write!(f, ": {}", self.reason)
    }
}
