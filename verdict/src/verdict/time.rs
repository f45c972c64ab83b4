//! How long a GPU takes for the lanes, in a sentence.

use replay::Outcome;
use replay::metrics::GpuTime;
use serde_json::{Value, json};

use crate::Machine;

/// By which factor times are off in the geometric mean (docs/fidelity.md): of the programs that they were fitted to,
/// and of kernels at full size that they were not.
const OFF: &str = "1.3 to 1.5";

/// Lanes fill the GPU where it takes no more than so many times the time that full ones take.
const FULL: f64 = 1.5;

/// The time on this machine, where its memory was measured.
pub(crate) fn on(machine: Option<&str>, outcome: &Outcome) -> Option<GpuTime> {
    let is_known = machine == Some(Machine::Nvidia.name());
    is_known.then(|| GpuTime::of(outcome)).flatten().filter(|time| time.filled > 0.0)
}

/// `about 246 us on an NVIDIA H200, bound by latency; …`.
pub(crate) fn sentence(time: &GpuTime) -> String {
    let GpuTime { nanoseconds, bound, filled, filled_bound } = time;
    let mut said = format!("about {} on an NVIDIA H200, bound by {}.", duration(*nanoseconds), bound.name());
    if *nanoseconds > FULL * filled {
        let of_copy = format!("With enough copies to fill the GPU, each takes {}", duration(*filled));
        said = format!("{said} {of_copy}, bound by {}.", filled_bound.name());
    }
    format!("{said} Such times are off by a factor of {OFF} in the mean; copies of data to the GPU are not in them.")
}

/// As JSON; times in nanoseconds.
pub(crate) fn json(time: &GpuTime) -> Value {
    json!({
        "gpu": "NVIDIA H200",
        "nanoseconds": time.nanoseconds,
        "bound": time.bound.name(),
        "filled_nanoseconds": time.filled,
        "filled_bound": time.filled_bound.name(),
        "sentence": sentence(time),
    })
}

/// With two digits: `8.1 us`.
fn duration(nanoseconds: f64) -> String {
    let (number, unit) = match nanoseconds {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "us"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let digits = usize::from(number < 9.95);
    format!("{number:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use replay::metrics::Bound;

    use super::*;

    #[test]
    fn durations_have_two_digits() {
        for (nanoseconds, said) in [(0.94, "0.9 ns"), (8060.0, "8.1 us"), (246_078.0, "246 us"), (2.5e9, "2.5 s")] {
            assert_eq!(duration(nanoseconds), said);
        }
    }

    #[test]
    fn a_full_gpu_is_not_filled_further() {
        let time = GpuTime { nanoseconds: 5e6, bound: Bound::Issue, filled: 4e6, filled_bound: Bound::Issue };
        assert!(sentence(&time).starts_with("about 5.0 ms on an NVIDIA H200, bound by issue. Such"));
        let time = GpuTime { filled: 1e6, filled_bound: Bound::Cache, ..time };
        assert!(sentence(&time).contains("each takes 1.0 ms, bound by cache."));
    }
}
