//! When a thread did what, from the times that its file notes now and then: where a buffer begins, and around system
//! calls.

use std::io::Read;

use crate::drmemtrace::fault::Fault;
use crate::drmemtrace::record::{Record, Records, marker};

/// The times that a file notes.
#[derive(Debug, Default)]
pub struct Times {
    /// How many instructions had run, and the time in microseconds: in order, and two of one place at most.
    noted: Vec<(u64, u64)>,
    /// The last that was asked for.
    at: usize,
}

impl Times {
    /// Those of a file. Of a damaged one those before the damage, which its conversion will meet.
    pub fn read(input: impl Read) -> Times {
        let mut times = Times::default();
        let _ = times.take(input);
        times
    }

    fn take(&mut self, input: impl Read) -> Result<(), Fault> {
        let mut records = Records::new(input)?;
        let (mut instructions, mut in_kernel) = (0, false);
        while let Some(record) = records.next()? {
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

    /// The time, in nanoseconds, when so many instructions had run, as if all between two notes had taken as long as
    /// each other. Not fewer than were asked for before.
    pub fn after(&mut self, instructions: u64) -> u64 {
        while self.noted.get(self.at + 1).is_some_and(|(at, _)| *at <= instructions) {
            self.at += 1;
        }
        let Some(&(from, start)) = self.noted.get(self.at) else { return 0 };
        let (to, end) = self.noted.get(self.at + 1).copied().unwrap_or((instructions.max(from) + 1, start));
        let (ran, all) = (instructions.saturating_sub(from), to.saturating_sub(from).max(1));
        let passed = u128::from(end.saturating_sub(start)) * 1000 * u128::from(ran) / u128::from(all);
        start.saturating_mul(1000).saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_notes_time_passes_with_instructions_and_a_system_call_takes_its_own() {
        let mut times = Times::default();
        for (instructions, time) in [(0, 5), (10, 7), (10, 8), (10, 90), (20, 91)] {
            times.note(instructions, time);
        }
        assert_eq!([0, 5, 9].map(|instructions| times.after(instructions)), [5000, 6000, 6800]);
        assert_eq!([10, 15, 20, 99].map(|instructions| times.after(instructions)), [90_000, 90_500, 91_000, 91_000]);
        assert_eq!(Times::default().after(3), 0);
    }
}
