//! The models, one file each; [`crate::REGISTRY`] lists them.

pub(crate) mod barrier;
pub(crate) mod distance;
pub(crate) mod dual_path;
pub(crate) mod dwf;
pub(crate) mod dws;
pub(crate) mod hanoi;
pub(crate) mod ipdom;
pub(crate) mod lee;
pub(crate) mod long;
pub(crate) mod long_irb;
pub(crate) mod long_min_pc;
pub(crate) mod long_min_sp_pc;
pub(crate) mod lwm;
pub(crate) mod max_fun_min_pc;
pub(crate) mod min_pc;
pub(crate) mod min_sp_pc;
pub(crate) mod multi_path;
pub(crate) mod none;
pub(crate) mod oracle;
pub(crate) mod rd_min_sp_pc;
pub(crate) mod round_robin;
pub(crate) mod round_robin_eq;
pub(crate) mod tbc;
pub(crate) mod tf_branch;
pub(crate) mod tf_stack;
pub(crate) mod wave;
