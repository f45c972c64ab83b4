//! The gates of a process's code: where recording begins and ends.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::modules::ModuleMap;
use crate::switch::Switch;
use crate::translate::addresses::ProgramPc;
use crate::window::Gate;

/// The gates of a process, as its code is translated.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    /// Whether there can be any.
    any: bool,
    /// Whether markers are gates.
    pub with_markers: bool,
    /// Whether entering the window would change anything, and leaving it.
    heeds: [bool; 2],
    /// In functions.
    places: FxHashMap<ProgramPc, Gate>,
    /// Where functions may return to.
    returns: FxHashSet<ProgramPc>,
}

impl Gates {
    /// Whether there is none.
    pub fn are_none(&self) -> bool {
        !self.any
    }

    /// From now on gates are heeded as the switch says.
    pub fn follow(&mut self, switch: &Switch) {
        self.any = switch.has_gates();
        self.with_markers = switch.has_markers();
        self.heeds = [Gate::Start, Gate::Stop].map(|gate| switch.heeds(gate));
    }

    /// Modules have come or gone.
    pub fn modules_changed(&mut self, modules: &ModuleMap) {
        if self.any {
            self.places = modules.gates().into_iter().map(|(pc, gate)| (ProgramPc(pc), gate)).collect();
        }
    }

    /// The gate at an address with these bytes of code.
    pub fn at(&self, pc: ProgramPc, code: &[u8]) -> Option<Gate> {
        let in_function = self.places.get(&pc).copied();
        let returned_to = || self.returns.contains(&pc).then_some(Gate::Return);
        in_function.or_else(returned_to).or_else(|| Gate::marker(code).filter(|_| self.with_markers))
    }

    /// Whether reaching it would change anything.
    pub fn heeded(&self, gate: Gate) -> bool {
        match gate {
            Gate::Start => self.heeds[0],
            Gate::Stop => self.heeds[1],
            Gate::Function | Gate::Return | Gate::Begin | Gate::End => true,
        }
    }

    /// Those in functions.
    pub fn in_functions(&self) -> Vec<ProgramPc> {
        self.places.keys().copied().collect()
    }

    /// A call may return to this address, which is a gate from now on. Returns whether it was not one before.
    pub fn add_return(&mut self, pc: ProgramPc) -> bool {
        self.returns.insert(pc)
    }
}
