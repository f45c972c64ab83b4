//! The figure of a machine.

use super::spread::{FAR_APART, Models, Spread};

/// The figure of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name; none where a model was named.
    pub machine: Option<&'static str>,
    /// The model.
    pub model: String,
    /// The efficiency, by the model.
    pub efficiency: f64,
    /// The least that models of the machine say.
    pub least: f64,
    /// The most.
    pub most: f64,
    /// Whether more than one of its models was replayed.
    pub has_others: bool,
    /// Whether it was compared with what programs did on such a machine.
    pub is_compared: bool,
    /// The lanes of its warps.
    pub lanes: usize,
}

impl Figure {
    /// Whether its models are so far apart that they are a range.
    pub(super) fn is_apart(&self) -> bool {
        self.most - self.least > FAR_APART
    }

    /// What it is at most, where lanes wait for what lockstep does not order.
    pub(super) fn bound(&self) -> f64 {
        if self.is_apart() { self.most } else { self.efficiency }
    }

    /// Where a GPU's own figure lies; none for machines that were not compared with one.
    pub(super) fn spread(&self) -> Option<Spread> {
        let models = match (self.has_others, self.is_apart()) {
            (false, _) => Models::One,
            (true, false) => Models::Agree(self.least, self.most),
            (true, true) => Models::Apart(self.least, self.most),
        };
        self.is_compared.then(|| Spread::of(self.efficiency, models)).flatten()
    }
}
