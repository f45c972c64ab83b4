//! The columns of a result: one ordered registry, from which CSV, JSON and docs/metrics.md are made.

use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::metrics::{Accesses, Cause, Classes, Divergence, Strides};
use crate::{Error, Optimum, Outcome, Result};

/// What a result is a result of, beside the heuristic.
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
    from: From,
}

/// All columns, in order.
pub static COLUMNS: &[Column] = &[
    setting("trace", "The trace's file name.", |s| json!(s.trace)),
    setting("command", "The program that was traced, and its arguments.", |s| json!(s.command)),
    setting("region", "The part of the run that was replayed.", |s| json!(s.region)),
    setting("code", "The code that was replayed: all, or main (the main executable only).", |s| json!(s.code)),
    Column { name: "locks", definition: "How locks counted: serialize, simt, drop or ignore.", from: From::Locks },
    setting("group", "How lanes were put into warps.", |s| json!(s.group)),
    setting("threads", "Threads in the trace, replayed or not.", |s| json!(s.threads)),
    of("lanes", "Lanes replayed: threads that came to the region.", |o| json!(o.lanes)),
    of("warp_size", "Seats in a warp, W.", |o| json!(o.warp_size)),
    of("warps", "Warps.", |o| json!(o.warps)),
    of(
        "warps_per_block",
        "Warps that were replayed together, so that their lanes could share fetches; 1: each on its own.",
        |o| json!(o.warps_per_block),
    ),
    of("heuristic", "The reconvergence model, every parameter spelt out.", |o| json!(o.heuristic)),
    of("status", "`ok`, or the sentence that says why there are no numbers (a deadlock).", |o| json!(o.status())),
    of(
        "deadlock",
        "Where the model deadlocks with locks=serialize: the row's numbers are then those of locks=simt, where it doesn't.",
        |o| json!(o.deadlock.as_ref().map(ToString::to_string)),
    ),
    counted("fetches", "Warp instructions: instructions issued, each for all its active lanes.", |o| {
        json!(o.counts.fetches())
    }),
    counted("thread_instructions", "Thread instructions: instructions executed, summed over lanes.", |o| {
        json!(o.counts.thread_instructions())
    }),
    counted("simt_efficiency", "thread_instructions / (fetches x warp_size): 0 to 1.", |o| json!(o.simt_efficiency())),
    counted(
        "divergent_fetches",
        "Warp instructions issued for fewer lanes than were live (not finished); in a block, for fewer than had homes of live lanes.",
        |o| json!(o.counts.divergent_fetches),
    ),
    counted("divergent_instructions", "Thread instructions in divergent fetches.", |o| {
        json!(o.counts.divergent_instructions)
    }),
    counted("lost_slots", "Lane-slots without an active lane: fetches x warp_size - thread_instructions.", |o| {
        json!(o.lost_slots())
    }),
    lost("lost_to_branch", "Of lost_slots, with --by: the lane went another way at a branch.", Cause::Branch),
    lost("lost_to_loop", "The lane runs a loop more often, or less, than the active lanes.", Cause::LoopTripCount),
    lost("lost_to_call_target", "The lane called another function, or returned to another caller.", Cause::CallTarget),
    lost("lost_to_lock", "The lane waits for a lock, or has come apart from the active lanes at one.", Cause::Lock),
    lost(
        "lost_to_barrier",
        "The lane waits at a barrier, or has come apart from the active lanes at one.",
        Cause::Barrier,
    ),
    lost(
        "lost_to_schedule",
        "The lane stood where the active lanes did, and the model ran them apart.",
        Cause::Schedule,
    ),
    lost("lost_to_finished", "The lane has come to its end.", Cause::Finished),
    lost("lost_to_empty_seat", "The warp has fewer lanes than seats.", Cause::EmptySeat),
    of(
        "lower_bound",
        "Warp instructions that any schedule needs at least: per warp, phase (between barriers at which all its lanes meet) and static instruction the largest number of times that one lane runs it (in a block: that the lanes of one home together run it), summed.",
        |o| json!(o.lower_bound),
    ),
    of(
        "optimum",
        "Warp instructions of the best schedule possible, locks aside; only where no warp has more than two lanes. `left out`: two lanes differ too much to find it in as much time as a replay takes.",
        |o| match o.optimum {
            Optimum::Fetches(fetches) => json!(fetches),
            Optimum::LeftOut => json!("left out"),
            Optimum::Unknown => Value::Null,
        },
    ),
    of("upper_bound", "Warp instructions when nothing is shared: the thread instructions of all lanes.", |o| {
        json!(o.upper_bound)
    }),
    counted(
        "empty_fetches",
        "Warp instructions issued for no lane, by a model that does not know where its lanes stand (tf-branch); not among fetches.",
        |o| o.tally.empty_fetches.map_or(Value::Null, |n| json!(n)),
    ),
    counted(
        "path_parallelism",
        "Paths that could have been scheduled, per warp instruction, of a model that has several (dual-path, multi-path, dws).",
        |o| o.path_parallelism().map_or(Value::Null, |n| json!(n)),
    ),
    counted(
        "rank",
        "1 for the fewest warp instructions of all heuristics that were replayed with it; equals share a rank.",
        |o| o.rank.map_or(Value::Null, |n| json!(n)),
    ),
    counted(
        "of_best",
        "(upper_bound - fetches) / (upper_bound - lower_bound): 1 for the least possible, 0 for nothing shared; none where the bounds are equal.",
        |o| o.place().map_or(Value::Null, |n| json!(n)),
    ),
    counted("active_histogram", "Warp instructions with 1, 2 … W active lanes.", |o| json!(o.counts.active)),
    of("lane_instructions", "Thread instructions of each lane, in lane order.", |o| json!(o.lane_instructions)),
    counted(
        "forced",
        "Waits for locks or barriers that were cut short because what they waited for was not replayed.",
        |o| json!(o.counts.forced),
    ),
    counted(
        "schedule_fnv1a64",
        "FNV-1a hash of every fetch's pc and active mask, 16 hex digits; only with --schedule-hash.",
        |o| o.schedule_fnv1a64.map_or(Value::Null, |h| json!(format!("{h:016x}"))),
    ),
    counted("fetch_units", "Groups of a warp that can be fetched for in one cycle; with --fetch-units.", |o| {
        json!(o.fetch_units)
    }),
    counted("cycles", "Cycles that the warp instructions take on the fetch units, summed over warps.", |o| {
        json!(o.cycles)
    }),
    counted("parallelism", "Thread instructions per cycle on the fetch units.", |o| json!(o.parallelism())),
    diverged(
        "divergences",
        "With --divergence: how often lanes that ran together ran apart, and together again later.",
        |d| json!(d.joined),
    ),
    diverged("divergences_never_joined", "How often they did not run together again.", |d| json!(d.never_joined)),
    diverged(
        "divergence_mean_length",
        "Warp instructions between the two fetches that such lanes shared: the mean.",
        |d| json!(d.mean_length()),
    ),
    diverged("divergence_max_length", "The greatest such length.", |d| json!(d.longest)),
    diverged("divergence_lengths", "Divergences of length 1, 2 to 3, 4 to 7 … by powers of two.", |d| {
        json!(d.by_length)
    }),
    diverged("divergence_depth", "Distinct pcs of live lanes, averaged over warp instructions.", |d| json!(d.depth())),
    diverged("divergence_max_depth", "The most distinct pcs of live lanes.", |d| json!(d.most_pcs)),
    diverged(
        "divergence_imbalance",
        "Lanes x the most instructions that one of them ran while they were diverged, summed, / the instructions that they ran: 1 is balanced.",
        |d| json!(d.imbalance()),
    ),
    diverged("lone_fetches", "Warp instructions issued for one lane while others were live.", |d| {
        json!(d.lone_fetches)
    }),
    memory("memory_uniform", "Memory operands, by 1, 2 … W active lanes, whose lanes all access one address.", |c| {
        c.uniform
    }),
    memory("memory_affine", "Memory operands whose addresses follow the lane number by a stride, up or down.", |c| {
        c.affine
    }),
    memory("memory_affine_downwards", "Those of memory_affine whose stride is negative.", |c| c.affine_downwards),
    memory("memory_scattered", "Memory operands that are neither uniform nor affine.", |c| c.scattered),
    traffic(
        "memory_strides",
        "Of memory_affine, those of each stride in bytes, the ten commonest and all others.",
        |a| strides(&a.strides),
    ),
    traffic(
        "heap_accesses",
        "Memory operands with at least one active lane's address that are not of the lane's own stack.",
        |a| json!(a.heap.accesses),
    ),
    traffic(
        "heap_transactions_32",
        "Aligned pieces of 32 bytes in which the active lanes' addresses that are not of the lane's own stack lie, summed over memory operands.",
        |a| json!(a.heap.transactions[0]),
    ),
    traffic(
        "heap_transactions_64",
        "Aligned pieces of 64 bytes in which the active lanes' addresses that are not of the lane's own stack lie, summed over memory operands.",
        |a| json!(a.heap.transactions[1]),
    ),
    traffic(
        "heap_transactions_128",
        "Aligned pieces of 128 bytes in which the active lanes' addresses that are not of the lane's own stack lie, summed over memory operands.",
        |a| json!(a.heap.transactions[2]),
    ),
    traffic(
        "stack_accesses",
        "Memory operands with at least one active lane's address in the lane's own stack.",
        |a| json!(a.stack.accesses),
    ),
    traffic(
        "stack_transactions_32",
        "Aligned pieces of 32 bytes in which the active lanes' addresses in the lane's own stack lie, summed over memory operands.",
        |a| json!(a.stack.transactions[0]),
    ),
    traffic(
        "stack_transactions_64",
        "Aligned pieces of 64 bytes in which the active lanes' addresses in the lane's own stack lie, summed over memory operands.",
        |a| json!(a.stack.transactions[1]),
    ),
    traffic(
        "stack_transactions_128",
        "Aligned pieces of 128 bytes in which the active lanes' addresses in the lane's own stack lie, summed over memory operands.",
        |a| json!(a.stack.transactions[2]),
    ),
    traffic(
        "interleaved_transactions_32",
        "What stack_transactions_32 would be if the lanes' stacks were interleaved word by word.",
        |a| json!(a.interleaved[0]),
    ),
    traffic(
        "interleaved_transactions_64",
        "What stack_transactions_64 would be if the lanes' stacks were interleaved word by word.",
        |a| json!(a.interleaved[1]),
    ),
    traffic(
        "interleaved_transactions_128",
        "What stack_transactions_128 would be if the lanes' stacks were interleaved word by word.",
        |a| json!(a.interleaved[2]),
    ),
];

