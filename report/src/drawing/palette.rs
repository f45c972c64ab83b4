//! One fixed colour per family of heuristics, and a shade of it per heuristic, the same in every chart.
//!
//! Five of the families' colours are those of Okabe and Ito ("Color Universal Design", 2008). With the grey of bounds,
//! the closest pair of all, seen with normal vision or with no red, green or blue cones (Machado, Oliveira and
//! Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", 2009), is 15 apart in CIE 1976
//! L*a*b*, where a difference of 2.3 is just noticeable. The shades of a family follow from the places of its
//! heuristics in the registry, so that a new heuristic needs no colour: it gets the next shade of its family, and no
//! other changes.

use heuristics::Family;

/// Red, green and blue, 0 to 255 each (sRGB).
pub type Colour = (u8, u8, u8);

/// A family's colour: that of its first heuristic.
#[must_use]
pub fn family_colour(family: Family) -> Colour {
    match family {
        Family::Stack => (0x00, 0x72, 0xB2),
        Family::Barriers => (0xD5, 0x5E, 0x00),
        Family::Frontiers => (0x00, 0x9E, 0x73),
        Family::MinPc => (0xCC, 0x79, 0xA7),
        Family::SeveralWarps => (0xE6, 0x9F, 0x00),
        Family::Bounds => (0x50, 0x50, 0x50),
    }
}

/// A family's shade of that number: the first is the family's colour, those that follow lie halfway between two that
/// are there, darker first. `number + 1` in base 2, read backwards behind the point (van der Corput's sequence), is how
/// light it is: 0.5, 0.25, 0.75, 0.125, …
fn shade(family: Family, number: usize) -> Colour {
    /// How far the darkest shade could be mixed with black, and the lightest with white: all stand apart from paper.
    const MOST_DARK: f64 = 0.7;
    const MOST_LIGHT: f64 = 0.72;
    let light = (number as u32 + 1).reverse_bits() as f64 / 2f64.powi(32);
    let mix = |channel: u8| {
        let from = f64::from(channel);
        let mixed = match light * 2.0 - 1.0 {
            dark if dark < 0.0 => from * (1.0 + dark * MOST_DARK),
            pale => from + (255.0 - from) * pale * MOST_LIGHT,
        };
        mixed.round() as u8
    };
    let (r, g, b) = family_colour(family);
    (mix(r), mix(g), mix(b))
}

/// The colour of each cause of lost lane-slots, by its name: those of Okabe and Ito, with grey for seats that no lane
/// has.
const CAUSE_COLOURS: [(&str, Colour); 8] = [
    ("branch", (0xD5, 0x5E, 0x00)),
    ("loop trip count", (0x00, 0x72, 0xB2)),
    ("call target", (0xCC, 0x79, 0xA7)),
    ("lock", (0xE6, 0x9F, 0x00)),
    ("barrier", (0x00, 0x9E, 0x73)),
    ("schedule", (0x56, 0xB4, 0xE9)),
    ("finished", (0xF0, 0xE4, 0x42)),
    ("empty seat", (0x99, 0x99, 0x99)),
];

/// The colour of a cause by its name; [`OTHER`] of one that has none.
#[must_use]
pub fn cause_colour(cause: &str) -> Colour {
    CAUSE_COLOURS.iter().find(|(name, _)| *name == cause).map_or(OTHER, |(_, colour)| *colour)
}

/// The colour of heuristics and causes that have none of their own.
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
    let all = heuristics::all();
    let Some(at) = all.iter().position(|entry| entry.name == name) else { return OTHER };
    let family = all[at].family;
    shade(family, all[..at].iter().filter(|before| before.family == family).count())
}

/// Whether white text reads better on it than dark text.
pub(crate) fn is_dark((r, g, b): Colour) -> bool {
    // Rec. 709 weights. Half of white is where both contrasts are about equal for colours as they are stored (gamma
    // 2.2).
    0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b) < 127.5
}

#[cfg(test)]
mod tests {
    use heuristics::REGISTRY;

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
    fn every_two_families_stay_apart_for_colour_blind_readers() {
        let families = Family::ALL.map(|family| (family.name(), family_colour(family)));
        let all: Vec<(&str, Colour)> = families.into_iter().chain([("paper", PAPER)]).collect();
        for (i, &(name, colour)) in all.iter().enumerate() {
            for &(other_name, other) in &all[i + 1..] {
                let distance = least_distance(colour, other);
                assert!(distance >= 15.0, "{name} and {other_name} are only {distance:.1} apart");
            }
        }
    }

    /// More than any family has: whoever adds a heuristic has nothing to choose.
    #[test]
    fn fifteen_shades_of_a_family_can_be_told_apart_and_from_paper() {
        for family in Family::ALL {
            let shades: Vec<Colour> = (0..15).map(|number| shade(family, number)).collect();
            for (i, one) in shades.iter().enumerate() {
                let from_paper = least_distance(*one, PAPER);
                assert!(from_paper >= 12.0, "shade {i} of {} is {from_paper:.1} from paper", family.name());
                for (j, other) in shades[..i].iter().enumerate() {
                    let apart = least_distance(*one, *other);
                    assert!(apart >= 2.3, "shades {i} and {j} of {} are {apart:.1} apart", family.name());
                }
            }
        }
        let most = Family::ALL.map(|family| REGISTRY.iter().filter(|entry| entry.family == family).count());
        assert!(most.iter().all(|n| *n <= 15), "{most:?}: a family needs a split, or more shades");
    }

    #[test]
    fn every_heuristic_has_a_shade_of_its_family_for_itself() {
        for family in Family::ALL {
            let first = REGISTRY.iter().find(|entry| entry.family == family).unwrap();
            assert_eq!(colour_of(first.name), family_colour(family));
        }
        let mut all: Vec<Colour> = REGISTRY.iter().map(|entry| colour_of(entry.name)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), REGISTRY.len());
    }

    #[test]
    fn parameters_do_not_change_the_colour() {
        assert_eq!(colour_of("long:n=4"), colour_of("long"));
        assert_ne!(colour_of("long:n=4"), colour_of("long-minpc"));
        assert_eq!(colour_of("unheard-of"), OTHER);
    }
}
