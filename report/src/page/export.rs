//! What a page holds, in the format of another tool.

use serde_json::{Value, json};

use super::{Map, Program};

/// The lane maps as events of the Trace Event Format, which Perfetto, Firefox Profiler and chrome://tracing read: a
/// process per warp, a thread per lane, an event for each stretch of fetches in which a lane is active in one function;
/// a fetch takes a microsecond. A short run is shown fetch by fetch, a longer one in bins, each for as long as the lane
/// was active in it. A counter above them says how many lanes were active, in the mean of a bin. Perfetto takes threads
/// of one number for one thread, also in two processes, and those of number 0 for the kernel's: no two lanes have one.
#[must_use]
pub fn time_line(program: &Program) -> String {
    let mut events: Vec<Value> = Vec::new();
    let mut threads = 0;
    for map in &program.maps {
        let pid = map.warp + 1;
        let process = format!("warp {}", map.warp);
        events.push(json!({ "ph": "M", "name": "process_name", "pid": pid, "args": { "name": process } }));
        for (start, lanes) in active(map) {
            events.push(json!({
                "ph": "C", "name": "active lanes", "pid": pid, "ts": start, "args": { "lanes": lanes },
            }));
        }
        for (lane, name) in map.lanes.iter().enumerate() {
            let name = format!("lane {lane} ({name})");
            threads += 1;
            events.push(
                json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": threads, "args": { "name": name } }),
            );
            for stretch in stretches(program, map, lane) {
                events.push(json!({
                    "ph": "X", "cat": "lane", "name": stretch.name, "pid": pid, "tid": threads, "ts": stretch.start, "dur": stretch.fetches,
                }));
            }
        }
    }
    let what = json!({ "unit": "1 us is 1 fetch (warp instruction)", "command": program.command() });
    json!({ "traceEvents": events, "displayTimeUnit": "ms", "otherData": what }).to_string()
}

/// A lane in one function, without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stretch {
    start: u64,
    fetches: u64,
    name: String,
}

/// From which fetch on how many lanes are active; at the end none.
fn active(map: &Map) -> Vec<(u64, f64)> {
    let mut all: Vec<(u64, f64)> = Vec::new();
    let mut add = |start: u64, lanes: f64| match all.last() {
        Some((_, last)) if *last == lanes => {}
        _ => all.push((start, lanes)),
    };
    if let Some(window) = map.windows.iter().find(|w| w.kept == "whole") {
        let words = words(&super::bytes(&window.stretches));
        let mut at = window.start;
        for stretch in words.chunks_exact(2 + map.lanes.len().div_ceil(32).max(1)) {
            add(at, f64::from(stretch[2..].iter().map(|mask| mask.count_ones()).sum::<u32>()));
            at += u64::from(stretch[1]);
        }
    } else if let Some(level) = map.levels.first() {
        let cells = super::bytes(&level.cells);
        for (bin, lanes) in (0..).zip(cells.chunks_exact(4 * map.lanes.len().max(1)).take(level.bins)) {
            let shares: u32 = lanes.chunks_exact(4).map(|cell| u32::from(cell[0])).sum();
            add(bin * level.bin, f64::from(shares) / 255.0);
        }
    }
    add(map.fetches, 0.0);
    all
}

