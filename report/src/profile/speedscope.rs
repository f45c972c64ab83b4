//! Speedscope's own format: <https://www.speedscope.app/file-format-schema.json>.

use std::collections::HashMap;

use replay::metrics::Cause;
use serde_json::{Value, json};

use super::{Profile, number};

/// Three profiles of one set of frames: lost lane-slots, with the cause as the last frame, warp instructions, and
/// thread instructions.
#[must_use]
pub fn speedscope(profile: &Profile) -> String {
    let (mut shared, mut numbers) = (Vec::new(), HashMap::new());
    let mut frame = |name: &str, file: Option<(&str, u32)>| {
        number(&mut numbers, (name.to_owned(), file.map(|(file, line)| (file.to_owned(), line))), || {
            shared.push(match file {
                Some((file, line)) => json!({ "name": name, "file": file, "line": line }),
                None => json!({ "name": name }),
            });
        })
    };
    let stacks: Vec<Vec<usize>> = (0..profile.stacks.len())
        .map(|stack| {
            let names = profile.names(stack);
            let line = profile.places(stack).next_back().and_then(|place| place.lines.first());
            // Only what stands below the functions is a line.
            let has_line = names.len() > profile.stacks[stack].len();
            let file = line.filter(|_| has_line).map(|line| (&*line.file, line.line));
            let last = names.len() - 1;
            names.iter().enumerate().map(|(at, name)| frame(name, file.filter(|_| at == last))).collect()
        })
        .collect();
    let causes = Cause::ALL.map(|cause| frame(&format!("[{}]", cause.name()), None));
    let lost = profile.lost.iter().map(|lost| {
        let cause = causes[lost.cause as usize];
        ([&stacks[lost.stack][..], &[cause]].concat(), lost.slots)
    });
    let issued = |count: fn(&replay::metrics::Issued) -> u64| {
        profile.issued.iter().map(|(stack, issued)| (stacks[*stack].clone(), count(issued))).collect()
    };
    let profiles = [
        sampled("lost lane-slots", lost.collect()),
        sampled("fetches (warp instructions)", issued(|issued| issued.fetches)),
        sampled("thread instructions", issued(|issued| issued.thread_instructions)),
    ];
    let all = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": concat!("lockstep ", env!("CARGO_PKG_VERSION")),
        "name": format!("{}: {}", profile.command, profile.replayed),
        "activeProfileIndex": 0,
        "shared": { "frames": shared },
        "profiles": profiles,
    });
    all.to_string()
}

fn sampled(name: &str, samples: Vec<(Vec<usize>, u64)>) -> Value {
    let (samples, weights): (Vec<Vec<usize>>, Vec<u64>) = samples.into_iter().unzip();
    let end: u64 = weights.iter().sum();
    json!({
        "type": "sampled", "name": name, "unit": "none", "startValue": 0, "endValue": end,
        "samples": samples, "weights": weights,
    })
}
