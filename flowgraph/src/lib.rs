//! Graphs of blocks: dominators, post-dominators, loops.
