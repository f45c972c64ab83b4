//! What the code of small programs becomes.

use iced_x86::Mnemonic::{self, *};

use super::*;
use crate::translate::code::expansions::Hook;
use crate::translate::code::expansions::Lookup;
use crate::translate::code::plan::Landings;
use crate::translate::code::route::Route;

/// Code at 0x1000, and a gate in it.
struct Code(Vec<u8>, Option<u64>);

impl Source for Code {
    fn fetch(&mut self, pc: ProgramPc, bytes: &mut [u8]) -> usize {
        let Some(rest) = self.0.get((pc.0 - 0x1000) as usize..) else { return 0 };
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        length
    }

    fn hook(&mut self, _: ProgramPc) -> Option<Hook> {
        None
    }

    fn gate(&mut self, pc: ProgramPc) -> Option<bool> {
        (self.1 == Some(pc.0)).then_some(true)
    }

    fn returns_here(&self, _: ProgramPc) -> bool {
        false
    }
}

fn translated(code: &[u8]) -> (Translation, Vec<Mnemonic>) {
    translated_with(code, None, None)
}

fn translated_along(code: &[u8], route: &[u64]) -> (Translation, Vec<Mnemonic>) {
    let route: Vec<ProgramPc> = route.iter().copied().map(ProgramPc).collect();
    translated_with(code, None, Some(&Route::through(&route)))
}

fn translated_with(code: &[u8], gate: Option<u64>, route: Option<&Route>) -> (Translation, Vec<Mnemonic>) {
    let plan = Plan {
        head: ProgramPc(0x1000),
        hot: CachePc(0x10_0000),
        cold: CachePc(0x20_0000),
        miss: CachePc(0x30_0000),
        landings: Landings { futex: CachePc(0x30_0100), other: CachePc(0x30_0200) },
        lookup: Lookup { tables: 0x6000_0000, bmi2: true },
        first_path: 7,
        first_link: 0,
        checked: false,
        limit: route.map_or(64, Route::len),
        route,
        memory: false,
    };
    let mut factory = InstructionInfoFactory::new();
    let mut built = Translation::default();
    Builder::build(plan, &mut Code(code.to_vec(), gate), &mut factory, &mut built);
    let mut hot = Decoder::with_ip(64, &built.hot, plan.hot.0, DecoderOptions::NONE);
    let mnemonics = hot.iter().map(|i| i.mnemonic()).filter(|m| *m != Nop).collect();
    (built, mnemonics)
}

#[test]
fn a_jump_is_followed_and_takes_no_code() {
    // inc eax; jmp +0; ret
    let (built, hot) = translated(&[0xff, 0xc0, 0xeb, 0x00, 0xc3]);
    assert_eq!(hot, [Inc, Mov, Pop, Mov, Mov, Lea, Pext, Jmp]);
    assert_eq!(built.paths, [3]);
    assert_eq!(built.superblock.instructions.len(), 3);
}

#[test]
fn a_branch_leaves_by_a_side_exit_with_a_path_of_its_own() {
    // je +1; nop; ret
    let (built, hot) = translated(&[0x74, 0x01, 0x90, 0xc3]);
    assert_eq!(hot[0], Je);
    assert_eq!(built.paths, [1, 3]);
    assert_eq!(built.links.iter().map(|l| l.target).collect::<Vec<_>>(), [ProgramPc(0x1003)]);
    assert_eq!(built.cold[..7], [0x41, 0xc7, 0x03, 7, 0, 0, 0], "mov dword [r11], 7");
}

#[test]
fn r11_is_given_back_for_those_who_name_it() {
    // mov r11, rax; ret
    let (built, hot) = translated(&[0x49, 0x89, 0xc3, 0xc3]);
    assert_eq!(hot[..3], [Mov, Mov, Mov], "store the pointer, load r11, the instruction");
    let mark = built.superblock.marks[0];
    assert!(!mark.pointer_in_r11 && mark.executed == 0);
}

