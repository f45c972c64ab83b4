//! The verbs that transform programs, as a user types them.
#![cfg(feature = "transform")]

mod comparing;
mod folder;
mod fusing;
mod predicting;
mod projects;
mod wrapper;
