//! One reading of all lanes before any replay. It finds how much each lane runs, how similar lanes are, which lanes
//! meet at which barriers, and, if a heuristic asks for it, the control-flow graph. Streams that fit into memory are
//! kept, so that later readings are cheap.

use std::ops::Range;
use std::sync::Arc;

use heuristics::{ControlFlow, Observer, RowOfSegments, SegmentId, SegmentTable};
use rayon::prelude::*;
use trace_format::{Kind, Stop};

use crate::lanes::kept::{Keeper, Keeping, Kept};
use crate::lanes::stream::RowId;
use crate::{Batch, Code, Control, Entry, EpisodeId, Error, LaneSource, LaneStream, Result, Rows};

/// What the survey found of one lane.
pub(crate) struct LaneSurvey {
    /// Instructions that it runs.
    pub instructions: u64,
    /// The episodes in its stream, each once.
    pub episodes: Vec<EpisodeId>,
    /// What it hands over.
    pub posts: Vec<EpisodeId>,
    /// How often it waits for all others ([`Control::MeetAll`]).
    pub meet_alls: u64,
    /// Its stream, where the source has not kept it.
    kept: Option<Box<Kept>>,
}

/// What the survey found.
pub struct Survey<'a> {
    source: &'a dyn LaneSource,
    pub(crate) lanes: Vec<LaneSurvey>,
    /// See [`LaneSource::stack_end`].
    pub(crate) stack_end: u64,
    /// See [`LaneSource::constants`].
    pub(crate) constants: Arc<[Range<u64>]>,
    /// The control-flow graph, where it was asked for.
    pub(crate) control_flow: ControlFlow,
}

impl<'a> Survey<'a> {
    /// Reads every lane once.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn new(source: &'a dyn LaneSource, with_control_flow: bool) -> Result<Survey<'a>> {
        let keeper = Keeper::beside((0..source.lanes()).filter_map(|lane| source.kept(lane)));
        let steps = Steps::of(source.segments());
        let of_lanes = |observer: Observer| if source.are_turns() { observer.of_turns() } else { observer };
        let observer = with_control_flow.then(|| of_lanes(Observer::new(source.segments())));
        // A lane's counter has a size that grows with the program, so many short lanes share one.
        let share = source.lanes().div_ceil(4 * rayon::current_num_threads()).max(1);
        let shares: Vec<usize> = (0..source.lanes()).step_by(share).collect();
        let read: Vec<(Vec<LaneSurvey>, Option<Observer>)> = shares
            .into_par_iter()
            .map(|first| {
                let lanes = first..(first + share).min(source.lanes());
                survey_lanes(source, lanes, &steps, observer.clone(), &keeper)
            })
            .collect::<Result<_>>()?;
        let mut all = observer;
        let mut lanes = Vec::with_capacity(source.lanes());
        for (of_share, observer) in read {
            lanes.extend(of_share);
            if let (Some(all), Some(observer)) = (&mut all, observer) {
                all.merge(observer);
            }
        }
        let control_flow = all.map(|all| all.control_flow(source.segments())).unwrap_or_default();
        Ok(Survey { source, lanes, stack_end: source.stack_end(), constants: source.constants().into(), control_flow })
    }

    /// The lane's stream from its beginning.
    pub(crate) fn stream(&self, lane: usize) -> Box<dyn LaneStream + '_> {
        let stream = match self.kept(lane) {
            Some(kept) => kept.stream(),
            None => self.source.stream(lane),
        };
        Box::new(Stoppable { stream, stop: self.source.stop() })
    }

    fn kept(&self, lane: usize) -> Option<&Kept> {
        self.lanes[lane].kept.as_deref().or_else(|| self.source.kept(lane))
    }

    /// Judges what was kept by reading all lanes once more from where they come.
    ///
    /// # Errors
    /// When the trace cannot be read, or what was kept is not what is read now (a bug).
    pub(crate) fn check_kept(&self) -> Result<()> {
        (0..self.lanes.len()).into_par_iter().try_for_each(|lane| {
            let Some(kept) = self.kept(lane) else { return Ok(()) };
            let (mut stream, mut batch) = (self.source.stream(lane), Batch::default());
            let (mut kept, mut other) = (kept.stream(), Batch::default());
            loop {
                let goes_on = stream.next_batch(&mut batch)?;
                if kept.next_batch(&mut other)? != goes_on || batch != other {
                    return Err(Error::Bug(format!("the stream of lane {lane} was not kept as it is")));
                }
                if !goes_on {
                    return Ok(());
                }
            }
        })
    }

    /// Where the lanes come from.
    pub(crate) fn source(&self) -> &'a dyn LaneSource {
        self.source
    }
}

/// A stream of work that can be asked to end.
struct Stoppable<'a> {
    stream: Box<dyn LaneStream + 'a>,
    stop: Stop,
}

impl LaneStream for Stoppable<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        self.stop.check()?;
        self.stream.next_batch(batch)
    }

    fn next_folded(&mut self, batch: &mut Batch) -> Result<bool> {
        self.stop.check()?;
        self.stream.next_folded(batch)
    }

    fn rows(&self) -> Arc<Rows> {
        self.stream.rows()
    }
}

/// What each segment does to the call level, packed: 1 for a call, -1 for a return.
struct Steps(Vec<i8>);

impl Steps {
    fn of(segments: &SegmentTable) -> Steps {
        let step = |kind: Kind| if kind.is_call() { 1 } else { -i8::from(kind == Kind::Return) };
        Steps(segments.iter().map(|(_, segment)| step(segment.last().kind)).collect())
    }

