//! Results as people and programs read them: tables, sentences, JSON.

pub(crate) mod fit;
pub mod json;
pub mod listing;
pub mod table;
pub mod unlike;
