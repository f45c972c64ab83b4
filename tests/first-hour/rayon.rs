// A parallel iterator over items of different length.
use rayon::prelude::*;

#[inline(never)]
fn work(i: u32) -> u32 {
    let turns = 20 + i * 37 % 64 * 10;
    (0..turns).fold(i, |x, _| x.wrapping_mul(1_664_525).wrapping_add(x >> 16))
}

fn main() {
    let items: Vec<u32> = (0..1024).collect();
    let sum = items.par_iter().map(|i| work(*i)).reduce(|| 0, |a, b| a ^ b);
    println!("{sum}");
}
