//! The parts of a module: functions, blocks, instructions, values, and their properties.

pub(super) mod attributes;
pub(super) mod block;
pub(super) mod call;
pub(super) mod comparison;
pub(super) mod debug;
pub(super) mod function;
pub(super) mod instruction;
pub(super) mod marker;
pub(super) mod memory;
pub(super) mod module;
pub(super) mod value;