fn stretches(program: &Program, map: &Map, lane: usize) -> Vec<Stretch> {
    let function = |index: usize| program.functions.get(index).map_or("(others)", |f| f.name.as_str());
    let mut all: Vec<Stretch> = Vec::new();
    let mut add = |start: u64, fetches: u64, name: &str| match all.last_mut() {
        Some(last) if last.name == name && last.start + last.fetches == start => last.fetches += fetches,
        _ => all.push(Stretch { start, fetches, name: name.to_owned() }),
    };
    let whole = map.windows.iter().find(|w| w.kept == "whole");
    if let Some(window) = whole {
        let words = words(&super::bytes(&window.stretches));
        let size = 2 + map.lanes.len().div_ceil(32).max(1);
        let mut at = window.start;
        for stretch in words.chunks_exact(size) {
            let (pc, count) = (stretch[0] as usize, u64::from(stretch[1]));
            if stretch[2 + lane / 32] >> (lane % 32) & 1 == 1 {
                add(at, count, function(program.pcs.function.get(pc).copied().unwrap_or(usize::MAX)));
            }
            at += count;
        }
    } else if let Some(level) = map.levels.first() {
        let cells = super::bytes(&level.cells);
        for bin in 0..level.bins {
            let cell = &cells[(bin * map.lanes.len() + lane) * 4..][..4];
            let start = bin as u64 * level.bin;
            let length = level.bin.min(map.fetches - start);
            let active = (length * u64::from(cell[0])).div_ceil(255);
            if active > 0 {
                add(start, active, function(usize::from(cell[1])));
            }
        }
    }
    all
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Function, MapLevel, MapWindow, Pcs, base64};

    fn program(map: Map) -> Program {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        Program {
            functions: vec![function("one"), function("two")],
            pcs: Pcs { function: vec![0, 0, 1], offset: vec![0, 1, 0], line: vec![0; 3] },
            maps: vec![map],
            ..Program::default()
        }
    }

    #[test]
    fn a_lane_s_fetches_in_one_function_are_one_event() {
        // Three stretches: pc 0 for both lanes (2 fetches), pc 2 for lane 0 (1), pc 2 for lane 1 (4).
        let stretches: Vec<u8> = [0u32, 2, 0b11, 2, 1, 0b01, 2, 4, 0b10].iter().flat_map(|w| w.to_le_bytes()).collect();
        let window = MapWindow { start: 0, fetches: 7, kept: "whole", lost: 5, stretches: base64(&stretches) };
        let map = Map { lanes: vec!["a".into(), "b".into()], fetches: 7, windows: vec![window], ..Map::default() };
        let shown: Value = serde_json::from_str(&time_line(&program(map))).unwrap();
        let of_kind =
            |kind: &'static str| shown["traceEvents"].as_array().unwrap().iter().filter(move |e| e["ph"] == kind);
        let counted: Vec<(u64, f64)> =
            of_kind("C").map(|e| (e["ts"].as_u64().unwrap(), e["args"]["lanes"].as_f64().unwrap())).collect();
        assert_eq!(counted, [(0, 2.0), (2, 1.0), (7, 0.0)]);
        let events = of_kind("X");
        let found: Vec<(u64, u64, u64, &str)> = events
            .map(|e| {
                (
                    e["tid"].as_u64().unwrap(),
                    e["ts"].as_u64().unwrap(),
                    e["dur"].as_u64().unwrap(),
                    e["name"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(found, [(1, 0, 2, "one"), (1, 2, 1, "two"), (2, 0, 2, "one"), (2, 3, 4, "two")]);
    }

    #[test]
    fn lanes_of_two_warps_have_different_numbers() {
        let map = |warp| Map { warp, lanes: vec!["a".into(), "b".into()], ..Map::default() };
        let two = Program { maps: vec![map(0), map(1)], ..Program::default() };
        let shown: Value = serde_json::from_str(&time_line(&two)).unwrap();
        let events = shown["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == "thread_name");
        let numbers: Vec<(u64, u64)> =
            events.map(|event| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap())).collect();
        assert_eq!(numbers, [(1, 1), (1, 2), (2, 3), (2, 4)]);
    }

    #[test]
    fn of_a_long_run_a_bin_lasts_as_long_as_its_lane_was_active() {
        let cells = [255, 0, 0, 0, 51, 1, 0, 0];
        let level = MapLevel { bin: 100, bins: 2, cells: base64(&cells) };
        let map = Map { lanes: vec!["a".into()], fetches: 200, levels: vec![level], ..Map::default() };
        let program = program(map);
        let found: Vec<(u64, u64)> =
            stretches(&program, &program.maps[0], 0).iter().map(|s| (s.start, s.fetches)).collect();
        assert_eq!(found, [(0, 100), (100, 20)]);
        assert_eq!(active(&program.maps[0]), [(0, 1.0), (100, 0.2), (200, 0.0)]);
    }
}
