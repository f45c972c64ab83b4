//! `replay --verdict`: one page in words on how lanes would run as a GPU's and as SIMD.

use attribution::table::{Align, grouped, percent};
use verdict::as_lanes::{AsLanes, Lie};

use crate::width;

/// A SIMD unit with a smaller share of mask bits set is mostly idle.
const IDLE: f64 = 0.5;

/// For people.
pub(crate) fn text(page: &AsLanes) -> String {
    let left = |column| if column == 0 { Align::Left } else { Align::Right };
    let of = width::of_results();
    let mut text = format!("{} lanes: {}\n\n", grouped(page.lanes as u64), page.what);
    text += &format!("dependences: {}\n\n", page.runs().1);
    let mut rows =
        vec![["as a GPU", "lanes a warp", "SIMT efficiency", "its models say", "sectors a request"].map(str::to_owned)];
    rows.extend(page.gpus.iter().map(|gpu| {
        let each = gpu.requests.filter(|of| *of > 0).zip(gpu.sectors);
        [
            gpu.machine.to_owned(),
            gpu.warp_size.to_string(),
            percent(gpu.efficiency),
            format!("{} to {}", percent(gpu.least), percent(gpu.most)),
            each.map_or_else(|| "not known".to_owned(), |(of, n)| format!("{:.2}", n as f64 / of as f64)),
        ]
    }));
    text += &of.table(&rows, left);
    let mut rows = vec![
        [
            "as SIMD",
            "masks set (skipping)",
            "(linearized)",
            "speed-up at most",
            "contiguous",
            "one address",
            "gathers",
            "scatters",
        ]
        .map(str::to_owned),
    ];
    rows.extend(page.simd.iter().map(|simd| {
        let lie = |share: fn(&Lie) -> f64| simd.lie.as_ref().map_or("not known".to_owned(), |l| percent(share(l)));
        [
            format!("{} lanes", simd.lanes),
            percent(simd.skipped),
            percent(simd.linearized),
            format!("{:.1}", simd.lanes as f64 * simd.skipped.max(simd.linearized)),
            lie(|l| l.contiguous),
            lie(|l| l.one),
            lie(|l| l.gathers),
            lie(|l| l.scatters),
        ]
    }));
    text += &format!("\n{}", of.table(&rows, left));
    text += "masks set: the share of mask bits that are set, over all vector instructions; skipping: code under \
             an empty mask is skipped; linearized: it runs, except loops and calls\n\n";
    text += &format!("what limits it: {}\n", page.limit());
    text += &format!("what to try first: {}\n", page.first());
    // Of a unit that is wider than there are lanes, most bits cannot be set.
    if let Some(simd) = page.simd.iter().rfind(|simd| simd.lanes <= page.lanes).filter(|simd| simd.skipped < IDLE) {
        text += &format!("as SIMD of {} lanes most mask bits are not set\n", simd.lanes);
    }
    text
}
