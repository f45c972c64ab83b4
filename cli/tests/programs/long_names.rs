//! Threads in generic functions over closures and iterators: names of functions are hundreds of characters long.

use std::collections::BTreeMap;
use std::marker::PhantomData;

mod numerical_integration {
    pub mod adaptive_quadrature {
        pub trait EvaluateUntilConverged<Shape> {
            fn evaluate_until_converged<F: Fn(Shape) -> u64>(&mut self, function: F, depth: u64) -> u64;
        }
    }
}

use numerical_integration::adaptive_quadrature::EvaluateUntilConverged;

struct Evaluator<Key, Shape> {
    found: BTreeMap<Key, Vec<u64>>,
    shape: PhantomData<Shape>,
}

impl EvaluateUntilConverged<u64> for Evaluator<Option<Result<u64, Box<dyn std::error::Error>>>, BTreeMap<String, u64>> {
    #[inline(never)]
    fn evaluate_until_converged<F: Fn(u64) -> u64>(&mut self, function: F, depth: u64) -> u64 {
        (0..depth).map(|i| if i % 3 == 0 { function(i) } else { function(i) / 2 + self.found.len() as u64 }).sum()
    }
}

fn main() {
    let threads: Vec<_> = (0..8u64)
        .map(|id| {
            std::thread::spawn(move || {
                let mut evaluator = Evaluator { found: BTreeMap::new(), shape: PhantomData };
                (0..40).map(|turn| evaluator.evaluate_until_converged(move |at| at * (id + 1) % 97, turn % (id + 2))).sum::<u64>()
            })
        })
        .collect();
    println!("{}", threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum::<u64>());
}
