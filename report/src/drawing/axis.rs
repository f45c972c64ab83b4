//! Ticks of an axis: round numbers and how they are written.

/// A tick: where it stands and what is written there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// Ticks at round numbers from 0 to `max`, at most `most` steps (1 at least); one at 0 where `max` is not above 0.
pub(crate) fn ticks(max: f64, most: usize) -> Vec<Tick> {
    let step = round_step(max / most.max(1) as f64);
    // Half a thousandth of a step makes up for what division rounds away.
    let steps = (max / step + 0.0005).floor() as usize;
    (0..=steps).map(|i| i as f64 * step).map(|value| Tick { value, label: short(value) }).collect()
}

/// The least of 1, 2, 5 times a power of ten that is not less.
fn round_step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powi(least.log10().floor() as i32);
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// A number as it stands at an axis: `0.2`, `500`, `1.5 M`.
pub(crate) fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 5] = [(1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")];
    let (value, unit) = match UNITS.into_iter().find(|(least, _)| value >= *least) {
        // From 10,000 on thousands are written with k, so that 5,000 and 2,000 keep their digits.
        Some((_, " k")) => (value / 1e3, " k"),
        Some((least, unit)) => (value / least, unit),
        None => (value, ""),
    };
    let digits = format!("{value:.3}");
    format!("{}{unit}", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(max: f64, most: usize) -> Vec<String> {
        ticks(max, most).into_iter().map(|t| t.label).collect()
    }

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        assert_eq!(labels(1.0, 5), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(1.0, 2), ["0", "0.5", "1"]);
        assert_eq!(labels(3_700_000.0, 4), ["0", "1 M", "2 M", "3 M"]);
        assert_eq!(labels(70.0, 4), ["0", "20", "40", "60"]);
        assert_eq!(labels(0.0, 4), ["0"]);
    }

    #[test]
    fn large_numbers_are_written_with_units() {
        assert_eq!([9_000.0, 15_000.0, 1.5e6, 2e9, 1.8e19].map(short), ["9000", "15 k", "1.5 M", "2 G", "18000 P"]);
    }
}
