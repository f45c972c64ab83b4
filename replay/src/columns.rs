//! Columns of a result, as in CSV, JSON and docs/metrics.md, and those that every replay has.

use crate::outcome::MOST_LANES_LISTED;
use crate::{Kind, Optimum, Outcome, Unit, Value};

/// The setting of a result, besides the heuristic.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// The trace's file name.
    pub trace: String,
    /// The program and its arguments.
    pub command: String,
    /// The region replayed, as resolved.
    pub region: String,
    /// `all` or `main`.
    pub code: String,
    /// `serialize`, `simt`, `drop` or `ignore`; several with commas where outcomes of several stand together.
    pub locks: String,
    /// How lanes were put into warps.
    pub group: String,
    /// Threads in the trace.
    pub threads: usize,
}

/// A column.
pub struct Column {
    /// Its name in CSV and JSON.
    pub name: &'static str,
    /// What it is, with its unit.
    pub definition: &'static str,
    /// What its values are, where it has some. Default: counts.
    pub kind: Kind,
    from: From,
}

/// What the setting says.
pub(crate) static SETTING: &[Column] = &[
    setting("trace", "The trace's file name.", |s| (&*s.trace).into()).of(Kind::Text),
    setting("command", "The program that was traced, and its arguments.", |s| (&*s.command).into()).of(Kind::Text),
    setting("region", "The part of the run that was replayed.", |s| (&*s.region).into()).of(Kind::Text),
    setting("code", "The code that was replayed: all, or main (the main executable only).", |s| (&*s.code).into())
        .of(Kind::Text),
    Column {
        name: "locks",
        definition: "The rule for locks: serialize, simt, drop or ignore.",
        kind: Kind::Text,
        from: From::Locks,
    },
    setting("group", "How lanes were put into warps.", |s| (&*s.group).into()).of(Kind::Text),
    setting("threads", "Threads in the trace, replayed or not.", |s| s.threads.into()),
];

/// What is replayed, and what the engine counts.
pub(crate) static COUNTS: &[Column] = &[
    of("lanes", "Lanes replayed: threads that reached the region.", |o| o.lanes.into()),
    of("warp_size", "Seats in a warp, W.", |o| o.warp_size.into()),
    of("warps", "Warps.", |o| o.warps.into()),
    of(
        "warps_per_block",
        "Warps that were replayed together, so that their lanes could share fetches; 1: each alone.",
        |o| o.warps_per_block.into(),
    ),
    of("heuristic", "The reconvergence model, with every parameter.", |o| (&*o.heuristic).into()).of(Kind::Text),
    of("status", "`ok`, or the sentence that says why there are no numbers (a deadlock).", |o| o.status().into())
        .of(Kind::Text),
    of(
        "deadlock",
        "The deadlock, if the model deadlocks with locks=serialize: the row's numbers are then those with \
         locks=simt, where it doesn't.",
        |o| o.deadlock.as_ref().map(ToString::to_string).into(),
    )
    .of(Kind::Text),
    counted("fetches", "Warp instructions: instructions issued, each for all its active lanes.", |o| {
        o.counts.fetches().into()
    }),
    counted("thread_instructions", "Thread instructions: instructions executed, summed over lanes.", |o| {
        o.counts.thread_instructions().into()
    }),
    counted("simt_efficiency", "thread_instructions / (fetches x warp_size): 0 to 1.", |o| o.simt_efficiency().into())
        .of(Kind::Quotient),
    counted(
        "gpu_efficiency",
        "The same with instructions as an NVIDIA GPU has them, and lanes that are predicated off counted as active.",
        |o| o.gpu_efficiency().into(),
    )
    .of(Kind::Quotient),
    counted(
        "gpu_fetches",
        "Warp instructions as an NVIDIA GPU has them: each of the processor's as what it costs there.",
        |o| (o.counts.gpu_fetches / 10).into(),
    ),
    counted(
        "gpu_issued",
        "What a GPU issues in all: those, the code of locks, and the barriers of branches and of predictions. Gains are promised in these.",
        |o| o.issued(Unit::Gpu).into(),
    ),
    counted(
        "divergent_fetches",
        "Warp instructions issued for fewer lanes than were live (not finished); in a block, for fewer than had homes of live lanes.",
        |o| o.counts.divergent_fetches.into(),
    ),
    counted("divergent_instructions", "Thread instructions in divergent fetches.", |o| {
        o.counts.divergent_instructions.into()
    }),
    counted("lost_slots", "Lane-slots without an active lane: fetches x warp_size - thread_instructions.", |o| {
        o.lost_slots().into()
    }),
];

