//! Small programs, written as text, whose fetches are known.

mod single_warp_models;
mod suggesting;
mod turns;
mod worked_numbers;
mod written;
mod yielding;
