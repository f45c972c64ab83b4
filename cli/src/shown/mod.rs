//! What users read: tables, verdicts, rows, pages.

pub(crate) mod dependences;
pub(crate) mod events;
pub(crate) mod items;
pub(crate) mod page;
pub(crate) mod proved;
pub(crate) mod regions;
pub(crate) mod rows;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod verdict;
pub(crate) mod verdict_page;
