//! The trace: its records, its block table, and how both are written, read and recovered.
