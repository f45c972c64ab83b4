//! The first look at a trace: regions, teams, barriers, tasks, and which lanes could run together.

pub(super) mod callable;
pub(super) mod code;
pub(super) mod episodes;
pub(super) mod generations;
pub(super) mod leagues;
pub(super) mod region;
pub(super) mod seats;
pub(super) mod segments;
pub(super) mod survey;
pub(super) mod task_order;
pub(super) mod tasks;
