//! The rules of the view, each on a trace made by hand.

mod barriers;
mod code;
mod gaps;
mod generations;
mod joined;
mod linkage;
mod locking;
mod markers;
mod pieces;
mod recording;
mod regions;
mod spinning;
mod stacks;
mod tasks;
mod text;
mod waiting;
