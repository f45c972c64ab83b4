//! From a raw trace to lanes: which part of each thread is replayed, and how locks and barriers count.
