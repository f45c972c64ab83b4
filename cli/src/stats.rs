//! What a recording cost, as JSON: for who asks why it is slow, and for scripts.

use serde::Serialize;
use tracer::{Counted, Outcome};

/// See `lockstep trace --stats`.
#[derive(Serialize)]
struct Stats {
    engine: &'static str,
    instructions: u64,
    threads: u32,
    trace_bytes: u64,
    /// None where nothing was recorded.
    bytes_per_instruction: Option<f64>,
    seconds: Seconds,
    stops: Stops,
    translated: Translated,
    records: Records,
}

#[derive(Serialize)]
struct Seconds {
    wall: f64,
    program_processor: f64,
    lockstep_processor: f64,
    waiting: f64,
    translating: f64,
    reading_records: f64,
}

#[derive(Serialize)]
struct Stops {
    all: u64,
    new_code: u64,
    full_buffer: u64,
    system_call: u64,
    signal: u64,
    function: u64,
    gate: u64,
    outside: u64,
    write_to_code: u64,
    thread: u64,
    asked: u64,
}

#[derive(Serialize)]
struct Translated {
    superblocks: u64,
    instructions: u64,
    given_up: u64,
    renewals: u64,
    most_code_bytes: u64,
    most_bookkeeping_bytes: u64,
}

#[derive(Serialize)]
struct Records {
    bytes: u64,
    paths: Kind,
    entries: Kind,
    returns: Kind,
    waits: Kind,
    handlers: Kind,
}

#[derive(Serialize)]
struct Kind {
    number: u64,
    bytes: u64,
}

impl From<Counted> for Kind {
    fn from(Counted { number, bytes }: Counted) -> Kind {
        Kind { number, bytes }
    }
}

/// The statistics of a recording by this engine, as indented JSON with a line break at its end.
pub(crate) fn json(engine: &'static str, outcome: &Outcome) -> String {
    let (used, times) = (outcome.translation, outcome.times);
    let (causes, records) = (used.causes, used.records);
    let stats = Stats {
        engine,
        instructions: outcome.instructions,
        threads: outcome.threads,
        trace_bytes: outcome.bytes,
        bytes_per_instruction: (outcome.instructions > 0).then(|| outcome.bytes as f64 / outcome.instructions as f64),
        seconds: Seconds {
            wall: times.wall.as_secs_f64(),
            program_processor: times.program.as_secs_f64(),
            lockstep_processor: times.tracer.as_secs_f64(),
            waiting: used.times.waiting.as_secs_f64(),
            translating: used.times.translating.as_secs_f64(),
            reading_records: used.times.records.as_secs_f64(),
        },
        stops: Stops {
            all: used.stops,
            new_code: causes.new_code,
            full_buffer: causes.full_buffer,
            system_call: causes.system_call,
            signal: causes.signal,
            function: causes.function,
            gate: causes.gate,
            outside: causes.outside,
            write_to_code: causes.write_to_code,
            thread: causes.thread,
            asked: causes.asked,
        },
        translated: Translated {
            superblocks: used.superblocks,
            instructions: used.instructions,
            given_up: used.given_up,
            renewals: used.renewals,
            most_code_bytes: used.most_code,
            most_bookkeeping_bytes: used.most_bookkeeping,
        },
        records: Records {
            bytes: used.record_bytes,
            paths: records.paths.into(),
            entries: records.entries.into(),
            returns: records.returns.into(),
            waits: records.waits.into(),
            handlers: records.handlers.into(),
        },
    };
    let text = serde_json::to_string_pretty(&stats).expect("numbers and names are JSON");
    text + "\n"
}
