//! The function to analyse, independent of any compiler: blocks, values, and what makes each value.

use std::fmt;
use std::sync::Arc;

use flowgraph::{Builder as GraphBuilder, Graph, NodeId};

use crate::Fact;

/// A value, or an instruction without one (a store): a dense index, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    /// The number as an index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kind of a value, as far as the analysis can say something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer or an address of so many bits, 1 to 64: facts about it hold modulo 2 to that power.
    Bits(u8),
    /// Anything else (floating point, vectors, wide integers, structures, nothing): uniform or divergent only.
    Opaque,
}

/// What an operation promises about its integers, as LLVM's flags do: a wrap would make the result poison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Promise {
    /// The exact result fits, signed (`nsw`).
    pub signed: bool,
    /// The exact result fits, unsigned (`nuw`).
    pub unsigned: bool,
}

/// An operation with two integer operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Shift to the left.
    Shl,
    /// Logical shift to the right.
    Lshr,
    /// Arithmetic shift to the right.
    Ashr,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise or of operands that have no bit in common: a sum.
    DisjointOr,
    /// Bitwise exclusive or.
    Xor,
    /// Unsigned quotient.
    Udiv,
    /// Signed quotient.
    Sdiv,
    /// Unsigned remainder.
    Urem,
    /// Signed remainder.
    Srem,
}

/// How two integers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predicate {
    /// Equal, or not equal.
    Equality {
        /// Whether the comparison is true for equal operands.
        equal: bool,
    },
    /// An order.
    Order {
        /// Whether the operands are taken with their sign.
        signed: bool,
        /// Whether the comparison is true for a left operand that is less.
        less: bool,
        /// Whether it is true for equal operands.
        or_equal: bool,
    },
}

/// How an integer of one width becomes one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// The low bits.
    Truncate(Promise),
    /// Extended with zeros; `non_negative` promises that the operand's highest bit is zero.
    Zero {
        /// The promise (`nneg`).
        non_negative: bool,
    },
    /// Extended with the sign.
    Sign,
}

/// The memory that a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nobody writes it while the threads run: a load from one address gives one value, whenever it happens.
    Stable,
    /// Threads may write it.
    Shared,
    /// Each thread has its own (local memory in CUDA, private memory in OpenCL): one address holds many values.
    Private,
    /// A record that a thread got when it was started, filled before that and not written since: what lies there is
    /// known, whatever the address.
    Record(Fact),
}

/// The result of a call, according to a summary of the callee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Return {
    /// Nothing is known.
    Divergent,
    /// The same for all threads that pass the same arguments.
    Function,
    /// The same for all threads that call together, whatever they pass.
    Uniform,
    /// A fact in which symbols are arguments: see [`Fact::of_argument`].
    Fact(Fact),
}

/// What makes a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A number, taken modulo 2 to the width.
    Number(i64),
    /// A value that is the same for all threads, but unknown: a kernel's parameter, the address of a global.
    Uniform,
    /// A value that may be anything: undefined, poison, or never computed.
    Undefined,
    /// A value about which nothing is known.
    Divergent,
    /// `scale` times the thread's number in a dimension (0 to 2).
    Thread {
        /// The dimension, 0 for programs that number their threads in a row.
        dimension: u8,
        /// The factor.
        scale: i64,
    },
    /// A parameter about which this is known; [`crate::Form::UNKNOWN`] stands for unknown uniform coefficients.
    Given(Fact),
    /// The same value under another name.
    Copy(ValueId),
    /// Integer arithmetic.
    Binary(Binary, ValueId, ValueId, Promise),
    /// An integer of another width; the operand's kind is its width before.
    Cast(Cast, ValueId),
    /// A comparison of integers or addresses.
    Compare(Predicate, ValueId, ValueId),
    /// The second operand if the first is true, else the third.
    Select(ValueId, ValueId, ValueId),
    /// An address: a base, plus each index (taken with its sign) times its stride in bytes, plus a distance.
    Address {
        /// What is counted from.
        base: ValueId,
        /// Indices and strides.
        terms: Vec<(ValueId, i64)>,
        /// The part that is a number.
        offset: i64,
    },
    /// A load.
    Load(ValueId, Memory),
    /// A store: address, then value. It makes no value.
    Store(ValueId, ValueId),
    /// An atomic read and write at the address that comes first.
    Atomic(Vec<ValueId>),
    /// Any other operation whose result depends on its operands alone.
    General(Vec<ValueId>),
    /// A call with its arguments.
    Call(Return, Vec<ValueId>),
    /// What arrives from each predecessor.
    Phi(Vec<(NodeId, ValueId)>),
}

