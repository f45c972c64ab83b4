//! When a thread did what, from the times that its file notes now and then: where a buffer begins, and around system
//! calls. They are read before all else, with the calls of recorded functions.

use std::io::Read;

use crate::drmemtrace::fault::Fault;
use crate::drmemtrace::record::{Record, Records, marker};
use crate::drmemtrace::steps::MOST_ARGUMENTS;

/// How many nanoseconds an instruction takes at most while it is recorded.
const PACE: u64 = 25;

/// The times that a file notes.
#[derive(Debug, Default)]
pub struct Times {
    /// How many instructions had run, and the time in microseconds: in order, and two of one place at most.
    noted: Vec<(u64, u64)>,
    /// The last that was asked for.
    at: usize,
}

impl Times {
    /// Those of a file, of which each call of a recorded function is told: its number and its arguments. Of a damaged
    /// file those before the damage, which its conversion will meet.
    pub fn read(input: impl Read, called: impl FnMut(u64, &[u64])) -> Times {
        let mut times = Times::default();
        let _ = times.take(input, called);
        times
    }

    fn take(&mut self, input: impl Read, mut called: impl FnMut(u64, &[u64])) -> Result<(), Fault> {
        let mut records = Records::new(input)?;
        let (mut instructions, mut in_kernel) = (0, false);
        let (mut function, mut arguments) = (None, Vec::new());
        while let Some(record) = records.next()? {
            match record {
                Record::Marker(marker::FUNCTION, number) => function = Some(number),
                Record::Marker(marker::ARGUMENT, value) if arguments.len() < MOST_ARGUMENTS => arguments.push(value),
                Record::Marker(marker::ARGUMENT | marker::RETURN_ADDRESS, _) => {}
                _ => {
                    if let Some(function) = function.take().filter(|_| !arguments.is_empty()) {
                        called(function, &arguments);
                    }
                    arguments.clear();
                }
            }
            match record {
                Record::Instruction { again: false, .. } if !in_kernel => instructions += 1,
                Record::Marker(kind, time) if kind == marker::TIME && !in_kernel => self.note(instructions, time),
                Record::Marker(kind, _) if marker::KERNEL_BEGINS.contains(&kind) => in_kernel = true,
                Record::Marker(kind, _) if marker::KERNEL_ENDS.contains(&kind) => in_kernel = false,
                _ => {}
            }
        }
        Ok(())
    }

    /// Around a system call are two times at one place: the thread came to it at the first and left it at the last.
    fn note(&mut self, instructions: u64, time: u64) {
        if let [.., (first, _), (last, latest)] = &mut self.noted[..]
            && (*first, *last) == (instructions, instructions)
        {
            *latest = time;
        } else {
            self.noted.push((instructions, time));
        }
    }

    /// The time, in nanoseconds, when so many instructions had run. Between two notes they took as long as each other
    /// where that is [`PACE`] at most. Else the thread stood still for a while, nobody knows where: half-way. What it
    /// does shortly behind a note or before one is near that. Not fewer than were asked for before.
    pub fn after(&mut self, instructions: u64) -> u64 {
        while self.noted.get(self.at + 1).is_some_and(|(at, _)| *at <= instructions) {
            self.at += 1;
        }
        let Some(&(from, start)) = self.noted.get(self.at) else { return 0 };
        let (to, end) = self.noted.get(self.at + 1).copied().unwrap_or((u64::MAX, start));
        let (ran, left) = (instructions.saturating_sub(from), to.saturating_sub(instructions.max(from)).max(1));
        let took = end.saturating_sub(start).saturating_mul(1000);
        let all = ran.saturating_add(left);
        let passed = if took / all < PACE {
            u64::try_from(u128::from(took) * u128::from(ran) / u128::from(all)).unwrap_or(took)
        } else if ran < left {
            ran * PACE
        } else {
            took.saturating_sub(left.saturating_mul(PACE))
        };
        start.saturating_mul(1000).saturating_add(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_notes_time_passes_with_instructions_or_stands_still_half_way() {
        let mut times = Times::default();
        for (instructions, time) in [(0, 5), (100, 7), (100, 8), (100, 90), (200, 190)] {
            times.note(instructions, time);
        }
        assert_eq!([0, 50, 99].map(|instructions| times.after(instructions)), [5000, 6000, 6980]);
        let waited = [100, 110, 190, 200, 999].map(|instructions| times.after(instructions));
        assert_eq!(waited, [90_000, 90_250, 189_750, 190_000, 190_000]);
        assert_eq!(Times::default().after(3), 0);
    }
}
