//! The alignment of two sequences: which of their members are paired, in the order of both.
//!
//! Source: Smith and Waterman, *Identification of common molecular subsequences*, J. Mol. Biol. 147, 1981, here global
//! (Needleman and Wunsch, 1970), since what stands before and after the best run can be paired too; a gap costs the
//! same however long it is (Gotoh, 1982). Time and memory are the product of the lengths.

/// A piece of two sequences side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<T> {
    /// One for two.
    Pair(T, T),
    /// Members of the first sequence, and of the second, that have no partner.
    Apart(Vec<T>, Vec<T>),
}

/// The pairs among the pieces.
pub(crate) fn pairs<T: Copy>(pieces: &[Piece<T>]) -> impl Iterator<Item = (T, T)> {
    pieces.iter().filter_map(|piece| if let Piece::Pair(a, b) = piece { Some((*a, *b)) } else { None })
}

/// Pairs in the order of both sequences with the highest sum of what they save, less `gap` for each gap between them,
/// and less `turn` for each that has members of both. `saving` says what a pair saves, or that two members can be none.
///
/// Three states: behind a pair, in a gap of the first sequence, and in one of the second, which comes after the
/// first's.
pub(crate) fn align<T: Copy>(
    first: &[T],
    second: &[T],
    gap: i64,
    turn: i64,
    mut saving: impl FnMut(T, T) -> Option<i64>,
) -> Vec<Piece<T>> {
    let (rows, columns) = (first.len(), second.len());
    let at = |i: usize, j: usize| i * (columns + 1) + j;
    // The highest sum for what follows the first i and the first j: where a pair comes before, and where a gap is open
    // that has members of the first, or of the second.
    let mut closed = vec![0_i64; (rows + 1) * (columns + 1)];
    let (mut of_first, mut of_second) = (closed.clone(), closed.clone());
    let mut savings = vec![None; rows * columns];
    for i in (0..=rows).rev() {
        for j in (0..=columns).rev() {
            if i == rows && j == columns {
                continue;
            }
            let mut paired = LEAST;
            if i < rows && j < columns {
                let saved = saving(first[i], second[j]);
                savings[i * columns + j] = saved;
                paired = saved.map_or(LEAST, |saved| saved + closed[at(i + 1, j + 1)]);
            }
            let down = if i < rows { of_first[at(i + 1, j)] } else { LEAST };
            let right = if j < columns { of_second[at(i, j + 1)] } else { LEAST };
            of_second[at(i, j)] = paired.max(right);
            of_first[at(i, j)] = paired.max(down).max(right - turn);
            closed[at(i, j)] = paired.max(down.max(right) - gap);
        }
    }
    let (mut i, mut j, mut state) = (0, 0, State::Closed);
    let mut pieces = Vec::new();
    let mut apart = (Vec::new(), Vec::new());
    while i < rows || j < columns {
        let best = match state {
            State::Closed => closed[at(i, j)],
            State::First => of_first[at(i, j)],
            State::Second => of_second[at(i, j)],
        };
        let saved = if i < rows && j < columns { savings[i * columns + j] } else { None };
        if saved.is_some_and(|saved| saved + closed[at(i + 1, j + 1)] == best) {
            flush(&mut apart, &mut pieces);
            pieces.push(Piece::Pair(first[i], second[j]));
            (i, j, state) = (i + 1, j + 1, State::Closed);
            continue;
        }
        let opened = if state == State::Closed { gap } else { 0 };
        if i < rows && state != State::Second && of_first[at(i + 1, j)] - opened == best {
            apart.0.push(first[i]);
            (i, state) = (i + 1, State::First);
        } else {
            apart.1.push(second[j]);
            (j, state) = (j + 1, State::Second);
        }
    }
    flush(&mut apart, &mut pieces);
    pieces
}

/// What no sum is below; sums with it do not overflow.
const LEAST: i64 = i64::MIN / 4;

/// What came last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    First,
    Second,
}

fn flush<T>(apart: &mut (Vec<T>, Vec<T>), pieces: &mut Vec<Piece<T>>) {
    let (one, other) = std::mem::take(apart);
    if !one.is_empty() || !other.is_empty() {
        pieces.push(Piece::Apart(one, other));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters that are the same save 3, those that differ in case only 1; others are no pair.
    fn saving(a: char, b: char) -> Option<i64> {
        if a == b { Some(3) } else { a.eq_ignore_ascii_case(&b).then_some(1) }
    }

    /// What an alignment is worth.
    fn worth(pieces: &[Piece<char>], gap: i64, turn: i64) -> i64 {
        let of_piece = |piece: &Piece<char>| match piece {
            Piece::Pair(a, b) => saving(*a, *b).expect("a pair that can be one"),
            Piece::Apart(one, other) => -gap - if one.is_empty() || other.is_empty() { 0 } else { turn },
        };
        pieces.iter().map(of_piece).sum()
    }

    /// The best worth of all alignments, one by one: `open` says about which sequences a gap has members.
    fn best(first: &[char], second: &[char], costs: [i64; 2], open: [bool; 2]) -> i64 {
        if first.is_empty() && second.is_empty() {
            return 0;
        }
        let [gap, turn] = costs;
        let mut all = Vec::new();
        if let (Some((a, one)), Some((b, other))) = (first.split_first(), second.split_first())
            && let Some(saved) = saving(*a, *b)
        {
            all.push(saved + best(one, other, costs, [false; 2]));
        }
        let adds = |of: usize| match open {
            [false, false] => gap,
            _ if open[of] => 0,
            _ => turn,
        };
        if let Some((_, one)) = first.split_first() {
            all.push(best(one, second, costs, [true, open[1]]) - adds(0));
        }
        if let Some((_, other)) = second.split_first() {
            all.push(best(first, other, costs, [open[0], true]) - adds(1));
        }
        all.into_iter().max().expect("something is left")
    }

    #[test]
    fn no_alignment_is_better_and_each_keeps_the_order_of_both() {
        let words = ["", "a", "ab", "ABab", "baBA", "aabb", "abcab", "cbAca", "bcBCa"];
        for (first, second) in words.iter().flat_map(|a| words.iter().map(move |b| (*a, *b))) {
            let [one, other] = [first, second].map(|word| word.chars().collect::<Vec<_>>());
            for [gap, turn] in [[0, 0], [1, 0], [2, 0], [5, 0], [1, 1], [2, 1], [2, 3]] {
                let pieces = align(&one, &other, gap, turn, saving);
                let expected = best(&one, &other, [gap, turn], [false; 2]);
                assert_eq!(worth(&pieces, gap, turn), expected, "{first} and {second}: {pieces:?}");
                let side = |of: fn(&Piece<char>) -> Vec<char>| pieces.iter().flat_map(of).collect::<Vec<_>>();
                let firsts = side(|p| match p {
                    Piece::Pair(a, _) => vec![*a],
                    Piece::Apart(a, _) => a.clone(),
                });
                let seconds = side(|p| match p {
                    Piece::Pair(_, b) => vec![*b],
                    Piece::Apart(_, b) => b.clone(),
                });
                assert_eq!((firsts, seconds), (one.clone(), other.clone()));
            }
        }
    }
}
