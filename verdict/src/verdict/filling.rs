//! Warps that have seats without lanes: what to do about them, where something can be done.
//!
//! Worked example: 40 threads in warps of 32 leave 24 seats of the second warp empty: 32 or 64 threads fill them. 14
//! threads that are started 7 at a time leave 7 seats of each warp of 14 empty, and no other number of warps' worth of
//! them would do better: there is nothing to say. Nor is there where as many lanes were grouped in another way.
//!
//! Such warps were asked for: a machine's warps have no more seats than the largest launch of threads has lanes.

use replay::view::View;

/// What fills the warps of so many seats; none where the lanes are a multiple of that already. `launches` are the
/// lanes that start together, of which no two share a warp, and `is_cut` says whether lanes are pieces of threads.
fn fills(launches: &[usize], seats: usize, is_cut: bool) -> Option<String> {
    let lanes: usize = launches.iter().sum();
    if seats == 0 || lanes.is_multiple_of(seats) {
        return None;
    }
    let whose = match is_cut {
        true => "choose the size of the problem so that there is",
        false => "run the program with",
    };
    Some(match launches {
        [_] => format!("{lanes} lanes do not fill warps of {seats}: {whose} a multiple of {seats}"),
        [first, .., last] if first == last && launches.iter().all(|launch| launch == first) => format!(
            "{} launches of {first} lanes, one after another, do not fill warps of {seats}: {whose} a multiple of \
             {seats} in each",
            launches.len()
        ),
        _ => format!(
            "{lanes} lanes, in {} launches one after another, do not fill warps of {seats}: {whose} a multiple of \
             {seats} in each launch",
            launches.len()
        ),
    })
}

/// The lanes of each launch.
fn launches(view: &View) -> Vec<usize> {
    view.lanes().chunk_by(|a, b| a.generation == b.generation).map(<[_]>::len).collect()
}

/// The lanes of the largest launch: no warp has more.
pub(super) fn largest_launch(view: &View) -> usize {
    launches(view).into_iter().max().unwrap_or(0)
}

/// How many lanes can share a warp: of threads those of one launch, as no other runs at that time. Pieces of work are
/// as many as the program's input has.
pub(crate) fn together(view: &View) -> usize {
    if view.summary().cut.is_some() { view.lanes().len() } else { largest_launch(view) }
}

/// What fills the warps of a view, in a sentence without its end.
pub(super) fn advice(view: &View, seats: usize) -> Option<String> {
    fills(&launches(view), seats, view.summary().cut.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_that_are_a_multiple_of_a_warp_have_nothing_to_fill() {
        for (launches, seats) in [(&[14][..], 14), (&[7, 7], 14), (&[4, 4, 4], 12), (&[64], 32), (&[20, 12], 32)] {
            assert_eq!(fills(launches, seats, false), None, "{launches:?} {seats}");
        }
        assert_eq!(fills(&[], 0, false), None);
    }

    #[test]
    fn the_worked_numbers() {
        let said = |launches: &[usize], is_cut| fills(launches, 32, is_cut).unwrap();
        assert_eq!(said(&[40], false), "40 lanes do not fill warps of 32: run the program with a multiple of 32");
        assert!(said(&[7, 7], false).starts_with("2 launches of 7 lanes, one after another, do not fill warps of 32"));
        assert!(said(&[7, 8], false).starts_with("15 lanes, in 2 launches one after another"));
        assert!(said(&[1000], true).contains("choose the size of the problem"), "iterations are no threads");
    }
}
