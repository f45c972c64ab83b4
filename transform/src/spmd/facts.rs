//! What the analysis says about a function.

use divergence::{Analysis, Class, Fact, ValueId};
use flowgraph::NodeId;

use super::body::Body;
use crate::flow::Flow;
use crate::llvm::{Block, Function, Instruction, Value};

/// What is known about a function.
pub struct FunctionFacts<'m> {
    pub(super) body: Body<'m>,
    pub(super) analysis: Analysis,
    pub(super) is_run_by_threads: bool,
    /// Whether calls in this module are all that runs it.
    pub(super) is_only_called: bool,
}

impl<'m> FunctionFacts<'m> {
    /// The function.
    #[must_use]
    pub fn function(&self) -> Function<'m> {
        self.body.function
    }

    /// The analysis of its abstract form.
    #[must_use]
    pub fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// Its control flow; blocks have the numbers that the abstract form's have.
    #[must_use]
    pub fn flow(&self) -> &Flow<'m> {
        &self.body.flow
    }

    /// Whether threads are known to run it: it is a start routine, a region or a kernel, has a thread's number, or is
    /// called by such a function.
    #[must_use]
    pub fn is_run_by_threads(&self) -> bool {
        self.is_run_by_threads
    }

    /// The value of the abstract form that stands for one of the IR; none where nothing uses it.
    #[must_use]
    pub fn id(&self, value: Value<'m>) -> Option<ValueId> {
        self.body.values.get(&value).copied()
    }

    /// The instruction that makes a value of the abstract form.
    #[must_use]
    pub fn instruction(&self, id: ValueId) -> Option<Instruction<'m>> {
        self.body.instructions.get(&id).copied()
    }

    /// What is known about a value where it is made.
    #[must_use]
    pub fn fact(&self, value: Value<'m>) -> Option<Fact> {
        self.id(value).map(|id| self.analysis.fact(id))
    }

    /// Its class where it is made.
    #[must_use]
    pub fn class(&self, value: Value<'m>) -> Option<Class> {
        self.fact(value).map(|fact| fact.class())
    }

    /// The class of what a block's branch decides by; none where there is one way on.
    #[must_use]
    pub fn branch(&self, block: Block<'m>) -> Option<Class> {
        self.body.flow.find(block).and_then(|node: NodeId| self.analysis.branch(node))
    }

    /// The address that a load, a store or an atomic goes to, where it is used.
    #[must_use]
    pub fn address(&self, access: Instruction<'m>) -> Option<Fact> {
        self.id(access.as_value()).and_then(|id| self.analysis.address(id))
    }
}
