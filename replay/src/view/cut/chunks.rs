//! What a runtime gives a thread of a loop: which iterations it runs now, and whether it made as many lanes of them.

use super::counts::Counts;

/// What a thread was given, and what it runs of that.
#[derive(Default)]
pub(super) struct Chunks {
    /// How many chunks it ran before this one.
    pub number: u32,
    /// The iterations that it was given last, if it has not reached them: see [`Control::Chunk`](crate::Control::Chunk).
    given: Option<(i64, u32)>,
    /// The same of the chunk that it runs; of calls, the thread's last event before this one.
    pub runs: Option<(i64, u32)>,
    /// How many iterations come next, and how many those are that it was given last, where the trace says it.
    comes: Option<u64>,
    told: Option<u64>,
    runs_told: Option<RunsTold>,
}

/// The chunk that a thread runs, where the trace says how many iterations it has.
#[derive(Clone, Copy)]
struct RunsTold {
    of_loop: u32,
    iterations: u64,
    /// How many lanes there were before it.
    before: usize,
    /// Whether the loop, or the recording, may end before the chunk does.
    may_end_before: bool,
}

/// Where the thread is when it comes to a chunk.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub of_loop: u32,
    /// How many lanes it has made.
    pub lanes: usize,
    /// Whether it goes from one chunk of that loop to the next by itself.
    pub in_chunks: bool,
}

impl Chunks {
    /// So many iterations has what it is given next.
    pub(super) fn tell(&mut self, iterations: u64) {
        self.comes = Some(iterations);
    }

    /// It is given a chunk.
    pub(super) fn give(&mut self, first: i64, stride: u32) {
        self.given = Some((first, stride));
        self.told = self.comes.take();
    }

    /// It is given a piece of a taskloop.
    pub(super) fn give_piece(&mut self) {
        self.told = self.comes.take();
    }

    /// Nothing that it was given counts any more; what it runs is this.
    pub(super) fn forget(&mut self, runs: Option<(i64, u32)>) {
        (self.given, self.runs) = (None, runs);
    }

    /// Whether nothing is known of how many iterations the chunk has that it runs.
    pub(super) fn are_untold(&self) -> bool {
        self.runs_told.is_none()
    }

    /// It reaches a loop.
    pub(super) fn begin(&mut self, at: At, counts: &mut Counts) {
        self.number = 0;
        self.take(at, counts);
    }

    /// It begins another chunk of the loop.
    pub(super) fn next(&mut self, at: At, counts: &mut Counts) {
        let next = self.runs.filter(|(_, stride)| *stride != 0);
        if self.runs.is_some() && next.is_none() && self.given.is_none() && self.told.is_none() {
            // Where the loop over chunks and the one in it begin at one place, it is the same chunk still.
            return;
        }
        self.number += 1;
        let next = next.map(|(first, stride)| (first.wrapping_add(stride.into()), stride));
        if let (Some(told), None, Some(_)) = (self.runs_told, self.given, next) {
            counts.told[at.of_loop as usize].chunk(told.iterations, (at.lanes - told.before) as u64);
            counts.told[at.of_loop as usize].assumed += 1;
            self.runs_told = Some(RunsTold { before: at.lanes, may_end_before: at.in_chunks, ..told });
            self.runs = next;
            return;
        }
        self.take(at, counts);
        self.runs = self.runs.or(next);
    }

    fn take(&mut self, At { of_loop, lanes, .. }: At, counts: &mut Counts) {
        let told = self.told.take();
        self.end(lanes, counts);
        self.runs = self.given.take();
        let runs = |iterations| RunsTold { of_loop, iterations, before: lanes, may_end_before: false };
        self.runs_told = told.map(runs);
    }

    /// The recording ends, and with it the chunk that the thread runs where it is in the loop.
    pub(super) fn stop(&mut self, is_in_loop: bool) {
        if let Some(told) = &mut self.runs_told {
            told.may_end_before |= is_in_loop;
        }
    }

    /// The chunk that it ran has ended: as many lanes as iterations? So has one that it never reached.
    pub(super) fn end(&mut self, lanes: usize, counts: &mut Counts) {
        if let Some(told) = self.runs_told.take() {
            let lanes = (lanes - told.before) as u64;
            let iterations = if told.may_end_before { told.iterations.min(lanes) } else { told.iterations };
            counts.told[told.of_loop as usize].chunk(iterations, lanes);
        }
        counts.missed += self.told.take().unwrap_or(0);
    }
}