#[test]
fn a_known_system_call_is_made_by_the_program_itself() {
    // mov eax, 39; syscall
    let goes_to_landing = |built: &Translation| {
        let hot = Decoder::with_ip(64, &built.hot, 0x10_0000, DecoderOptions::NONE);
        hot.into_iter().any(|i| i.near_branch_target() == 0x30_0200)
    };
    let (built, _) = translated(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05]);
    assert!(goes_to_landing(&built));
    assert!(built.superblock.marks.iter().any(|mark| mark.borrowed == Borrowed::AfterSyscall));
    // mov eax, 9 (mmap); syscall
    let (built, _) = translated(&[0xb8, 9, 0, 0, 0, 0x0f, 0x05]);
    assert!(!goes_to_landing(&built));
    assert!(built.traps.iter().any(|(_, trap)| *trap == Trap::Syscall { next: ProgramPc(0x1007) }));
}

#[test]
fn a_changed_stack_pointer_is_recorded_where_it_does_not_follow() {
    // leave; ret
    let (built, hot) = translated(&[0xc9, 0xc3]);
    assert_eq!(hot[..2], [Leave, Mov]);
    assert_eq!(built.superblock.values, [1, 1]);
}

#[test]
fn a_superblock_ends_before_a_gate() {
    // inc eax; dec eax; ret
    let code = [0xff, 0xc0, 0xff, 0xc8, 0xc3];
    let (built, hot) = translated_with(&code, Some(0x1002), None);
    assert_eq!(hot[..2], [Inc, Mov]);
    assert_eq!(built.superblock.instructions.len(), 1);
}

#[test]
fn at_a_gate_a_trap_comes_first() {
    // inc eax; ret
    let (built, hot) = translated_with(&[0xff, 0xc0, 0xc3], Some(0x1000), None);
    assert_eq!(hot[..2], [Int3, Inc]);
    assert!(built.traps.contains(&(built.superblock.body, Trap::Gate(ProgramPc(0x1000)))));
    assert_eq!(built.superblock.marks[0].offset, 1, "behind the trap the program stands before the first instruction");
}

#[test]
fn a_route_goes_through_a_return_and_leaves_where_the_program_goes_elsewhere() {
    // ret; inc eax
    let (built, hot) = translated_along(&[0xc3, 0xff, 0xc0], &[0x1000, 0x1001, 0x1003]);
    assert_eq!(hot, [Mov, Pop, Lea, Jrcxz, Jmp, Mov, Inc, Mov, Lea, Jmp]);
    assert_eq!((built.paths, built.expected), (vec![1, 2], vec![ProgramPc(0x1001)]));
    let mut cold = Decoder::with_ip(64, &built.cold, 0x20_0000, DecoderOptions::NONE);
    let cold: Vec<Mnemonic> = cold.iter().map(|i| i.mnemonic()).take(6).collect();
    assert_eq!(cold, [Lea, Mov, Mov, Lea, Pext, Jmp]);
}

#[test]
fn a_route_tells_which_side_of_a_branch_is_likely() {
    // je +2; inc eax; dec eax
    let code = [0x74, 0x02, 0xff, 0xc0, 0xff, 0xc8];
    let (built, hot) = translated_along(&code, &[0x1000, 0x1004, 0x1006]);
    assert_eq!(hot[..2], [Jne, Dec]);
    assert_eq!(built.superblock.instructions.len(), 2);
}

#[test]
fn a_route_through_code_that_has_changed_is_left() {
    // inc eax; dec eax; ret
    let code = [0xff, 0xc0, 0xff, 0xc8, 0xc3];
    let (built, _) = translated_along(&code, &[0x1000, 0x1003, 0x1004, 0x1005]);
    assert_eq!((built.paths, built.links[0].target), (vec![1], ProgramPc(0x1002)));
}

#[test]
fn code_is_longer_than_what_is_read_at_once() {
    // add eax, n, 60 times; ret
    let mut code: Vec<u8> = (0..60).flat_map(|n| [0x83, 0xc0, n]).collect();
    code.push(0xc3);
    assert!(code.len() > ROW);
    let (built, hot) = translated(&code);
    assert_eq!(hot[..60], [Add; 60]);
    assert_eq!(built.superblock.code, code);
    assert!(built.superblock.instructions.iter().zip(0..60).all(|(i, n)| i.pc.0 == 0x1000 + 3 * n));
}
