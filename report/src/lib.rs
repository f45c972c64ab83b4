//! Charts made from the rows that replay writes.
