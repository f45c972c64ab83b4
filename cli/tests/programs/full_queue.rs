// A queue that is full when its workers start: 128 items. What takes them is a loop, and no function of its own.
use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

fn primes(limit: u32) -> u32 {
    let mut count = 0;
    'next: for n in 2..limit {
        let mut d = 2;
        while d * d <= n {
            if n % d == 0 {
                continue 'next;
            }
            d += 1;
        }
        count += 1;
    }
    count
}

fn main() {
    let queue = Mutex::new((0..128u32).map(|i| 50 + i % 7 * 30).collect::<VecDeque<_>>());
    let sum = Mutex::new(0u64);
    thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                while let Some(limit) = {
                    let mut q = queue.lock().unwrap();
                    q.pop_front()
                } {
                    let p = primes(limit);
                    *sum.lock().unwrap() += p as u64;
                }
            });
        }
    });
    println!("{}", sum.lock().unwrap());
}
