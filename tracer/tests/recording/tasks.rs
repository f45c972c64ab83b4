//! Tasks and teams of OpenMP: the trace says which body each task runs, which creation an execution belongs to, which
//! iterations a piece of a taskloop has, and where teams begin.

use trace_format::SyncFunction::{self, TargetBody, TargetFork, TaskBody, TaskCreate, TeamsBody, TeamsFork, TeamsNext};
use trace_format::{Event, ModuleRole, Pc, Trace};

use crate::loops::{TRANSLATED, assert_covered, chunks, has_libomp, recorded_in_all_ways};
use crate::support::{all_events, compile_with, entries, leaves, place, record};

/// The functions of `tasks.c` that make tasks, and how many bodies each makes run.
const PLAIN: [(&str, usize); 4] = [("numbered", 20), ("without_data", 10), ("at_once", 10), ("with_much", 10)];

/// Object and argument of each entry of a function, of bodies that were made in the program's function of that name;
/// clang's are `.omp_task_entry.`, with a number that says nothing, so all of them are taken where `of` is empty.
fn entered(trace: &Trace, function: SyncFunction, of: &str) -> Vec<(u64, u64)> {
    let is_of = |object: u64| {
        let symbol = trace.symbol_of(Pc(object));
        symbol.is_some_and(|symbol| symbol.pc.0 == object && symbol.name.starts_with(of))
    };
    entries(trace, function).into_iter().filter(|(object, _)| is_of(*object)).collect()
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all
}

/// All that both engines are to say alike of gcc's tasks.
fn of_libgomp(trace: &Trace, about: &str) -> Vec<Vec<(u64, u64)>> {
    let mut all = Vec::new();
    for (name, count) in PLAIN {
        let of = format!("{name}._omp_fn");
        let [made, ran] = [TaskCreate, TaskBody].map(|function| sorted(entered(trace, function, &of)));
        assert_eq!((made.len(), ran.len()), (count, count), "{about} {name}");
        if name == "with_much" {
            // A function of the program copies its data, so that the copy is another.
            assert_eq!(made[0].0, ran[0].0, "{about}");
            continue;
        }
        assert_eq!(made, ran, "{about} {name}: every execution belongs to a creation");
        let mut distinct = made.clone();
        distinct.dedup();
        assert_eq!(distinct.len(), if name == "without_data" { 1 } else { count }, "{about} {name}");
        all.push(made);
    }
    let loops = [[0, 25, 1], [40, 0, -2], [7, 40, 4]];
    for (number, [first, end, step]) in (1..).zip(loops) {
        let name = format!("loop_{number}._omp_fn");
        assert_covered(chunks(trace, &name), [first, end, step], &format!("{about} {name}"));
        let made = entered(trace, TaskCreate, &name);
        assert_eq!(made.len(), 1, "{about} {name}");
        let ran = entered(trace, TaskBody, &name);
        assert_eq!(ran.len(), chunks(trace, &name).len());
        assert!(ran.iter().all(|piece| *piece == made[0]), "{about} {name}: {made:x?} {ran:x?}");
        all.push(sorted(ran));
    }
    assert_eq!(leaves(trace, TaskBody), entries(trace, TaskBody).len(), "{about}");
    all
}

#[test]
fn tasks_of_libgomp_belong_to_their_creations() {
    let program = compile_with("gcc", "tasks.c", &["-fopenmp"]);
    let judged = record("engine=step", &program, &[]);
    assert_eq!(judged.stdout(), "20 10 25 20 9 10 45\n", "{}", judged.stderr());
    // Where the data has an address of the stack or the heap, it could be another; here none has.
    let judge = of_libgomp(&judged.trace(), "step");
    recorded_in_all_ways(&program, &TRANSLATED, |trace, about| assert_eq!(of_libgomp(trace, about), judge, "{about}"));
}

/// Those of the C library's and libgomp's would tell nobody anything, and cost a program with many locks a quarter.
#[test]
fn addresses_of_atomic_instructions_are_recorded_in_the_programs_own_code() {
    let program = compile_with("gcc", "tasks.c", &["-fopenmp"]);
    for engine in ["step", "translate"] {
        let trace = record(&format!("engine={engine}"), &program, &[]).trace();
        let all = trace.blocks().iter().flat_map(|(_, block)| block.instructions.iter());
        let mut with_addresses = all.filter(|instruction| instruction.memory > 0).peekable();
        assert!(with_addresses.peek().is_some(), "{engine}");
        for instruction in with_addresses {
            let module = trace.module_of(instruction.pc).map(|module| (module.role, module.name()));
            assert_eq!(module, Some((ModuleRole::Main, "tasks")), "{engine}");
        }
    }
}

/// Their threads sleep as soon as they wait, and clang's library may then wait for itself when it ends: the programs
/// end without, or one run in a hundred would hang.
#[test]
fn programs_whose_threads_sleep_end_without_their_libraries() {
    for source in ["openmp.c", "loops.c", "tasks.c"] {
        let trace = record("engine=translate", &compile_with("gcc", source, &["-fopenmp"]), &[]).trace();
        let in_exit = |pc| trace.symbol_of(pc).is_some_and(|symbol| symbol.name == "exit");
        assert!(trace.blocks().iter().all(|(_, block)| !in_exit(block.instructions[0].pc)), "{source}");
    }
}

/// A run that stops for no new code knows taskloops as one does that stops for all of it.
#[test]
fn pieces_of_libomp_are_told_in_a_second_run() {
    if !has_libomp() {
        return;
    }
    let program = compile_with("clang-19", "tasks.c", &["-fopenmp=libomp"]);
    let memory = place("memory");
    let pieces = || {
        let trace = record(&format!("engine=translate remember={}", memory.display()), &program, &[]).trace();
        let chunks = all_events(&trace).into_iter().filter(|event| matches!(event, Event::Chunk(_)));
        chunks.count()
    };
    let first = pieces();
    assert!(first >= 3);
    assert_eq!((pieces(), pieces()), (first, first));
}

