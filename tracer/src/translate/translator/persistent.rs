//! Translations of earlier runs: all of them are made at once when the first is needed, and what ran in this run is
//! noted at its end.

use std::rc::Rc;

use super::Translator;
use crate::engine::TranslationLimits;
use crate::kernel::ptrace::Tid;
use crate::remembered::{COMPARED, Head, MAX_ROUTE, Place, Remembered};
use crate::translate::addresses::ProgramPc;
use crate::translate::code::plan::Source;
use crate::translate::code::route::Route;
use crate::translate::code::superblock::{MAX_HOT_INSTRUCTIONS, Superblock};
use crate::translate::remote::Result;

const _: () = assert!(MAX_ROUTE == MAX_HOT_INSTRUCTIONS + 1);

/// What is left to be translated.
#[derive(Clone)]
pub struct Recalled {
    from: Rc<Remembered>,
    /// Whether each module is still to be looked at.
    left: Vec<bool>,
    /// The limits for code and bookkeeping made from what is remembered.
    most: [u64; 2],
}

impl Translator {
    /// This is known of former runs. No more than three quarters of the limits are taken for it.
    pub fn recall(&mut self, from: Rc<Remembered>, limits: TranslationLimits) {
        let most = [limits.code, limits.bookkeeping].map(|limit| limit / 4 * 3);
        self.recalled = Some(Recalled { left: vec![true; from.modules().len()], from, most });
    }

    /// Nothing is to be recalled any more.
    pub fn recall_nothing(&mut self) {
        self.recalled = None;
    }

    /// Translates what is remembered of the module in which `pc` lies, the first time.
    pub(super) fn translate_recalled(&mut self, thread: Tid, pc: ProgramPc) -> Result<()> {
        let Some(recalled) = self.recalled.as_mut().filter(|recalled| recalled.left.contains(&true)) else {
            return Ok(());
        };
        let Some(home) = self.code.modules.home(pc.0) else { return Ok(()) };
        let Some(module) = recalled.from.find(home.build_id) else { return Ok(()) };
        if !std::mem::take(&mut recalled.left[module as usize]) {
            return Ok(());
        }
        let (bias, from, most) = (home.bias, recalled.from.clone(), recalled.most);
        let returns =
            from.modules()[module as usize].returns.iter().map(|offset| ProgramPc(bias.wrapping_add(*offset)));
        let returns: Vec<ProgramPc> = returns.filter(|pc| self.code.is_fixed(*pc)).collect();
        self.add_returns(&returns);
        let before = self.ahead.len();
        self.kept.reserve(from.modules()[module as usize].heads.len());
        for (&offset, head) in &from.modules()[module as usize].heads {
            let takes = self.takes();
            if (0..2).any(|kind| takes[kind] > most[kind]) {
                break;
            }
            let pc = ProgramPc(bias.wrapping_add(offset));
            if self.kept.heads.get(pc).is_some() || !self.is_unchanged(pc, head) {
                continue;
            }
            if let Some(route) = from.route(Place { module, offset }).and_then(|route| self.addresses(&from, &route)) {
                self.routes.recall(pc, route);
            }
            self.translate(thread, pc, head.looked_up)?;
            // What comes next is remembered as well, if it ran.
            self.ahead.truncate(before);
            self.made.recalled += 1;
        }
        Ok(())
    }

    /// Whether there are the bytes at `pc` that were there, in memory that shows a file and cannot be written.
    fn is_unchanged(&mut self, pc: ProgramPc, head: &Head) -> bool {
        let mut bytes = [0; COMPARED];
        self.code.is_fixed(pc) && {
            let available = self.code.fetch(pc, &mut bytes);
            head.is_at(&bytes[..available])
        }
    }

    /// The addresses of a route. None if some of it does not exist, or some of it can be written.
    fn addresses(&mut self, from: &Remembered, route: &[Place]) -> Option<Vec<ProgramPc>> {
        let (mut module, mut bias) = (u32::MAX, 0);
        let (mut pcs, mut page) = (Vec::with_capacity(route.len()), u64::MAX);
        for place in route {
            if place.module != module {
                module = place.module;
                bias = self.code.modules.bias_of(&from.modules().get(module as usize)?.build_id)?;
            }
            let pc = ProgramPc(bias.wrapping_add(place.offset));
            if pc.page() != page {
                page = pc.page();
                self.code.is_fixed(pc).then_some(())?;
            }
            pcs.push(pc);
        }
        Some(pcs)
    }

    /// Tells what was run: `met` are the paths of the records.
    pub fn tell_what_ran(&self, met: impl Iterator<Item = u32>, remembered: &mut Remembered) {
        let mut told = vec![false; self.kept.superblocks.len()];
        let mut homes = Homes { of: self, last: None };
        for path in met.filter_map(|number| self.path(number)) {
            let superblock = self.superblock(path.superblock);
            // What runs outside of the cache is in no translation.
            if std::mem::replace(&mut told[path.superblock as usize], true) || superblock.body.0 == 0 {
                continue;
            }
            let Some(place) = homes.place(superblock.head, remembered) else { continue };
            let head = Head::new(self.kept.heads.is_looked_up(superblock.head), bytes_in_a_row(superblock));
            let route = self.routes.from(superblock.head);
            let way =
                |route: Rc<Route>| route.pcs().map(|pc| homes.place(pc, remembered)).collect::<Option<Vec<Place>>>();
            let way = route.and_then(way).unwrap_or_default();
            remembered.ran(place, head, &way);
        }
        for &pc in &self.returned {
            if let Some(place) = homes.place(pc, remembered) {
                remembered.returned(place);
            }
        }
    }
}

/// Finds the places of addresses; most lie near the one before.
struct Homes<'a> {
    of: &'a Translator,
    /// The piece of code of the last one, the number of its module, and its bias.
    last: Option<(std::ops::Range<u64>, u32, u64)>,
}

impl Homes<'_> {
    fn place(&mut self, pc: ProgramPc, remembered: &mut Remembered) -> Option<Place> {
        if self.last.as_ref().is_none_or(|(code, ..)| !code.contains(&pc.0)) {
            let home = self.of.code.modules.home(pc.0)?;
            self.last = Some((home.code, remembered.find_or_add(home.build_id), home.bias));
        }
        self.last.as_ref().map(|&(_, module, bias)| Place { module, offset: pc.0.wrapping_sub(bias) })
    }
}

/// The first bytes of a superblock, as far as they lie in a row in the program.
fn bytes_in_a_row(superblock: &Superblock) -> &[u8] {
    let mut length = 0;
    for instruction in superblock.instructions() {
        if instruction.pc.0 != superblock.head.0 + length || length >= COMPARED as u64 {
            break;
        }
        length += u64::from(instruction.len);
    }
    &superblock.code()[..length as usize]
}
