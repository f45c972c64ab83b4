//! Translations of a program are remembered from run to run: read when it begins, added when its memory goes, and
//! written at the end of the run.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Session;
use super::processes::AddressSpace;
use super::thread::SpaceId;
use crate::engine::TraceOptions;
use crate::kernel::ptrace::Tid;
use crate::remembered::{Folder, Key, Remember, Remembered};

/// What is remembered of the programs of this run.
pub struct Recollections {
    folder: Option<Folder>,
    /// What decides which superblocks there are, besides the program.
    options: String,
    /// By the build id of the program.
    programs: FxHashMap<Vec<u8>, Rc<Remembered>>,
}

impl Recollections {
    /// Those of a run with these options. Nothing is read yet.
    #[must_use]
    pub fn new(options: &TraceOptions) -> Recollections {
        let TraceOptions { remember, memory, window, .. } = options;
        let (version, bmi2) = (env!("CARGO_PKG_VERSION"), std::arch::is_x86_feature_detected!("bmi2"));
        Recollections {
            folder: if *remember == Remember::Nowhere { None } else { Folder::open(remember) },
            options: format!("{version}, memory {memory}, bmi2 {bmi2}, {window:?}"),
            programs: FxHashMap::default(),
        }
    }

    fn key(&self, program: &[u8]) -> Key {
        Key { program: program.to_vec(), options: self.options.clone() }
    }

    /// What is remembered of this program.
    fn of(&mut self, program: &[u8]) -> Option<Rc<Remembered>> {
        let key = self.key(program);
        let folder = self.folder.as_ref()?;
        Some(self.programs.entry(key.program.clone()).or_insert_with(|| Rc::new(folder.read(&key))).clone())
    }

    /// Adds what ran in this memory.
    fn add(&mut self, space: &mut AddressSpace) {
        let Some(program) = space.translator.code.modules.main().and_then(|main| main.build_id.as_ref()) else {
            return;
        };
        let Some(remembered) = self.programs.get_mut(program) else { return };
        // So that nothing has to be copied, unless other memory still recalls it.
        space.translator.recall_nothing();
        space.translator.tell_what_ran(space.expander.met(), Rc::make_mut(remembered));
    }

    /// The run is over.
    pub fn write(mut self) {
        let Some(folder) = self.folder.take() else { return };
        for (program, mut remembered) in std::mem::take(&mut self.programs) {
            folder.write(&self.key(&program), Rc::make_mut(&mut remembered));
        }
    }
}

impl Session<'_> {
    /// A program begins in a process, and its modules are known.
    pub(super) fn recall(&mut self, process: Tid) {
        let limits = self.options.translation;
        let Ok(translator) = self.translator_mut(process) else { return };
        let Some(program) = translator.code.modules.main().and_then(|main| main.build_id.clone()) else { return };
        if let Some(remembered) = self.recollections.of(&program)
            && let Ok(translator) = self.translator_mut(process)
        {
            translator.recall(remembered, limits);
        }
    }

    /// The translations of this memory are about to be forgotten.
    pub(super) fn remember(&mut self, space: SpaceId) {
        if let Some(space) = self.processes.space_mut(space) {
            self.recollections.add(space);
        }
    }

    /// A process is about to go, and its memory with it, unless others run in it.
    pub(super) fn remember_last(&mut self, process: Tid) {
        if let Some(space) = self.processes.last_in(process) {
            self.remember(space);
        }
    }
}
