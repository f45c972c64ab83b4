//! Folded stacks, a line each, as inferno, flamegraph.pl and speedscope read them.

use std::collections::BTreeMap;

use super::Profile;

/// Lost lane-slots: a line for each call path, line and cause, `worker;transform;fft.c:75;[branch] 1200`.
#[must_use]
pub fn folded(profile: &Profile) -> String {
    let mut slots: BTreeMap<String, u64> = BTreeMap::new();
    for lost in &profile.lost {
        // A semicolon would cut the name in two, a line break the stack.
        let names = profile.names(lost.stack).into_iter().map(|name| name.replace([';', '\n'], ","));
        let stack: Vec<String> = names.chain([format!("[{}]", lost.cause.name())]).collect();
        *slots.entry(stack.join(";")).or_default() += lost.slots;
    }
    slots.iter().map(|(stack, slots)| format!("{stack} {slots}\n")).collect()
}