/// Where a column's value comes from.
enum From {
    Setting(fn(&Setting) -> Value),
    /// The outcome's, or else the setting's; JSON has both.
    Locks,
    /// Known whether or not the replay came to its end.
    Outcome(fn(&Outcome) -> Value),
    /// Null after a deadlock.
    Counted(fn(&Outcome) -> Value),
    /// By number of active lanes; null after a deadlock, and where memory was not asked for.
    Memory(fn(&Classes) -> u64),
    /// Null after a deadlock, and where divergence was not asked for.
    Diverged(fn(&Divergence) -> Value),
    /// Null after a deadlock, and where memory was not asked for.
    Traffic(fn(&Accesses) -> Value),
    /// Null after a deadlock, and where causes were not asked for.
    Lost(Cause),
}

const fn setting(name: &'static str, definition: &'static str, value: fn(&Setting) -> Value) -> Column {
    Column { name, definition, from: From::Setting(value) }
}

const fn of(name: &'static str, definition: &'static str, value: fn(&Outcome) -> Value) -> Column {
    Column { name, definition, from: From::Outcome(value) }
}

const fn counted(name: &'static str, definition: &'static str, value: fn(&Outcome) -> Value) -> Column {
    Column { name, definition, from: From::Counted(value) }
}

const fn memory(name: &'static str, definition: &'static str, value: fn(&Classes) -> u64) -> Column {
    Column { name, definition, from: From::Memory(value) }
}

