//! How long a GPU takes for the lanes, and one core of a processor, in a sentence.

use replay::Outcome;
use replay::metrics::GpuTime;
use replay::view::View;
use serde_json::{Value, json};

use crate::Machine;

/// By which factor times are off in the geometric mean (docs/fidelity.md): of the programs that they were fitted to,
/// and of kernels at full size that they were not.
const OFF: &str = "1.3 to 1.5";

/// Instructions that one core of a server (AMD EPYC) runs in a nanosecond, in the geometric mean of 22 programs by two
/// compilers (`scripts/core-rate`), and by which factor these are off it.
const CORE: f64 = 5.0;
const CORE_OFF: &str = "1.5";

/// Lanes fill the GPU where it takes no more than so many times the time that full ones take.
const FULL: f64 = 1.5;

/// How long the lanes take.
#[derive(Clone, Debug)]
pub struct Time {
    /// On an NVIDIA H200.
    pub gpu: GpuTime,
    /// Nanoseconds on one core of a server.
    pub core: f64,
}

/// The time on this machine, where its memory was measured.
pub(crate) fn on(machine: Option<&str>, outcome: &Outcome, view: &View) -> Option<Time> {
    let is_known = machine == Some(Machine::Nvidia.name());
    let gpu = is_known.then(|| GpuTime::of(outcome)).flatten().filter(|time| time.filled > 0.0)?;
    // A core runs the inside of mathematical functions, too.
    let instructions = outcome.counts.thread_instructions() + view.summary().mathematics;
    Some(Time { gpu, core: instructions as f64 / CORE })
}

/// `about 246 us on an NVIDIA H200, bound by latency; one core of a server takes 3.1 ms, 13 times as long. …`.
pub(crate) fn sentence(time: &Time) -> String {
    let GpuTime { nanoseconds, bound, filled, filled_bound } = &time.gpu;
    let times = |gpu: f64| match time.core / gpu {
        many if many < 9.95 => format!("{many:.1} times"),
        many => format!("{many:.0} times"),
    };
    let mut said = format!(
        "about {} on an NVIDIA H200, bound by {}; one core of a server takes {}, {} as long.",
        duration(*nanoseconds),
        bound.name(),
        duration(time.core),
        times(*nanoseconds)
    );
    if *nanoseconds > FULL * filled {
        let of_copy = format!("With enough copies to fill the GPU, each takes {}", duration(*filled));
        said = format!("{said} {of_copy}, bound by {}: {}.", filled_bound.name(), times(*filled));
    }
    format!(
        "{said} Such times are off by a factor of {OFF} in the mean, the core's by {CORE_OFF}; copies of data to the GPU \
         are not in them."
    )
}

/// As JSON; times in nanoseconds.
pub(crate) fn json(times: &Time) -> Value {
    let time = &times.gpu;
    json!({
        "core_nanoseconds": times.core,
        "gpu": "NVIDIA H200",
        "nanoseconds": time.nanoseconds,
        "bound": time.bound.name(),
        "filled_nanoseconds": time.filled,
        "filled_bound": time.filled_bound.name(),
        "sentence": sentence(times),
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
        let gpu = GpuTime { nanoseconds: 5e6, bound: Bound::Issue, filled: 4e6, filled_bound: Bound::Issue };
        let said = sentence(&Time { gpu, core: 1e7 });
        assert!(
            said.starts_with("about 5.0 ms on an NVIDIA H200, bound by issue; one core of a server takes 10 ms, 2.0")
        );
        assert!(!said.contains("copies to fill"), "{said}");
        let said = sentence(&Time { gpu: GpuTime { filled: 1e6, filled_bound: Bound::Cache, ..gpu }, core: 1e8 });
        assert!(
            said.contains("100 ms, 20 times as long") && said.contains("1.0 ms, bound by cache: 100 times."),
            "{said}"
        );
    }
}