    /// The call level after a segment that began at `level`.
    #[inline]
    fn level_after(&self, id: SegmentId, level: u32) -> u32 {
        level.saturating_add_signed(i32::from(self.0[id.0 as usize])).max(1)
    }
}

/// What is known about the rows that folded streams name.
#[derive(Default)]
struct KnownRows {
    rows: Arc<Rows>,
    /// By row; none where it was not seen yet.
    known: Vec<Option<KnownRow>>,
}

struct KnownRow {
    instructions: u64,
    /// What its last segment is.
    last: SegmentId,
    row: RowOfSegments,
}

impl KnownRows {
    /// Streams name these from now on.
    fn begin(&mut self, rows: &Arc<Rows>) {
        if !Arc::ptr_eq(&self.rows, rows) {
            self.known.clear();
            self.known.resize_with(rows.len(), || None);
            self.rows = Arc::clone(rows);
        }
    }
}

/// What is seen of a lane while its stream is read.
struct Surveyor<'s> {
    segments: &'s SegmentTable,
    rows: KnownRows,
    lengths: &'s [u32],
    instructions: u64,
    episodes: Vec<EpisodeId>,
    posts: Vec<EpisodeId>,
    meet_alls: u64,
    steps: &'s Steps,
    observer: Option<Observer>,
    level: u32,
}

impl Surveyor<'_> {
    /// The lane has ended: what was seen of it. The next one begins.
    fn end_lane(&mut self, kept: Option<Kept>) -> LaneSurvey {
        if let Some(observer) = &mut self.observer {
            observer.end();
        }
        self.level = 1;
        let mut episodes = std::mem::take(&mut self.episodes);
        episodes.sort_unstable();
        episodes.dedup();
        let (instructions, meet_alls) = (std::mem::take(&mut self.instructions), std::mem::take(&mut self.meet_alls));
        let posts = std::mem::take(&mut self.posts);
        LaneSurvey { instructions, episodes, posts, meet_alls, kept: kept.map(Box::new) }
    }

    /// The next piece of the stream, folded.
    fn see(&mut self, batch: &Batch) {
        for code in &batch.codes {
            match code.as_row() {
                Some(row) => self.row(row),
                None => self.code(*code, batch),
            }
        }
    }

    fn code(&mut self, code: Code, batch: &Batch) {
        match code.entry() {
            Entry::Segment(id) => self.segment(id),
            Entry::Control(index) => match batch.controls[index] {
                Control::Meet(episode) => self.episodes.push(episode),
                Control::MeetAll => self.meet_alls += 1,
                Control::Post(episode) => self.posts.push(episode),
                Control::Level(new) => self.level = new,
                _ => {}
            },
        }
    }

    #[inline]
    fn segment(&mut self, id: SegmentId) {
        self.instructions += u64::from(self.lengths[id.0 as usize]);
        if let Some(observer) = &mut self.observer {
            observer.segment(id, self.level);
            self.level = self.steps.level_after(id, self.level);
        }
    }

    fn row(&mut self, id: RowId) {
        if let Some(known) = &self.rows.known[id.0 as usize] {
            let Some(observer) = &mut self.observer else {
                self.instructions += known.instructions;
                return;
            };
            if observer.row(&known.row, self.level) {
                self.instructions += known.instructions;
                let level = self.level as usize - known.row.back.len() + known.row.open.len() - 1;
                self.level = self.steps.level_after(known.last, level as u32);
                return;
            }
        }
        let rows = Arc::clone(&self.rows.rows);
        let before = self.instructions;
        rows.segments(id).for_each(|segment| self.segment(segment));
        if self.rows.known[id.0 as usize].is_none() {
            let row: Vec<SegmentId> = rows.segments(id).collect();
            let instructions = self.instructions - before;
            let known = RowOfSegments::of(&row, self.segments).zip(row.last());
            self.rows.known[id.0 as usize] = known.map(|(row, last)| KnownRow { instructions, last: *last, row });
        }
    }
}

fn survey_lanes(
    source: &dyn LaneSource,
    lanes: std::ops::Range<usize>,
    steps: &Steps,
    observer: Option<Observer>,
    keeper: &Keeper,
) -> Result<(Vec<LaneSurvey>, Option<Observer>)> {
    let lengths: Vec<u32> = source.segments().iter().map(|(_, segment)| segment.len() as u32).collect();
    let (instructions, episodes, posts, meet_alls) = (0, Vec::new(), Vec::new(), 0);
    let (segments, rows) = (source.segments(), KnownRows::default());
    let mut seen = Surveyor {
        segments,
        rows,
        lengths: &lengths,
        instructions,
        episodes,
        posts,
        meet_alls,
        steps,
        observer,
        level: 1,
    };
    let mut batch = Batch::default();
    let lanes = lanes.map(|lane| {
        let mut kept = None;
        if let Some(kept) = source.kept(lane) {
            seen.rows.begin(kept.rows());
            kept.for_each(|batch| seen.see(batch))?;
        } else {
            let mut stream = source.stream(lane);
            seen.rows.begin(&stream.rows());
            let mut keeping = (!source.is_at_hand()).then(|| keeper.stream(stream.rows()));
            while stream.next_folded(&mut batch)? {
                seen.see(&batch);
                if let Some(keeping) = &mut keeping {
                    keeping.add(&batch)?;
                }
            }
            kept = keeping.map(Keeping::finish);
        }
        Ok(seen.end_lane(kept))
    });
    let lanes = lanes.collect::<Result<_>>()?;
    Ok((lanes, seen.observer))
}
