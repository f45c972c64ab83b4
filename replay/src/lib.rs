//! Replays a trace in lockstep under a reconvergence model, and counts.
