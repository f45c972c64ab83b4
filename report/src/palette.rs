//! One fixed colour per heuristic, the same in every chart.
//!
//! Seven colours are those of Okabe and Ito ("Color Universal Design", 2008). The others, and the grey of unnamed
//! heuristics, were searched for on a grid of web colours so that the closest pair of all, seen with normal vision or
//! with no red, green or blue cones (Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of
//! Color Vision Deficiency", 2009), is as far apart as possible: 16 in CIE 1976 L*a*b*, where 2.3 can just be told
//! apart. Those of `hanoi` and `wave` came later and are 15 from all others. A test judges it anew when a colour is
//! added.

/// Red, green and blue, 0 to 255 each (sRGB).
pub type Colour = (u8, u8, u8);

/// The colour of each heuristic, by its name without parameters.
pub const COLOURS: [(&str, Colour); 26] = [
    ("minpc", (0xE6, 0x9F, 0x00)),
    ("minsp-pc", (0x00, 0x72, 0xB2)),
    ("maxfun-minpc", (0x00, 0x9E, 0x73)),
    ("long", (0xD5, 0x5E, 0x00)),
    ("long-minpc", (0xF0, 0xE4, 0x42)),
    ("long-minsp-pc", (0x56, 0xB4, 0xE9)),
    ("long-irb", (0x77, 0x22, 0x00)),
    ("rd-minsp-pc", (0x33, 0x00, 0x99)),
    ("lee", (0xCC, 0x79, 0xA7)),
    ("round-robin", (0xAA, 0xDD, 0x99)),
    ("round-robin-eq", (0x44, 0x00, 0x55)),
    ("ipdom", (0x99, 0x00, 0xFF)),
    ("none", (0x11, 0x22, 0x33)),
    ("tf-stack", (0x00, 0xEE, 0xFF)),
    ("tf-branch", (0x66, 0x44, 0xCC)),
    ("dual-path", (0xDD, 0xAA, 0xAA)),
    ("multi-path", (0xAA, 0xAA, 0x55)),
    ("barrier", (0xAA, 0x55, 0x33)),
    ("hanoi", (0xD7, 0x00, 0xB4)),
    ("wave", (0x78, 0x5A, 0x46)),
    ("dws", (0x99, 0x88, 0xFF)),
    ("dwf", (0x99, 0xFF, 0x77)),
    ("tbc", (0x77, 0x33, 0x77)),
    ("lwm", (0x55, 0x22, 0x88)),
    ("oracle", (0x22, 0x00, 0x00)),
    ("distance", (0x44, 0x33, 0x22)),
];

/// The colour of each cause of lost lane-slots, by its name: those of Okabe and Ito, with grey for seats that no lane
/// has.
pub const CAUSE_COLOURS: [(&str, Colour); 8] = [
    ("branch", (0xD5, 0x5E, 0x00)),
    ("loop trip count", (0x00, 0x72, 0xB2)),
    ("call target", (0xCC, 0x79, 0xA7)),
    ("lock", (0xE6, 0x9F, 0x00)),
    ("barrier", (0x00, 0x9E, 0x73)),
    ("schedule", (0x56, 0xB4, 0xE9)),
    ("finished", (0xF0, 0xE4, 0x42)),
    ("empty seat", (0x99, 0x99, 0x99)),
];

/// The colour of heuristics that have none of their own.
pub const OTHER: Colour = (0x55, 0x55, 0x55);

/// Text, axes and the line of the best possible.
pub(crate) const INK: Colour = (0x22, 0x22, 0x22);
/// Text that explains, and the line of no sharing.
pub(crate) const FAINT_INK: Colour = (0x60, 0x60, 0x60);
/// Lines at the ticks of an axis.
pub(crate) const GRID: Colour = (0xE2, 0xE2, 0xE2);
/// The background.
pub(crate) const PAPER: Colour = (0xFF, 0xFF, 0xFF);

/// The colour of a heuristic as typed: its parameters, from the colon on, do not change it.
#[must_use]
pub fn colour_of(heuristic: &str) -> Colour {
    let name = heuristic.split(':').next().unwrap_or(heuristic);
    COLOURS.iter().find(|(known, _)| *known == name).map_or(OTHER, |&(_, colour)| colour)
}

/// Whether white text reads better on it than dark text.
pub(crate) fn is_dark((r, g, b): Colour) -> bool {
    // Rec. 709 weights. Half of white is where both contrasts are about equal for colours as they are stored (gamma
    // 2.2).
    0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b) < 127.5
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a colour is seen, in linear RGB: by normal eyes, and without the cones for red, green and blue.
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
    ];

    fn times(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
        [0, 1, 2].map(|i| (0..3).map(|j| matrix[i][j] * v[j]).sum())
    }

    fn lab_of(colour: Colour, eyes: &[[f64; 3]; 3]) -> [f64; 3] {
        const XYZ: [[f64; 3]; 3] =
            [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]];
        let linear = [colour.0, colour.1, colour.2].map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        let xyz = times(&XYZ, times(eyes, linear).map(|c| c.clamp(0.0, 1.0)));
        let f = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let [x, y, z] = [f(xyz[0] / 0.95047), f(xyz[1]), f(xyz[2] / 1.08883)];
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn least_distance(a: Colour, b: Colour) -> f64 {
        let distance = |eyes| {
            let (a, b) = (lab_of(a, eyes), lab_of(b, eyes));
            (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
        };
        EYES.iter().map(distance).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn every_two_colours_stay_apart_for_colour_blind_readers() {
        let all: Vec<(&str, Colour)> = COLOURS.into_iter().chain([("unnamed", OTHER), ("paper", PAPER)]).collect();
        for (i, &(name, colour)) in all.iter().enumerate() {
            for &(other_name, other) in &all[i + 1..] {
                let distance = least_distance(colour, other);
                assert!(distance >= 15.0, "{name} and {other_name} are only {distance:.1} apart");
            }
        }
    }

    #[test]
    fn every_heuristic_has_a_colour() {
        let heuristics: Vec<&str> = heuristics::REGISTRY.iter().map(|entry| entry.name).collect();
        assert_eq!(COLOURS.map(|(name, _)| name).to_vec(), heuristics);
    }

    #[test]
    fn parameters_do_not_change_the_colour() {
        assert_eq!(colour_of("long:n=4"), colour_of("long"));
        assert_ne!(colour_of("long:n=4"), colour_of("long-minpc"));
        assert_eq!(colour_of("unheard-of"), OTHER);
    }
}
