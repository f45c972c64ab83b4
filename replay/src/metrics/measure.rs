//! What a replay can measure besides the engine's own counts, and the results.
//!
//! A [`Measure`] starts a [`Metric`] on each warp, or block of warps. The metric sees each step, and ends with a
//! [`Finding`]. The findings of all warps are merged, and stand in the outcome by their type.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use heuristics::{Program, Seats};

use super::Metric;
use crate::engine::{Counts, End};
use crate::survey::Survey;
use crate::warps::Unit;

/// Starts a metric on a warp; none where that warp is not measured.
type Start = dyn for<'a> Fn(&Warp<'a>) -> Option<Box<dyn Metric + 'a>> + Send + Sync;

/// What a replay is asked to measure.
#[derive(Clone)]
pub struct Measure {
    name: &'static str,
    needs_control_flow: bool,
    start: Arc<Start>,
}

impl Measure {
    /// A measure of this name, and how it starts on a warp: none where that warp is not measured.
    pub fn new(
        name: &'static str,
        start: impl for<'a> Fn(&Warp<'a>) -> Option<Box<dyn Metric + 'a>> + Send + Sync + 'static,
    ) -> Measure {
        Measure { name, needs_control_flow: false, start: Arc::new(start) }
    }

    /// The same, which looks at [`Program::control_flow`].
    #[must_use]
    pub fn with_control_flow(self) -> Measure {
        Measure { needs_control_flow: true, ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it looks at [`Program::control_flow`].
    #[must_use]
    pub fn needs_control_flow(&self) -> bool {
        self.needs_control_flow
    }

    pub(crate) fn start<'a>(&self, warp: &Warp<'a>) -> Option<Box<dyn Metric + 'a>> {
        (self.start)(warp)
    }
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Measure({})", self.name)
    }
}

/// The warp, or block of warps, on which a metric is started.
#[derive(Clone, Copy)]
pub struct Warp<'a> {
    pub(crate) survey: &'a Survey<'a>,
    pub(crate) program: &'a Program,
    pub(crate) unit: &'a Unit,
    pub(crate) number: usize,
}

impl<'a> Warp<'a> {
    /// Its number among the warps, or blocks, of the replay.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its lanes, by their numbers in the replay.
    #[must_use]
    pub fn lanes(&self) -> &'a [usize] {
        &self.unit.lanes
    }

    /// The launch that its lanes are of: launches follow each other.
    #[must_use]
    pub fn launch(&self) -> u32 {
        self.unit.lanes.first().map_or(0, |lane| self.survey.source().generation(*lane))
    }

    /// Where they sit.
    #[must_use]
    pub fn seats(&self) -> &'a Seats {
        &self.unit.seats
    }

    /// The most lanes that one fetch can have.
    #[must_use]
    pub fn most_active(&self) -> usize {
        self.unit.lanes.len().min(self.unit.seats.width())
    }

    /// The static program.
    #[must_use]
    pub fn program(&self) -> &'a Program {
        self.program
    }

    /// What was read of the lanes beforehand.
    #[must_use]
    pub fn survey(&self) -> &'a Survey<'a> {
        self.survey
    }
}

/// A warp's replay that is over.
pub struct Ended<'a> {
    /// The warp.
    pub warp: Warp<'a>,
    /// The engine's counts.
    pub counts: &'a Counts,
    /// How it ended.
    pub end: &'a End,
}

/// A result of a measure, of one warp or of several.
pub trait Measured: Any + Clone + fmt::Debug + Send + Sync {
    /// Adds that of another warp.
    fn merge(&mut self, other: &Self);
}

/// A [`Measured`] result, whatever its type.
trait AnyMeasured: Any + fmt::Debug + Send + Sync {
    fn copy(&self) -> Box<dyn AnyMeasured>;
    fn merge_any(&mut self, other: &dyn AnyMeasured);
}

impl<T: Measured> AnyMeasured for T {
    fn copy(&self) -> Box<dyn AnyMeasured> {
        Box::new(self.clone())
    }

    fn merge_any(&mut self, other: &dyn AnyMeasured) {
        let other: &dyn Any = other;
        if let Some(other) = other.downcast_ref() {
            self.merge(other);
        }
    }
}

/// What a metric found on its warp.
#[derive(Debug)]
pub struct Finding(Option<Box<dyn AnyMeasured>>);

impl Finding {
    /// Of a metric that only judges, or writes elsewhere.
    #[must_use]
    pub fn nothing() -> Finding {
        Finding(None)
    }

    /// Of a metric that has a result.
    #[must_use]
    pub fn new(result: impl Measured) -> Finding {
        Finding(Some(Box::new(result)))
    }
}

/// Results by their type, each merged from those of all warps.
#[derive(Debug, Default)]
pub struct Findings(Vec<Box<dyn AnyMeasured>>);

impl Clone for Findings {
    fn clone(&self) -> Findings {
        Findings(self.0.iter().map(|result| (**result).copy()).collect())
    }
}

impl Findings {
    /// The result of this type; none where it was not asked for.
    #[must_use]
    pub fn get<T: Measured>(&self) -> Option<&T> {
        self.0.iter().find_map(|result| {
            let result: &dyn Any = &**result;
            result.downcast_ref()
        })
    }

    /// Forgets the result of this type.
    pub fn forget<T: Measured>(&mut self) {
        self.0.retain(|result| {
            let result: &dyn Any = &**result;
            !result.is::<T>()
        });
    }

    /// Adds what was found on one more warp.
    pub(crate) fn add(&mut self, finding: &Finding) {
        let Some(more) = &finding.0 else { return };
        let kind = |result: &dyn AnyMeasured| {
            let result: &dyn Any = result;
            result.type_id()
        };
        match self.0.iter_mut().find(|result| kind(&***result) == kind(&**more)) {
            Some(sum) => sum.merge_any(&**more),
            None => self.0.push((**more).copy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Sum(u64);

    impl Measured for Sum {
        fn merge(&mut self, other: &Sum) {
            self.0 += other.0;
        }
    }

    #[derive(Clone, Debug, PartialEq)]
    struct Most(u64);

    impl Measured for Most {
        fn merge(&mut self, other: &Most) {
            self.0 = self.0.max(other.0);
        }
    }

    #[test]
    fn findings_of_one_type_are_merged_and_found_by_it() {
        let mut all = Findings::default();
        for n in [2, 5, 3] {
            all.add(&Finding::new(Sum(n)));
            all.add(&Finding::new(Most(n)));
            all.add(&Finding::nothing());
        }
        let copy = all.clone();
        assert_eq!((copy.get(), copy.get()), (Some(&Sum(10)), Some(&Most(5))));
        assert_eq!(Findings::default().get::<Sum>(), None);
    }
}
