//! Lane maps as a page holds them: packed bytes instead of structures.

use crate::page::{Map, MapLevel, MapWindow, base64};
use replay::Outcome;
use replay::metrics::{Cell, Kept, LaneMap, LaneMaps, Level, Window};
use replay::view::View;
use trace_format::Trace;

use super::code::Code;

/// The function that stands for all after those that a byte can number.
const OTHER_FUNCTION: u16 = 255;

/// Of every warp that has one. Functions must be in their final order.
pub(crate) fn of(outcome: &Outcome, trace: &Trace, view: &View, code: &mut Code) -> Vec<Map> {
    let first_pcs = first_pcs(maps(outcome), code);
    let functions = code.classes();
    let names: Vec<String> = view
        .lanes()
        .iter()
        .map(|lane| {
            let thread = trace.threads().iter().find(|t| t.id == lane.thread);
            thread.map_or_else(|| "thread".to_owned(), |t| format!("thread {}", t.id))
        })
        .collect();
    let map = |map: &LaneMap| Map {
        warp: map.warp,
        lanes: map.lanes.iter().map(|lane| names[*lane].clone()).collect(),
        fetches: map.fetches,
        levels: map.levels.iter().map(|l| level(l, map.lanes.len(), map.fetches, &first_pcs, &functions)).collect(),
        windows: map.windows.iter().map(|w| window(w, map.lanes.len(), code)).collect(),
    };
    maps(outcome).iter().map(map).collect()
}

/// By place: the number of its first instruction, where it is on one of the maps.
fn first_pcs(maps: &[LaneMap], code: &mut Code) -> Vec<Option<usize>> {
    let segments = code.segment_of_places();
    let mut first = vec![None; segments.len()];
    for cell in maps.iter().flat_map(|m| &m.levels).flat_map(|l| &l.cells).filter(|c| c.active > 0) {
        let place = cell.place as usize;
        if first[place].is_none() {
            first[place] = segments[place].map(|id| code.pc(id, 0));
        }
    }
    first
}

fn level(level: &Level, lanes: usize, fetches: u64, first_pcs: &[Option<usize>], functions: &[u16]) -> MapLevel {
    let bins = level.cells.len() / lanes.max(1);
    let mut bytes = Vec::with_capacity(level.cells.len() * 4);
    for (i, cell) in level.cells.iter().enumerate() {
        let start = (i / lanes) as u64 * level.bin;
        let length = level.bin.min(fetches - start);
        let Cell { active, place, .. } = *cell;
        // What is active at all is seen.
        let share = if active == 0 { 0 } else { (active as f64 / length as f64 * 255.0).round().max(1.0) as u8 };
        let function = functions.get(place as usize).copied().unwrap_or(OTHER_FUNCTION).min(OTHER_FUNCTION) as u8;
        let pc =
            first_pcs.get(place as usize).copied().flatten().and_then(|pc| u16::try_from(pc).ok()).unwrap_or(u16::MAX);
        let [low, high] = pc.to_le_bytes();
        bytes.extend([share, if active == 0 { 0 } else { function }, low, high]);
    }
    MapLevel { bin: level.bin, bins, cells: base64(&bytes) }
}

fn window(window: &Window, lanes: usize, code: &mut Code) -> MapWindow {
    let mut words: Vec<u32> = Vec::new();
    for stretch in &window.stretches {
        words.extend([code.pc(stretch.segment, stretch.first) as u32, stretch.count]);
        let halves = stretch.lanes.words(lanes).iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]);
        words.extend(halves.take(lanes.div_ceil(32).max(1)));
    }
    let kept = match window.kept {
        Kept::Whole => "whole",
        Kept::First => "first",
        Kept::Worst => "worst",
    };
    MapWindow {
        start: window.start,
        fetches: window.stretches.iter().map(|s| u64::from(s.count)).sum(),
        kept,
        lost: window.lost,
        stretches: base64(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>()),
    }
}

fn maps(outcome: &Outcome) -> &[LaneMap] {
    outcome.found::<LaneMaps>().map_or(&[], |maps| &maps.0)
}