const fn diverged(name: &'static str, definition: &'static str, value: fn(&Divergence) -> Value) -> Column {
    Column { name, definition, from: From::Diverged(value) }
}

const fn traffic(name: &'static str, definition: &'static str, value: fn(&Accesses) -> Value) -> Column {
    Column { name, definition, from: From::Traffic(value) }
}

const fn lost(name: &'static str, definition: &'static str, cause: Cause) -> Column {
    Column { name, definition, from: From::Lost(cause) }
}

impl Column {
    /// Its value; null where there is none (after a deadlock, or when it was not asked for).
    #[must_use]
    pub fn value(&self, setting: &Setting, outcome: &Outcome) -> Value {
        match self.from {
            From::Setting(value) => value(setting),
            From::Locks => json!(outcome.locks.as_ref().unwrap_or(&setting.locks)),
            From::Outcome(value) => value(outcome),
            From::Counted(_) | From::Diverged(_) | From::Memory(_) | From::Traffic(_) | From::Lost(_)
                if !outcome.is_complete() =>
            {
                Value::Null
            }
            From::Counted(value) => value(outcome),
            From::Lost(cause) => outcome.causes.as_ref().map_or(Value::Null, |c| json!(c.lost_to(cause))),
            From::Diverged(value) => outcome.divergence.as_ref().map_or(Value::Null, value),
            From::Traffic(value) => outcome.traffic.as_ref().map_or(Value::Null, |t| value(&t.total)),
            From::Memory(value) => {
                outcome.memory.as_ref().map_or(Value::Null, |m| m.by_active.iter().map(value).collect())
            }
        }
    }

