//! One translation: from the program's instructions to code that records which path it took.

pub mod assembler;
pub mod builder;
pub mod expansions;
pub mod handler_code;
pub mod loop_code;
pub mod outside;
mod packed;
pub mod plan;
mod rewrite;
pub mod route;
pub mod superblock;
pub mod values;
