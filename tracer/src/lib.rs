//! Runs a program and records every thread's instruction stream.