impl Op {
    /// All operands in order, with the block at whose end the value is read, where that is not the operation's own.
    pub(crate) fn operands_mut(&mut self) -> Vec<(&mut ValueId, Option<NodeId>)> {
        match self {
            Op::Number(_) | Op::Uniform | Op::Undefined | Op::Divergent | Op::Thread { .. } | Op::Given(_) => {
                Vec::new()
            }
            Op::Copy(a) | Op::Cast(_, a) | Op::Load(a, _) => vec![(a, None)],
            Op::Binary(_, a, b, _) | Op::Compare(_, a, b) | Op::Store(a, b) => vec![(a, None), (b, None)],
            Op::Select(a, b, c) => vec![(a, None), (b, None), (c, None)],
            Op::Address { base, terms, .. } => {
                std::iter::once(base).chain(terms.iter_mut().map(|(v, _)| v)).map(|v| (v, None)).collect()
            }
            Op::Atomic(all) | Op::General(all) | Op::Call(_, all) => all.iter_mut().map(|v| (v, None)).collect(),
            Op::Phi(all) => all.iter_mut().map(|(from, v)| (v, Some(*from))).collect(),
        }
    }

    /// Calls `see` with each operand in order.
    pub(crate) fn each_operand(&self, mut see: impl FnMut(ValueId)) {
        match self {
            Op::Number(_) | Op::Uniform | Op::Undefined | Op::Divergent | Op::Thread { .. } | Op::Given(_) => {}
            Op::Copy(a) | Op::Cast(_, a) | Op::Load(a, _) => see(*a),
            Op::Binary(_, a, b, _) | Op::Compare(_, a, b) | Op::Store(a, b) => [a, b].into_iter().for_each(|v| see(*v)),
            Op::Select(a, b, c) => [a, b, c].into_iter().for_each(|v| see(*v)),
            Op::Address { base, terms, .. } => {
                see(*base);
                terms.iter().for_each(|(v, _)| see(*v));
            }
            Op::Atomic(all) | Op::General(all) | Op::Call(_, all) => all.iter().for_each(|v| see(*v)),
            Op::Phi(all) => all.iter().for_each(|(_, v)| see(*v)),
        }
    }

    /// The address that a load, a store or an atomic goes to.
    #[must_use]
    pub fn address(&self) -> Option<ValueId> {
        match self {
            Op::Load(a, _) | Op::Store(a, _) => Some(*a),
            Op::Atomic(all) => all.first().copied(),
            _ => None,
        }
    }
}

/// What decides which successor a block with more than one goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// There is one way, or none.
    None,
    /// This value.
    By(ValueId),
    /// Something unknown: threads may part here.
    Unknown,
}

/// A value: what makes it, where, and what it is.
#[derive(Clone, Debug)]
pub struct Value {
    /// The block in which it is made; none for parameters and constants.
    pub block: Option<NodeId>,
    /// What it is.
    pub kind: Kind,
    /// What makes it.
    pub op: Op,
    /// Its name where texts show it; a number stands for an empty one.
    pub name: String,
}

/// A function in SSA form. Blocks are the nodes of a graph; block 0 is the entry.
#[derive(Clone, Debug)]
pub struct Function {
    graph: Graph,
    values: Vec<Value>,
    decisions: Vec<Decision>,
    /// Values by block, in order.
    contents: Vec<Vec<ValueId>>,
    /// By block: whether control must not reach its end: after `unreachable` there is no way out.
    dead_ends: Vec<bool>,
}

impl Function {
    /// The control flow.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// A value.
    ///
    /// # Panics
    /// When it is of another function.
    #[must_use]
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// All values in the order in which they were added.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// What decides where control goes from a block.
    #[must_use]
    pub fn decision(&self, block: NodeId) -> Decision {
        self.decisions[block.index()]
    }

    /// The values of a block in order.
    #[must_use]
    pub fn contents(&self, block: NodeId) -> &[ValueId] {
        &self.contents[block.index()]
    }

    /// Whether control must not reach the end of a block.
    pub(crate) fn is_dead_end(&self, block: NodeId) -> bool {
        self.dead_ends[block.index()]
    }

    /// The name of a value as texts show it.
    #[must_use]
    pub fn name(&self, id: ValueId) -> String {
        let value = self.value(id);
        match value.op {
            Op::Number(n) => n.to_string(),
            _ if value.name.is_empty() => format!("v{}", id.0),
            _ => value.name.clone(),
        }
    }
}

