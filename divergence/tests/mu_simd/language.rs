//! µ-SIMD, the language of the paper's figure 1, as text: an instruction a line, labels before a colon.
//!
//! ```text
//! bz v, l    bnz v, l    jump l    ↑a = v    v = ↓a    v ⃪ a + c    v = o + o'    v = o × o'    v = o ⊕ o'    v = ⊕ o
//! v = o      sync        stop
//! ```
//!
//! The atomic increment is written `v a= x + c`. ⊕ of two is one of `- < = % & >>`, of one `-` or `!`. A name that is
//! never assigned is a parameter, the same for all processing elements, as c in the paper's figure 2; `tid` is the
//! thread's identifier.

use std::collections::HashMap;

/// A variable: a place in each processing element's θ. Place 0 is `tid`.
pub type Variable = usize;

/// A variable or a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    Variable(Variable),
    Constant(i64),
}

/// ⊕ of two operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary {
    Sum,
    Product,
    Difference,
    Less,
    Equal,
    Remainder,
    And,
    Shift,
}

/// ⊕ of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    Minus,
    Not,
}

/// An instruction; places in the program are numbers of instructions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instruction {
    /// To this place where the variable is zero (else where it is not); on to the next instruction otherwise.
    Branch {
        zero: bool,
        by: Variable,
        to: usize,
    },
    Jump(usize),
    /// ↑address = value
    Store(Operand, Operand),
    Load(Variable, Operand),
    /// Adds the constant to the cell; the variable gets the new value.
    Atomic(Variable, Operand, i64),
    Binary(Variable, Binary, Operand, Operand),
    Unary(Variable, Unary, Operand),
    Copy(Variable, Operand),
    Sync,
    Stop,
}

impl Instruction {
    /// The variable that it assigns.
    pub fn assigns(self) -> Option<Variable> {
        match self {
            Instruction::Load(v, _)
            | Instruction::Atomic(v, ..)
            | Instruction::Binary(v, ..)
            | Instruction::Unary(v, ..)
            | Instruction::Copy(v, _) => Some(v),
            _ => None,
        }
    }

    /// Where control goes from place `at`.
    pub fn successors(self, at: usize) -> Vec<usize> {
        match self {
            Instruction::Branch { to, .. } if to == at + 1 => vec![to],
            Instruction::Branch { to, .. } => vec![at + 1, to],
            Instruction::Jump(to) => vec![to],
            Instruction::Stop => Vec::new(),
            _ => vec![at + 1],
        }
    }
}

/// A program.
pub struct Program {
    pub instructions: Vec<Instruction>,
    pub names: Vec<String>,
    pub labels: HashMap<String, usize>,
}

impl Program {
    /// Reads a program. It must end with `stop` or a jump.
    pub fn read(text: &str) -> Program {
        let (mut lines, mut labels) = (Vec::new(), HashMap::new());
        for line in text.lines() {
            let mut line = line.trim();
            while let Some((label, rest)) = line.split_once(':') {
                labels.insert(label.trim().to_owned(), lines.len());
                line = rest.trim();
            }
            if !line.is_empty() {
                lines.push(line);
            }
        }
        let mut reader = Reader { names: vec!["tid".to_owned()], labels };
        let instructions = lines.into_iter().map(|line| reader.instruction(line)).collect();
        Program { instructions, names: reader.names, labels: reader.labels }
    }

    /// Whether a variable is a parameter.
    pub fn is_parameter(&self, variable: Variable) -> bool {
        variable != 0 && !self.instructions.iter().any(|i| i.assigns() == Some(variable))
    }
}

struct Reader {
    names: Vec<String>,
    labels: HashMap<String, usize>,
}

impl Reader {
    fn variable(&mut self, name: &str) -> Variable {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    fn operand(&mut self, text: &str) -> Operand {
        text.parse().map_or_else(|_| Operand::Variable(self.variable(text)), Operand::Constant)
    }

    fn instruction(&mut self, line: &str) -> Instruction {
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
        let label = |name: &str| self.labels[name];
        match *words.as_slice() {
            ["sync"] => Instruction::Sync,
            ["stop"] => Instruction::Stop,
            ["jump", to] => Instruction::Jump(label(to)),
            [kind @ ("bz" | "bnz"), by, to] => {
                let to = label(to);
                Instruction::Branch { zero: kind == "bz", by: self.variable(by), to }
            }
            [v, "a=", address, "+", constant] => {
                Instruction::Atomic(self.variable(v), self.operand(address), constant.parse().expect("a constant"))
            }
            [to, "=", value] => match (to.strip_prefix('↑'), value.strip_prefix('↓')) {
                (Some(address), _) => Instruction::Store(self.operand(address), self.operand(value)),
                (_, Some(address)) => Instruction::Load(self.variable(to), self.operand(address)),
                _ => Instruction::Copy(self.variable(to), self.operand(value)),
            },
            [v, "=", operation @ ("-" | "!"), value] => {
                let operation = if operation == "-" { Unary::Minus } else { Unary::Not };
                Instruction::Unary(self.variable(v), operation, self.operand(value))
            }
            [v, "=", left, operation, right] => {
                let operation = match operation {
                    "+" => Binary::Sum,
                    "×" => Binary::Product,
                    "-" => Binary::Difference,
                    "<" => Binary::Less,
                    "=" => Binary::Equal,
                    "%" => Binary::Remainder,
                    "&" => Binary::And,
                    ">>" => Binary::Shift,
                    other => panic!("there is no operation {other}"),
                };
                Instruction::Binary(self.variable(v), operation, self.operand(left), self.operand(right))
            }
            _ => panic!("{line} is no instruction"),
        }
    }
}
