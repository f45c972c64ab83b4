//! What a recording cost, as JSON: for users who ask why it is slow, and for scripts.

use serde_json::{Value, json};
use tracer::{Counted, Outcome, Records, RunTimes, StopCauses, ThrownAway, Times};

/// The statistics of a recording by this engine (`lockstep trace --stats`), as indented JSON with a line break at its
/// end. Times are in seconds, sizes in bytes.
pub(crate) fn json(engine: &'static str, outcome: &Outcome) -> String {
    let used = outcome.translation;
    // Destructured, so that a new field is not forgotten.
    let RunTimes { wall, program, tracer } = outcome.times;
    let Times { waiting, translating, records: reading } = used.times;
    let StopCauses {
        new_code,
        full_buffer,
        system_call,
        signal,
        function,
        gate,
        outside,
        write_to_code,
        thread,
        asked,
    } = used.causes;
    let ThrownAway {
        written,
        written_by_call,
        unmapped,
        protection,
        shared,
        route,
        function: function_learned,
        gate: gate_moved,
        late,
        renewal,
    } = used.thrown_away;
    let Records { paths, entries, returns, waits, handlers } = used.records;
    let stats = json!({
        "engine": engine,
        "instructions": outcome.instructions,
        "threads": outcome.threads,
        "trace_bytes": outcome.bytes,
        "bytes_per_instruction": (outcome.instructions > 0).then(|| outcome.bytes as f64 / outcome.instructions as f64),
        "seconds": {
            "wall": wall.as_secs_f64(),
            "program_processor": program.as_secs_f64(),
            "lockstep_processor": tracer.as_secs_f64(),
            "waiting": waiting.as_secs_f64(),
            "translating": translating.as_secs_f64(),
            "reading_records": reading.as_secs_f64(),
        },
        "stops": {
            "all": used.stops,
            "new_code": new_code,
            "full_buffer": full_buffer,
            "system_call": system_call,
            "signal": signal,
            "function": function,
            "gate": gate,
            "outside": outside,
            "write_to_code": write_to_code,
            "thread": thread,
            "asked": asked,
        },
        "translated": {
            "superblocks": used.superblocks,
            "instructions": used.instructions,
            "recalled": used.recalled,
            "thrown_away": {
                "all": written + written_by_call + unmapped + protection + shared + route + function_learned + gate_moved
                    + late + renewal,
                "written": written,
                "written_by_call": written_by_call,
                "unmapped": unmapped,
                "protection": protection,
                "shared": shared,
                "route": route,
                "function": function_learned,
                "gate": gate_moved,
                "late": late,
                "renewal": renewal,
            },
            "again": used.again,
            "again_the_same": used.again_the_same,
            "revived": used.revived,
            "without_room_nearby": used.without_room,
            "renewals": used.renewals,
            "most_code_bytes": used.most_code,
            "most_bookkeeping_bytes": used.most_bookkeeping,
        },
        "records": {
            "bytes": used.record_bytes,
            "paths": counted(paths),
            "entries": counted(entries),
            "returns": counted(returns),
            "waits": counted(waits),
            "handlers": counted(handlers),
        },
    });
    format!("{stats:#}\n")
}

fn counted(Counted { number, bytes }: Counted) -> Value {
    json!({ "number": number, "bytes": bytes })
}