/// The results of the calls that made tasks: their addresses.
fn made_at(trace: &Trace) -> Vec<u64> {
    let results = all_events(trace).into_iter().filter_map(|event| match event {
        Event::Leave { function: TaskCreate, result, .. } => Some(result),
        _ => None,
    });
    results.collect()
}

/// Needs clang-19 with its OpenMP library, which not every machine has.
#[test]
fn tasks_of_libomp_belong_to_their_creations() {
    if !has_libomp() {
        return;
    }
    let program = compile_with("clang-19", "tasks.c", &["-fopenmp=libomp"]);
    recorded_in_all_ways(&program, &TRANSLATED, |trace, about| {
        let (made, at) = (entries(trace, TaskCreate), made_at(trace));
        let plain: usize = PLAIN.iter().map(|(_, count)| count).sum();
        assert_eq!((made.len(), at.len()), (plain + 3, plain + 3), "{about}");
        let mut by_body: Vec<u64> = made.iter().map(|(body, _)| *body).collect();
        by_body.sort_unstable();
        let counts: Vec<usize> = by_body.chunk_by(|a, b| a == b).map(<[u64]>::len).collect();
        assert_eq!(sorted(counts), [1, 1, 1, 10, 10, 10, 20], "{about}");
        let (ran, mut covered) = (entries(trace, TaskBody), 0);
        for body in by_body.chunk_by(|a, b| a == b) {
            let ran: Vec<u64> = ran.iter().filter(|(of, _)| *of == body[0]).map(|(_, task)| *task).collect();
            let pieces = all_events(trace).into_iter().filter_map(|event| match event {
                Event::Chunk(chunk) if chunk.site.0 == body[0] => Some(chunk),
                _ => None,
            });
            let pieces: Vec<_> = pieces.collect();
            // clang puts the bodies of ten tasks with `if (0)` where they are made.
            if body.len() > 1 {
                assert_eq!((ran.len(), pieces.len()), (body.len(), 0), "{about}");
                assert!(ran.iter().all(|task| at.contains(task)), "{about}: {ran:x?} {at:x?}");
            } else {
                // clang counts from 0.
                let end = pieces.iter().map(|piece| piece.upper).max().unwrap();
                assert_eq!(pieces.len(), ran.len(), "{about}");
                assert_covered(pieces, [0, end, 1], about);
                covered += end;
            }
        }
        assert_eq!(covered, 25 + 20 + 9, "{about}");
    });
}

/// A thread may stand behind what says that a task begins, and before the task's first instruction, when its
/// translation is thrown away: the next one says it again.
#[test]
fn a_task_that_runs_where_it_is_made_begins_once_however_often_it_is_translated() {
    if !has_libomp() {
        return;
    }
    let program = compile_with("clang-19", "tasks.c", &["-fopenmp=libomp"]);
    for seed in 1..=6 {
        let trace = record(&format!("engine=translate cache=65536 throw={seed}"), &program, &[]).trace();
        let bodies = entries(&trace, TaskBody).len();
        assert_eq!((bodies, leaves(&trace, TaskBody)), (50 + 9 + 4 + 3, bodies), "{seed}");
    }
}

#[test]
fn teams_of_libgomp_are_told() {
    let program = compile_with("gcc", "teams.c", &["-fopenmp"]);
    let mut ways = vec!["step"];
    ways.extend(TRANSLATED);
    recorded_in_all_ways(&program, &ways, |trace, about| {
        // Two teams one after the other, and the answer that there are no more.
        let next = all_events(trace).into_iter().filter_map(|event| match event {
            Event::Enter { function: TeamsNext, argument, .. } => Some(argument),
            Event::Leave { function: TeamsNext, result, .. } => Some(result & 0xff),
            _ => None,
        });
        assert_eq!(next.collect::<Vec<_>>(), [1, 1, 0, 1, 0, 0], "{about}");
        let named = |(body, argument): (u64, u64)| {
            let name = &trace.symbol_of(Pc(body)).unwrap().name;
            (name.split_once('.').unwrap().0.to_owned(), argument)
        };
        let expected = [("host", 2)].map(|(name, teams)| (name.to_owned(), teams));
        let of = |function| sorted(entries(trace, function).into_iter().map(named).collect::<Vec<_>>());
        assert_eq!(of(TeamsFork), expected, "{about}: as many teams as were asked for");
        assert_eq!(of(TeamsBody), [("host".to_owned(), 0), ("host".to_owned(), 0)], "{about}");
        for function in [TargetFork, TargetBody] {
            assert_eq!(of(function), [("alone".to_owned(), 0), ("offload".to_owned(), 0)], "{about}");
        }
        assert_eq!((leaves(trace, TeamsBody), leaves(trace, TargetBody)), (2, 2), "{about}");
    });
}

/// Needs clang-19 with its OpenMP library, which not every machine has.
#[test]
fn teams_of_libomp_are_told() {
    if !has_libomp() {
        return;
    }
    let program = compile_with("clang-19", "teams.c", &["-fopenmp=libomp"]);
    recorded_in_all_ways(&program, &TRANSLATED, |trace, about| {
        let forks = entries(trace, TeamsFork);
        assert_eq!(forks.len(), 2, "{about}");
        let bodies = entries(trace, TeamsBody);
        for (fork, _) in forks {
            assert_eq!(bodies.iter().filter(|(body, _)| *body == fork).count(), 2, "{about}: a team each");
        }
    });
}
