//! Call paths: through which functions a lane reached the place where it stands.
//!
//! A path is given by the first pcs of its functions, the region's first. A function that calls itself, directly or
//! through others, is on a path once: entering it again goes back to where it was entered first, so that recursion
//! makes no endless list of paths. Where it is asked for, the instruction that called is a part of the path, too.
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
    nodes: Vec<Node>,
    known: FxHashMap<Node, PathId>,
}

/// The last function of a path, as it was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    caller: Option<PathId>,
    called_at: Option<Pc>,
    entry: Pc,
}

/// A function of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The instruction of the function before it that called it; none where that is not known, or was not asked for
    /// ([`Causes::by_call`](super::Causes::by_call)).
    pub called_at: Option<Pc>,
    /// Its first pc.
    pub entry: Pc,
}

impl CallPaths {
    /// The path that goes on from `caller`, at that instruction, into the function that begins at `entry`.
    pub(crate) fn enter(&mut self, caller: Option<PathId>, called_at: Option<Pc>, entry: Pc) -> PathId {
        let node = Node { caller, called_at, entry };
        if let Some(known) = self.known.get(&node) {
            return *known;
        }
        let mut above = caller;
        while let Some(path) = above {
            let before = self.nodes[path.0 as usize];
            if before.entry == entry {
                self.known.insert(node, path);
                return path;
            }
            above = before.caller;
        }
        let new = PathId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.known.insert(node, new);
        new
    }

    /// The path's functions, the outermost first.
    #[must_use]
    pub fn functions(&self, path: PathId) -> Vec<Entered> {
        let mut functions = Vec::new();
        let mut next = Some(path);
        while let Some(id) = next {
            let Node { caller, called_at, entry } = self.nodes[id.0 as usize];
            functions.push(Entered { called_at, entry });
            next = caller;
        }
        functions.reverse();
        functions
    }

    /// The first pcs of the path's functions, the outermost first.
    #[must_use]
    pub fn entries(&self, path: PathId) -> Vec<Pc> {
        self.functions(path).into_iter().map(|function| function.entry).collect()
    }

    /// Takes over the paths of another; returns by its numbers what they are called here.
    pub(crate) fn add(&mut self, other: &CallPaths) -> Vec<PathId> {
        let mut names: Vec<PathId> = Vec::with_capacity(other.nodes.len());
        for node in &other.nodes {
            // A caller has a smaller number than those that it calls.
            let caller = node.caller.map(|c| names[c.0 as usize]);
            names.push(self.enter(caller, node.called_at, node.entry));
        }
        names
    }
}

/// A lane's frames.
#[derive(Clone, Default)]
pub(crate) struct Frames {
    /// The path of each, the outermost first.
    paths: Vec<PathId>,
    /// The instruction that the lane ran last, where calls are a part of paths.
    ran: Option<Pc>,
}

impl Frames {
    /// Deeper frames than this are taken for the last of these, so that a damaged trace cannot ask for endless memory.
    pub(crate) const MOST: usize = 1 << 16;

    /// The lane runs an instruction at `pc`, at this call level (1 and up). Returns its path.
    #[inline]
    pub(crate) fn at(&mut self, level: u32, pc: Pc, paths: &mut CallPaths) -> PathId {
        let level = (level as usize).clamp(1, Frames::MOST);
        if self.paths.len() > level {
            self.paths.truncate(level);
        }
        while self.paths.len() < level {
            let caller = self.paths.last().copied();
            self.paths.push(paths.enter(caller, self.ran.take().filter(|_| caller.is_some()), pc));
        }
        self.paths[level - 1]
    }

    /// The lane has run this instruction last.
    #[inline]
    pub(crate) fn ran(&mut self, pc: Pc) {
        self.ran = Some(pc);
    }

    /// The paths of its frames above this level.
    pub(crate) fn above(&self, level: u32) -> &[PathId] {
        self.paths.get(level as usize..).unwrap_or_default()
    }

    /// The lane, whose path [`Frames::at`] just gave, has entered these functions above it.
    pub(crate) fn push(&mut self, paths: &[PathId]) {
        self.paths.extend_from_slice(paths);
    }

    /// A lane of one frame, of this path.
    pub(crate) fn of(path: PathId) -> Frames {
        Frames { paths: vec![path], ran: None }
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
    fn where_instructions_are_told_calls_of_one_function_are_apart() {
        let (mut paths, mut frames) = (CallPaths::default(), Frames::default());
        let (a, b) = (Pc(0x10), Pc(0x20));
        let called = [0x12, 0x16, 0x12].map(|at| {
            frames.at(1, a, &mut paths);
            frames.ran(Pc(at));
            let path = frames.at(2, b, &mut paths);
            frames.ran(Pc(0x22));
            path
        });
        let entered = |at| [Entered { called_at: None, entry: a }, Entered { called_at: Some(Pc(at)), entry: b }];
        assert_eq!(called.map(|path| paths.functions(path)), [entered(0x12), entered(0x16), entered(0x12)]);
        assert_eq!(called[0], called[2]);
    }

    #[test]
    fn paths_of_two_warps_get_one_name_each() {
        let (mut one, mut two) = (CallPaths::default(), CallPaths::default());
        let a = one.enter(None, None, Pc(1));
        let b = one.enter(Some(a), None, Pc(2));
        let other = two.enter(None, None, Pc(3));
        let a_too = two.enter(None, None, Pc(1));
        let b_too = two.enter(Some(a_too), None, Pc(2));
        let names = one.add(&two);
        assert_eq!([a_too, b_too].map(|p| names[p.0 as usize]), [a, b]);
        assert_eq!(one.entries(names[other.0 as usize]), [Pc(3)]);
    }
}
