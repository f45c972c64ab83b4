//! Reconvergence models: which lanes of a warp run next.
