//! The first sentence of a verdict.

use attribution::table::grouped;
use replay::Outcome;
use replay::view::View;

use super::balance::{self, Balance};
use super::coverage::{Coverage, share};
use super::locking::Locking;
use super::{Figure, Items};

/// Whether lockstep knows what lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    AllOrdered,
    NotAllOrdered,
}

impl Waits {
    pub fn of(view: &View) -> Waits {
        let summary = view.summary();
        if summary.unordered.is_empty() && summary.own_waits == 0 { Waits::AllOrdered } else { Waits::NotAllOrdered }
    }
}

/// Whether one thread ran all lanes, one after another, and the program does not say that they may run side by side.
pub(super) fn ran_in_order(view: &View) -> bool {
    let is_of_loop = view.summary().cut.as_ref().is_some_and(|cut| !cut.loops.is_empty() && !cut.is_shared_out);
    let lanes = view.lanes();
    is_of_loop && lanes.windows(2).all(|two| two[0].thread == two[1].thread)
}

/// Lanes run badly below this efficiency, and very well from that one on.
const BAD: f64 = 0.45;
const VERY_WELL: f64 = 0.9;

/// How good an efficiency is, in a sentence without its end.
fn judgement(efficiency: f64) -> &'static str {
    match efficiency {
        e if e >= VERY_WELL => "these lanes run very well in lockstep",
        e if e >= 0.7 => "these lanes run well in lockstep",
        e if e >= BAD => "these lanes run in lockstep with losses",
        e if e >= 0.2 => "these lanes run badly in lockstep",
        _ => "these lanes run very badly in lockstep",
    }
}

/// Behind a figure: what it is where lanes are made to meet behind the lock.
fn behind_locks(meeting: Option<f64>) -> String {
    meeting.map(share).map_or_else(String::new, |meeting| {
        format!(" as a port of the lock would run, {meeting} with lanes made to meet behind the lock")
    })
}

/// Whether the lanes are threads of OpenMP's parallel regions.
pub(super) fn is_of_openmp(view: &View) -> bool {
    view.summary().cut.is_none() && view.summary().region.starts_with("OpenMP parallel regions")
}

pub(super) fn of(
    (figure, locking, view): (&Figure, Option<&Locking>, &View),
    coverage: &Coverage,
    (balance, is_chance): (Option<&Balance>, bool),
    items: Option<&Items>,
    outcome: &Outcome,
) -> String {
    let on = figure.machine.map_or_else(|| format!("under {}", figure.model), |machine| format!("on {machine}"));
    let of_items = items.map_or_else(String::new, |items| {
        let sample =
            items.replayed.map_or_else(String::new, |replayed| format!("; {} were replayed", grouped(replayed as u64)));
        format!(
            " With {} as lanes ({} of them, in warps of {}{sample}) it is {} {on}{}: replay {}.",
            items.what,
            grouped(items.lanes as u64),
            items.warp_size,
            share(items.efficiency),
            behind_locks(items.meeting),
            items.typed
        )
    });
    let of_locks = behind_locks(locking.and_then(|locking| locking.meeting));
    let little = match coverage.rest() {
        rest if rest.is_empty() => rest,
        rest => format!(" In the lanes is only {} of the program{rest}.", share(coverage.share())),
    };
    if outcome.lanes < 2 {
        let what_to_do = match items {
            Some(_) => of_items,
            None => " Run the program with more threads, or take pieces of work as lanes: the iterations of a loop \
                     (replay --loops lists loops), or the calls of a function (--lanes calls --region NAME; a \
                     function that was inlined needs noinline)."
                .to_owned(),
        };
        return format!("none: a single lane has no other to run with.{little}{what_to_do}");
    }
    if let Some(balance) = balance.filter(|_| is_chance) {
        return format!(
            "withheld, since which lane ran what was decided while recording ({}). One of {} lanes has {} of all \
             instructions. So their figure is chance: {}{of_locks}.{little}{of_items}",
            balance.schedule.map_or("", balance::Schedule::phrase),
            outcome.lanes,
            share(balance.longest),
            share(figure.efficiency)
        );
    }
    let waits = Waits::of(view);
    let number = match waits {
        Waits::NotAllOrdered => format!("at most {} SIMT efficiency {on}", share(figure.bound())),
        // Else a line of its own says the range.
        Waits::AllOrdered if figure.is_apart() && figure.spread().is_none() => {
            format!("between {} and {} SIMT efficiency {on}", share(figure.least), share(figure.most))
        }
        Waits::AllOrdered => format!("{} SIMT efficiency {on}", share(figure.efficiency)),
    };
    // A bound says something only where it is low.
    let judgement = match waits {
        Waits::NotAllOrdered if figure.efficiency >= BAD => {
            "lanes wait for each other in a way that lockstep does not order, so how well they run in lockstep is not \
             known"
        }
        _ => judgement(figure.efficiency),
    };
    // What a share means, where lanes idle.
    let working = figure.efficiency * outcome.warp_size as f64;
    let at_a_time = match waits {
        Waits::AllOrdered if figure.efficiency < VERY_WELL => {
            format!(", about {:.0} of a warp's {} at a time", working.max(1.0), outcome.warp_size)
        }
        _ => String::new(),
    };
    let if_they_may = if ran_in_order(view) { ", if they may run side by side" } else { "" };
    let but = match coverage.is_low() {
        true => format!(", but they are only {} of the program{}", share(coverage.share()), coverage.rest()),
        false => String::new(),
    };
    let deals_out = balance.and_then(|balance| balance.schedule).is_some_and(balance::Schedule::deals_out);
    // A port has a lane for each iteration, whoever runs it on a CPU.
    let is_port = items.is_some_and(|items| is_of_openmp(view) && items.lanes > outcome.lanes);
    let of_items = if deals_out || is_port { of_items } else { String::new() };
    format!("{number}{of_locks}: {judgement}{at_a_time}{if_they_may}{but}.{of_items}")
}
