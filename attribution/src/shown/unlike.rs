//! How two results differ beyond what they are compared for, in words: other programs, inputs, lanes or warps.

use replay::{Outcome, Setting};

/// The setting of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The program and its arguments.
    pub command: String,
    /// The region that was replayed.
    pub region: String,
    /// The code that was replayed.
    pub code: String,
    /// How locks counted.
    pub locks: String,
    /// How lanes were put into warps.
    pub group: String,
    /// The model; empty where it is no part of the comparison.
    pub heuristic: String,
    /// How many lanes there were.
    pub lanes: String,
    /// Seats in a warp.
    pub warp_size: String,
}

impl Facts {
    /// The setting of an outcome.
    #[must_use]
    pub fn of(setting: &Setting, outcome: &Outcome) -> Facts {
        Facts {
            command: setting.command.clone(),
            region: setting.region.clone(),
            code: setting.code.clone(),
            locks: setting.locks.clone(),
            group: setting.group.clone(),
            heuristic: outcome.heuristic.clone(),
            lanes: outcome.lanes.to_string(),
            warp_size: outcome.warp_size.to_string(),
        }
    }

    /// The program without its folder, and its arguments.
    fn program_and_input(&self) -> (&str, &str) {
        let (program, input) = self.command.split_once(' ').unwrap_or((&self.command, ""));
        (program.rsplit('/').next().unwrap_or(program), input)
    }
}

/// Each thing that differs: `different programs: fft.none before, fft.fcs after`.
#[must_use]
pub fn unlike(before: &Facts, after: &Facts) -> Vec<String> {
    let ((program, input), (other_program, other_input)) = (before.program_and_input(), after.program_and_input());
    let all = [
        ("programs", program, other_program),
        ("inputs", input, other_input),
        ("regions", &before.region, &after.region),
        ("code", &before.code, &after.code),
        ("rules for locks", &before.locks, &after.locks),
        ("groupings of lanes", &before.group, &after.group),
        ("models", &before.heuristic, &after.heuristic),
        ("numbers of lanes", &before.lanes, &after.lanes),
        ("warp sizes", &before.warp_size, &after.warp_size),
    ];
    let shown = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    all.into_iter()
        .filter(|(_, one, other)| one != other)
        .map(|(what, one, other)| format!("different {what}: {} before, {} after", shown(one), shown(other)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_folders_of_programs_are_not() {
        let facts = |command: &str, lanes: &str| Facts {
            command: command.to_owned(),
            lanes: lanes.to_owned(),
            ..Facts::default()
        };
        assert_eq!(unlike(&facts("a/fft -m 8", "16"), &facts("b/fft -m 8", "16")), Vec::<String>::new());
        assert_eq!(
            unlike(&facts("fft -m 8", "16"), &facts("b/fft.fcs", "4")),
            [
                "different programs: fft before, fft.fcs after",
                "different inputs: -m 8 before, none after",
                "different numbers of lanes: 16 before, 4 after",
            ]
        );
    }
}
