//! The verbs that transform programs, as a user types them.
#![cfg(feature = "transform")]

mod agreeing;
mod analyzing;
mod applying;
mod as_clang;
mod by_products;
mod comparing;
mod driver;
mod estimating;
mod figures;
mod folder;
mod fusing;
mod linearizing;
mod marking;
mod melding;
mod predicting;
mod projects;
mod same_code;
mod shape;
mod speculating;
mod spilling;
mod verifying;
mod wrapper;
