//! Process groups that nobody may stay behind in.

use std::time::{Duration, Instant};

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::kill;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// To be called before the group's processes are started: the ended ones whose makers are dead become ours to bury. The
/// system's first process may take seconds for each, or never do it in a container, and what is not buried counts as a
/// member of its group.
pub fn bury_orphans() {
    set_child_subreaper(true).unwrap();
}

/// Asks until it is true, for ten seconds.
pub fn within_ten_seconds(mut is_true: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_true() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Asserts that the process group, whose leader was waited for, is empty. It is named by its leader's number, negated.
pub fn assert_nobody_left(group: Pid) {
    let bury =
        || while waitpid(group, Some(WaitPidFlag::WNOHANG)).is_ok_and(|status| status != WaitStatus::StillAlive) {};
    let is_empty = || {
        bury();
        kill(group, None).is_err()
    };
    assert!(within_ten_seconds(is_empty), "processes of group {group} stayed behind");
}
