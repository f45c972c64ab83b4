//! The program's code: as it is read, the files it comes from, and where recording may begin or end.

pub mod code_files;
mod code_pages;
pub mod gates;
pub mod program_code;