/// Makes a [`Function`].
///
/// ```
/// use divergence::{Analysis, Binary, Builder, Class, Kind, Op, Options, Promise};
///
/// let mut builder = Builder::new(1);
/// let tid = builder.free(Kind::Bits(32), Op::Thread { dimension: 0, scale: 1 }, "tid");
/// let four = builder.free(Kind::Bits(32), Op::Number(4), "");
/// let entry = flowgraph::NodeId(0);
/// let product = builder.add(entry, Kind::Bits(32), Op::Binary(Binary::Mul, tid, four, Promise::default()), "x");
/// let function = builder.build();
/// let analysis = Analysis::of(&function, &Options::default());
/// assert_eq!(analysis.class(product), Class::Affine);
/// assert_eq!(analysis.fact(product).to_string(), "4·tid");
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    graph: GraphBuilder,
    values: Vec<Value>,
    decisions: Vec<Decision>,
    contents: Vec<Vec<ValueId>>,
    dead_ends: Vec<bool>,
}

impl Builder {
    /// Starts a function of so many blocks, without values and edges.
    ///
    /// # Panics
    /// When there are no blocks, or 2^32 - 1 or more.
    #[must_use]
    pub fn new(blocks: usize) -> Builder {
        assert!(blocks > 0, "a function has an entry");
        Builder {
            graph: GraphBuilder::new(blocks),
            values: Vec::new(),
            decisions: vec![Decision::None; blocks],
            contents: vec![Vec::new(); blocks],
            dead_ends: vec![false; blocks],
        }
    }

    /// Adds an edge between blocks.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn edge(&mut self, from: NodeId, to: NodeId) -> &mut Builder {
        self.graph.edge(from, to);
        self
    }

    /// Sets what decides where control goes from a block.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn decide(&mut self, block: NodeId, by: Decision) -> &mut Builder {
        self.decisions[block.index()] = by;
        self
    }

    /// Marks that control must not reach the end of a block.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn dead_end(&mut self, block: NodeId) -> &mut Builder {
        self.dead_ends[block.index()] = true;
        self
    }

    /// Adds a value that belongs to no block: a parameter, a constant.
    pub fn free(&mut self, kind: Kind, op: Op, name: impl Into<String>) -> ValueId {
        self.push(None, kind, op, name.into())
    }

    /// Adds a value at the end of a block. Operands may be added later.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn add(&mut self, block: NodeId, kind: Kind, op: Op, name: impl Into<String>) -> ValueId {
        let id = self.push(Some(block), kind, op, name.into());
        self.contents[block.index()].push(id);
        id
    }

    fn push(&mut self, block: Option<NodeId>, kind: Kind, op: Op, name: String) -> ValueId {
        if let Kind::Bits(bits) = kind {
            assert!((1..=64).contains(&bits), "an integer of {bits} bits is no Kind::Bits");
        }
        let id = ValueId(u32::try_from(self.values.len()).expect("fewer than 2^32 values"));
        self.values.push(Value { block, kind, op, name });
        id
    }

    /// Replaces the definition of a value: for phis whose operands come later.
    ///
    /// # Panics
    /// When there is no such value.
    pub fn set(&mut self, id: ValueId, op: Op) {
        self.values[id.index()].op = op;
    }

    /// The function.
    ///
    /// # Panics
    /// When an operand or the value of a decision was never added.
    #[must_use]
    pub fn build(self) -> Arc<Function> {
        let count = self.values.len() as u32;
        for value in &self.values {
            value.op.each_operand(|v| assert!(v.0 < count, "an operand that was never added"));
        }
        for decision in &self.decisions {
            assert!(!matches!(decision, Decision::By(v) if v.0 >= count), "a decision by what was never added");
        }
        Arc::new(Function {
            graph: self.graph.build(NodeId(0)),
            values: self.values,
            decisions: self.decisions,
            contents: self.contents,
            dead_ends: self.dead_ends,
        })
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "×",
            Binary::Shl => "<<",
            Binary::Lshr => ">>u",
            Binary::Ashr => ">>",
            Binary::And => "&",
            Binary::Or => "|",
            Binary::DisjointOr => "|+",
            Binary::Xor => "^",
            Binary::Udiv => "/u",
            Binary::Sdiv => "/",
            Binary::Urem => "%u",
            Binary::Srem => "%",
        })
    }
}
