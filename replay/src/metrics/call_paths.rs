//! Call paths: through which functions a lane reached the place where it stands.
//!
//! A path is given by the first pcs of its functions, the region's first. A function that calls itself, directly or
//! through others, is on a path once: entering it again goes back to where it was entered first, so that recursion
//! makes no endless list of paths.
//!
//! Worked example: main-loop `a` calls `b`, which calls `b` and then `c`: the paths are a, a b, and a b c.

use rustc_hash::FxHashMap;
use trace_format::Pc;

/// A call path of a [`CallPaths`], numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

/// Call paths, each once, as a tree.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CallPaths {
    /// By path: the path of the caller, and the function's first pc.
    nodes: Vec<(Option<PathId>, Pc)>,
    known: FxHashMap<(Option<PathId>, Pc), PathId>,
}

impl CallPaths {
    /// The path that goes on from `caller` into the function that begins at `entry`.
    pub(crate) fn enter(&mut self, caller: Option<PathId>, entry: Pc) -> PathId {
        if let Some(known) = self.known.get(&(caller, entry)) {
            return *known;
        }
        let mut above = caller;
        while let Some(path) = above {
            let (next, pc) = self.nodes[path.0 as usize];
            if pc == entry {
                self.known.insert((caller, entry), path);
                return path;
            }
            above = next;
        }
        let new = PathId(self.nodes.len() as u32);
        self.nodes.push((caller, entry));
        self.known.insert((caller, entry), new);
        new
    }

    /// The first pcs of the path's functions, the outermost first.
    #[must_use]
    pub fn entries(&self, path: PathId) -> Vec<Pc> {
        let mut entries = Vec::new();
        let mut next = Some(path);
        while let Some(id) = next {
            let (caller, entry) = self.nodes[id.0 as usize];
            entries.push(entry);
            next = caller;
        }
        entries.reverse();
        entries
    }

    /// Takes over the paths of another; returns by its numbers what they are called here.
    pub(crate) fn add(&mut self, other: &CallPaths) -> Vec<PathId> {
        let mut names: Vec<PathId> = Vec::with_capacity(other.nodes.len());
        for (caller, entry) in &other.nodes {
            // A caller has a smaller number than those that it calls.
            let caller = caller.map(|c| names[c.0 as usize]);
            names.push(self.enter(caller, *entry));
        }
        names
    }
}

/// A lane's frames: the path of each, the outermost first.
#[derive(Clone, Default)]
pub(crate) struct Frames(Vec<PathId>);

impl Frames {
    /// Deeper frames than this are taken for the last of these, so that a damaged trace cannot ask for endless memory.
    pub(crate) const MOST: usize = 1 << 16;

    /// The lane runs an instruction at `pc`, at this call level (1 and up). Returns its path.
    #[inline]
    pub(crate) fn at(&mut self, level: u32, pc: Pc, paths: &mut CallPaths) -> PathId {
        let level = (level as usize).clamp(1, Frames::MOST);
        if self.0.len() > level {
            self.0.truncate(level);
        }
        while self.0.len() < level {
            self.0.push(paths.enter(self.0.last().copied(), pc));
        }
        self.0[level - 1]
    }

    /// The paths of its frames above this level.
    pub(crate) fn above(&self, level: u32) -> &[PathId] {
        self.0.get(level as usize..).unwrap_or_default()
    }

    /// The lane, whose path [`Frames::at`] just gave, has entered these functions above it.
    pub(crate) fn push(&mut self, paths: &[PathId]) {
        self.0.extend_from_slice(paths);
    }

    /// A lane of one frame, of this path.
    pub(crate) fn of(path: PathId) -> Frames {
        Frames(vec![path])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_calls_itself_is_on_the_path_once() {
        let (mut paths, mut frames) = (CallPaths::default(), Frames::default());
        let (a, b, c) = (Pc(0x10), Pc(0x20), Pc(0x30));
        let seen = [(1, a), (2, b), (3, b), (4, c), (3, Pc(0x25)), (1, Pc(0x15)), (2, c)];
        let seen = seen.map(|(level, pc)| frames.at(level, pc, &mut paths)).map(|p| paths.entries(p));
        assert_eq!(seen, [vec![a], vec![a, b], vec![a, b], vec![a, b, c], vec![a, b], vec![a], vec![a, c]]);
    }

    #[test]
    fn paths_of_two_warps_get_one_name_each() {
        let (mut one, mut two) = (CallPaths::default(), CallPaths::default());
        let a = one.enter(None, Pc(1));
        let b = one.enter(Some(a), Pc(2));
        let other = two.enter(None, Pc(3));
        let a_too = two.enter(None, Pc(1));
        let b_too = two.enter(Some(a_too), Pc(2));
        let names = one.add(&two);
        assert_eq!([a_too, b_too].map(|p| names[p.0 as usize]), [a, b]);
        assert_eq!(one.entries(names[other.0 as usize]), [Pc(3)]);
    }
}