    /// Whether it is a fact of the setting, which JSON holds once.
    #[must_use]
    pub fn is_of_setting(&self) -> bool {
        matches!(self.from, From::Setting(_))
    }

    fn csv(&self, setting: &Setting, outcome: &Outcome) -> String {
        match self.value(setting, outcome) {
            Value::Null => String::new(),
            Value::String(text) => text,
            Value::Object(pairs) => pairs.iter().map(|(key, n)| format!("{key}:{n}")).collect::<Vec<_>>().join(" "),
            Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
            value => value.to_string(),
        }
    }
}

/// The commonest strides and their accesses, as an object.
#[must_use]
pub fn strides(strides: &Strides) -> Value {
    const SHOWN: usize = 10;
    let all = strides.most_first();
    let others = strides.others + all.iter().skip(SHOWN).map(|(_, n)| n).sum::<u64>();
    let mut shown: Map<String, Value> =
        all.iter().take(SHOWN).map(|(stride, n)| (stride.to_string(), json!(n))).collect();
    if others > 0 {
        shown.insert("others".to_owned(), json!(others));
    }
    Value::Object(shown)
}

/// The results as one JSON object: the setting, and `results`, a list with an object per heuristic. Columns without a value are left out.
#[must_use]
pub fn to_json(setting: &Setting, outcomes: &[Outcome], view: &str) -> Value {
    let of_outcome = |outcome: &Outcome| -> Map<String, Value> {
        let columns = COLUMNS.iter().filter(|c| !c.is_of_setting());
        let values = columns.map(|c| (c.name.to_owned(), c.value(setting, outcome)));
        values.filter(|(_, value)| !value.is_null()).collect()
    };
    let of_setting = COLUMNS.iter().filter_map(|column| match column.from {
        From::Setting(value) => Some((column.name.to_owned(), value(setting))),
        _ => None,
    });
    let mut all: Map<String, Value> = of_setting.collect();
    all.insert("locks".to_owned(), json!(setting.locks));
    all.insert("view".to_owned(), json!(view));
    all.insert("results".to_owned(), outcomes.iter().map(|o| Value::Object(of_outcome(o))).collect());
    Value::Object(all)
}

/// The results as CSV: a header with every column, then a row per heuristic. Lists have spaces between their numbers.
///
/// # Errors
/// When `out` cannot be written; `path` is its name in the error.
pub fn write_csv(setting: &Setting, outcomes: &[Outcome], out: impl Write, path: &Path) -> Result<()> {
    let failed = |source: std::io::Error| Error::Write { path: path.to_owned(), source };
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS.iter().map(|c| c.name)).map_err(|e| failed(e.into()))?;
    for outcome in outcomes {
        let row = COLUMNS.iter().map(|c| c.csv(setting, outcome));
        writer.write_record(row).map_err(|e| failed(e.into()))?;
    }
    writer.flush().map_err(failed)
}