/// How far from the best possible that is, and further counts of the engine and the models.
pub(crate) static BOUNDS: &[Column] = &[
    of(
        "lower_bound",
        "The least number of warp instructions that any schedule needs. For each warp, phase (between barriers at \
         which all its lanes wait) and static instruction, it takes the largest number of times that one lane runs \
         the instruction (in a block: that the lanes of one home lane together run it), and sums these numbers.",
        |o| o.lower_bound.into(),
    ),
    of(
        "optimum",
        "Warp instructions of the best schedule possible, locks aside; only where no warp has more than two lanes. \
         `left out`: two lanes differ so much that finding it would take longer than a replay.",
        |o| match o.optimum {
            Optimum::Fetches(fetches) => fetches.into(),
            Optimum::LeftOut => "left out".into(),
            Optimum::Unknown => Value::None,
        },
    ),
    of("upper_bound", "Warp instructions when nothing is shared: the thread instructions of all lanes.", |o| {
        o.upper_bound.into()
    }),
    counted(
        "empty_fetches",
        "Warp instructions issued for no lane, by a model that does not know where its lanes stand (tf-branch); not among fetches.",
        |o| o.tally.empty_fetches.into(),
    ),
    counted(
        "path_parallelism",
        "Paths that could have been scheduled, per warp instruction; for models that have several (dual-path, \
         multi-path, dws).",
        |o| o.path_parallelism().into(),
    )
    .of(Kind::Quotient),
    counted(
        "active_efficiency",
        "simt_efficiency with lanes that are predicated off counted as active, and with the instructions of the locks \
         that were taken, as hardware counters do; for models with predicate=N.",
        |o| o.active_efficiency().into(),
    )
    .of(Kind::Quotient),
    counted(
        "barrier_spills",
        "Lane masks spilled to general registers, since lanes parted while all barrier registers were in use; for \
         models that count them (hanoi). A spill costs no fetch.",
        |o| o.tally.barrier_spills.into(),
    ),
    counted(
        "yields",
        "How often lanes that were collected at a predicted point went on without the lanes they waited for, since \
         no other lane could run (with a prediction); or lanes yielded for which others waited (hanoi).",
        |o| o.tally.yields.into(),
    ),
    counted(
        "barrier_operations",
        "Instructions that the barriers of predictions take on a GPU, one for lanes that run together; not counted \
         in fetches (barrier and hanoi, with a prediction).",
        |o| o.tally.barrier_operations.into(),
    ),
    counted(
        "wait_instructions",
        "Instructions of the code that has lanes of a GPU wait at predicted points (the pass speculative); of gpu_issued \
         (barrier and hanoi, with a prediction).",
        |o| o.tally.wait_instructions.into(),
    ),
    counted(
        "stack_depth",
        "The most entries that the reconvergence stack had while lanes ran, the bottom one included; for models that \
         have a stack (ipdom). 1 means that lanes never parted.",
        |o| o.tally.stack_depth.into(),
    ),
    counted(
        "rank",
        "1 for the fewest warp instructions among the heuristics of the same replay; equals share a rank.",
        |o| o.rank.into(),
    ),
    counted(
        "of_best",
        "(upper_bound - fetches) / (upper_bound - lower_bound): 1 for the fewest possible, 0 for nothing shared; \
         none where the bounds are equal.",
        |o| o.place().into(),
    )
    .of(Kind::Quotient),
    counted("active_histogram", "Warp instructions with 1, 2 … W active lanes.", |o| o.counts.active[..].into())
        .of(Kind::Counts),
    of(
        "lane_instructions",
        "Thread instructions of each lane, in lane order; none where there are more than 4,096 lanes \
         (replay --lanes-out writes those).",
        |o| (o.lane_instructions.len() <= MOST_LANES_LISTED).then_some(&o.lane_instructions[..]).into(),
    )
    .of(Kind::Counts),
    of(
        "lane_histogram",
        "Lanes with 0 thread instructions, with 1, with 2 or 3, with 4 to 7 and so on, in powers of two.",
        |o| o.lane_histogram()[..].into(),
    )
    .of(Kind::Counts),
    counted(
        "forced",
        "Waits for locks or barriers that were cut short because what they waited for was not replayed.",
        |o| o.counts.forced.into(),
    ),
];

/// Where a column's value comes from.
enum From {
    Setting(fn(&Setting) -> Value),
    /// The outcome's, or else the setting's; JSON has both.
    Locks,
    /// Known whether or not the replay finished.
    Outcome(fn(&Outcome) -> Value),
    /// None after a deadlock.
    Counted(fn(&Outcome) -> Value),
}

const fn setting(name: &'static str, definition: &'static str, value: fn(&Setting) -> Value) -> Column {
    Column { name, definition, kind: Kind::Count, from: From::Setting(value) }
}

const fn of(name: &'static str, definition: &'static str, value: fn(&Outcome) -> Value) -> Column {
    Column { name, definition, kind: Kind::Count, from: From::Outcome(value) }
}

const fn counted(name: &'static str, definition: &'static str, value: fn(&Outcome) -> Value) -> Column {
    Column::counted(name, definition, value)
}

impl Column {
    /// A column of what was counted or measured, which has no value after a deadlock.
    #[must_use]
    pub const fn counted(name: &'static str, definition: &'static str, value: fn(&Outcome) -> Value) -> Column {
        Column { name, definition, kind: Kind::Count, from: From::Counted(value) }
    }

    /// The same column, of values of this kind.
    #[must_use]
    pub const fn of(self, kind: Kind) -> Column {
        Column { kind, ..self }
    }

    /// Its value; none after a deadlock, or where it was not asked for.
    #[must_use]
    pub fn value(&self, setting: &Setting, outcome: &Outcome) -> Value {
        let value = match self.from {
            From::Setting(value) => value(setting),
            From::Locks => outcome.locks.as_ref().unwrap_or(&setting.locks).as_str().into(),
            From::Outcome(value) => value(outcome),
            From::Counted(_) if !outcome.is_complete() => Value::None,
            From::Counted(value) => value(outcome),
        };
        // A count can be left out with the reason in its place, as the optimum can.
        let is_reason = self.kind == Kind::Count && matches!(value, Value::Text(_));
        debug_assert!(self.kind.has(&value) || is_reason, "{} is no {:?}: {value:?}", self.name, self.kind);
        value
    }

    /// Its value where it is a fact of the setting; none for columns that differ from outcome to outcome.
    #[must_use]
    pub fn of_setting(&self, setting: &Setting) -> Option<Value> {
        if let From::Setting(value) = self.from { Some(value(setting)) } else { None }
    }
}
