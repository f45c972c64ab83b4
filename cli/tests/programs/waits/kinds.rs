// Rust's own locks, and spin locks of AtomicBool, in the forms of kinds.c: the first argument is the kind (mutex,
// write, read, swap, compare), the second the form. Of the kinds barrier and condition, in each of ROUNDS rounds one
// thread works, and the others wait for it; of the kind meeting all work. Of the kinds channel and park, each thread
// waits for the one before it; of the kind once, all wait for one.
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Barrier, Condvar, Mutex, OnceLock, RwLock};

const LANES: usize = 8;
const SHORT: u64 = 200;
const WORK: u64 = 4000;
const ROUNDS: usize = 16;

#[inline(never)]
fn inside(turns: u64) -> u64 {
    (0..turns).fold(0, |s, i| black_box(s ^ i))
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let form: u32 = arguments[2].parse().unwrap();
    let mutexes = [Mutex::new(0u64), Mutex::new(0)];
    let shared = [RwLock::new(0u64), RwLock::new(0)];
    let spins = [AtomicBool::new(false), AtomicBool::new(false)];
    let kind = arguments[1].as_str();
    let locked = |n: usize, then: &dyn Fn() -> u64| match kind {
        "mutex" => {
            let mut total = mutexes[n].lock().unwrap();
            *total = total.wrapping_add(then());
        }
        "write" => {
            let mut total = shared[n].write().unwrap();
            *total = total.wrapping_add(then());
        }
        "swap" | "compare" => {
            let lock = &spins[n];
            if kind == "swap" {
                while lock.swap(true, Acquire) {
                    std::thread::yield_now();
                }
            } else {
                while lock.compare_exchange(false, true, Acquire, Relaxed).is_err() {
                    std::thread::yield_now();
                }
            }
            black_box(then());
            lock.store(false, Release);
        }
        _ => {
            let total = shared[n].read().unwrap();
            black_box(*total ^ then());
        }
    };
    let begin = Barrier::new(LANES);
    let (counts, over) = (Mutex::new((0, 0)), Condvar::new());
    let meet = || {
        if kind == "barrier" {
            begin.wait();
            return;
        }
        let mut now = counts.lock().unwrap();
        let round = now.1;
        now.0 += 1;
        if now.0 == LANES {
            *now = (0, round + 1);
            over.notify_all();
        } else {
            while now.1 == round {
                now = over.wait(now).unwrap();
            }
        }
    };
    let (cell, next) = (OnceLock::new(), Mutex::new(vec![None; LANES]));
    let (senders, receivers): (Vec<Sender<u64>>, Vec<Receiver<u64>>) = (0..LANES).map(|_| channel()).unzip();
    std::thread::scope(|scope| {
        for (id, receiver) in receivers.into_iter().enumerate() {
            let (locked, begin, meet, cell, next) = (&locked, &begin, &meet, &cell, &next);
            let sender = senders.get(id + 1).cloned();
            scope.spawn(move || {
                next.lock().unwrap()[id] = Some(std::thread::current());
                begin.wait();
                match kind {
                    "channel" if id > 0 => _ = black_box(receiver.recv()),
                    "park" if id > 0 => std::thread::park(),
                    "once" => _ = black_box(cell.get_or_init(|| inside(WORK))),
                    _ => {}
                }
                if matches!(kind, "channel" | "park" | "once") {
                    black_box(inside(WORK));
                    match sender {
                        Some(sender) if kind == "channel" => sender.send(1).unwrap(),
                        Some(_) if kind == "park" => next.lock().unwrap()[id + 1].take().unwrap().unpark(),
                        _ => {}
                    }
                    return;
                }
                if matches!(kind, "barrier" | "condition" | "meeting") {
                    for round in 0..ROUNDS {
                        if round % LANES == id || kind == "meeting" {
                            black_box(inside(WORK / 4));
                        }
                        meet();
                    }
                    return;
                }
                match form {
                    0 => {
                        locked(0, &|| inside(SHORT));
                        black_box(inside(WORK));
                    }
                    1 => (0..4).for_each(|_| locked(0, &|| inside(WORK / 4))),
                    2 => locked(0, &|| {
                        let outer = inside(WORK / 2);
                        locked(1, &|| inside(WORK / 2));
                        outer
                    }),
                    _ if id % 2 == 1 => locked(0, &|| inside(WORK)),
                    _ => drop(black_box(inside(WORK))),
                }
            });
        }
    });
    println!("{:?} {:?}", mutexes[0].lock().unwrap(), shared[0].read().unwrap());
}
