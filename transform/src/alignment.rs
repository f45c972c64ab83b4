//! The alignment of two sequences: which of their members are paired, in the order of both.
//!
//! Source: Smith and Waterman, *Identification of common molecular subsequences*, J. Mol. Biol. 147, 1981, here global
//! (Needleman and Wunsch, 1970), since what stands before and after the best run can be paired too; a gap costs the
//! same however long it is (Gotoh, 1982). Time and memory are the product of the lengths, up
//! to a bound; of longer ones only places near the diagonal are looked at (Chao, Pearson and Miller, *Aligning two
//! sequences within a specified diagonal band*, 1992), so that copies are aligned in linear time.

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

/// Of long sequences only places near the diagonal are looked at: of each member so many partners at least.
const LEAST_WIDTH: usize = 16;

/// Which members of a second sequence are looked at for each of the first, and the sums found for them.
struct Band {
    rows: usize,
    columns: usize,
    width: usize,
}

impl Band {
    /// At most `most` pairs, or a few for each member. Neighbouring rows have a column in common.
    fn of(rows: usize, columns: usize, most: usize) -> Band {
        let width = (most / (rows + 1)).max(2 * columns / rows.max(1) + LEAST_WIDTH).min(columns + 1);
        Band { rows, columns, width }
    }

    /// Whether all pairs are in it.
    fn is_whole(&self) -> bool {
        self.width > self.columns
    }

    /// The columns of a row.
    fn row(&self, i: usize) -> std::ops::Range<usize> {
        let middle = i * self.columns / self.rows.max(1);
        let start = middle.saturating_sub(self.width / 2).min(self.columns + 1 - self.width);
        start..start + self.width
    }

    /// The place of a sum, if it is in the band.
    fn at(&self, i: usize, j: usize) -> Option<usize> {
        let row = self.row(i);
        (i <= self.rows && row.contains(&j)).then(|| i * self.width + j - row.start)
    }

    fn sums(&self) -> Vec<i64> {
        vec![LEAST; (self.rows + 1) * self.width]
    }
}

/// Pairs in the order of both sequences with the highest sum of what they save, less `gap` for each gap between them,
/// and less `turn` for each that has members of both. `saving` says what a pair saves, or that two members can be none.
/// Where there are more than `most` pairs, the highest sum of those near the diagonal, in linear time.
///
/// Three states: behind a pair, in a gap of the first sequence, and in one of the second, which comes after the
/// first's. Near the diagonal a gap goes back and forth; that it costs more then is no matter.
pub(crate) fn align<T: Copy>(
    first: &[T],
    second: &[T],
    [gap, turn]: [i64; 2],
    most: usize,
    mut saving: impl FnMut(T, T) -> Option<i64>,
) -> Vec<Piece<T>> {
    let (rows, columns) = (first.len(), second.len());
    let band = Band::of(rows, columns, most);
    let read = |sums: &[i64], i: usize, j: usize| band.at(i, j).map_or(LEAST, |place| sums[place]);
    // The highest sum for what follows the first i and the first j: where a pair comes before, and where a gap is open
    // that has members of the first, or of the second.
    let mut closed = band.sums();
    let (mut of_first, mut of_second) = (closed.clone(), closed.clone());
    let mut savings = vec![None; closed.len()];
    let back = |down: i64| if band.is_whole() { LEAST } else { down - gap - turn };
    for i in (0..=rows).rev() {
        for j in band.row(i).rev() {
            let at = band.at(i, j).expect("in its row");
            if i == rows && j == columns {
                (closed[at], of_first[at], of_second[at]) = (0, 0, 0);
                continue;
            }
            let mut paired = LEAST;
            if i < rows && j < columns {
                let saved = saving(first[i], second[j]);
                savings[at] = saved;
                paired = saved.map_or(LEAST, |saved| saved + read(&closed, i + 1, j + 1));
            }
            let down = read(&of_first, i + 1, j);
            let right = read(&of_second, i, j + 1);
            of_second[at] = paired.max(right).max(back(down));
            of_first[at] = paired.max(down).max(right - turn);
            closed[at] = paired.max(down.max(right) - gap);
        }
    }
    let (mut i, mut j, mut state) = (0, 0, State::Closed);
    let mut pieces = Vec::new();
    let mut apart = (Vec::new(), Vec::new());
    while i < rows || j < columns {
        let sums = match state {
            State::Closed => &closed,
            State::First => &of_first,
            State::Second => &of_second,
        };
        let best = read(sums, i, j);
        let saved = band.at(i, j).and_then(|at| savings[at]);
        if saved.is_some_and(|saved| saved + read(&closed, i + 1, j + 1) == best) {
            flush(&mut apart, &mut pieces);
            pieces.push(Piece::Pair(first[i], second[j]));
            (i, j, state) = (i + 1, j + 1, State::Closed);
            continue;
        }
        let down = read(&of_first, i + 1, j);
        let goes_down = match state {
            State::Closed => down - gap == best,
            State::First => down == best,
            State::Second => read(&of_second, i, j + 1) != best,
        };
        if goes_down && i < rows {
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
                let pieces = align(&one, &other, [gap, turn], 1_000, saving);
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

    /// In a band both sequences are whole, whatever their lengths; what is best in the whole is found where it is near.
    #[test]
    fn long_sequences_are_aligned_near_the_diagonal() {
        let letters = |seed: usize, count: usize| {
            let letter = |i: usize| b"aAbBcC"[(i * i * 7 + i * seed + i / 5) % 6] as char;
            (0..count).map(letter).collect::<Vec<char>>()
        };
        let costs = [[0, 0], [2, 0], [2, 1], [5, 3]];
        for (rows, columns) in [(400, 400), (400, 390), (90, 700), (700, 90), (1, 500), (500, 1), (300, 0), (0, 300)] {
            for [gap, turn] in costs {
                let (one, other) = (letters(1, rows), letters(3, columns));
                let in_band = align(&one, &other, [gap, turn], 100, saving);
                let whole = align(&one, &other, [gap, turn], 1_000_000, saving);
                assert!(worth(&in_band, gap, turn) <= worth(&whole, gap, turn));
                for pieces in [in_band, whole] {
                    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
                    for piece in pieces {
                        match piece {
                            Piece::Pair(a, b) => (firsts.push(a), seconds.push(b)).0,
                            Piece::Apart(mut a, mut b) => (firsts.append(&mut a), seconds.append(&mut b)).0,
                        }
                    }
                    assert!(firsts == one && seconds == other, "{rows} {columns} {gap} {turn}");
                }
            }
        }
        let mut copy = letters(1, 20_000);
        let one = copy.clone();
        copy.splice(7_000..7_003, ['x'; 5]);
        let pieces = align(&one, &copy, [2, 1], 100, saving);
        assert_eq!(worth(&pieces, 2, 1), 3 * 19_997 - 3);
    }
}
