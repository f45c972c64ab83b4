//! What is shared with one process: slots and their buffers, lookup tables, code caches.

pub mod mapper;
pub mod space;
pub mod tables;
