use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

use super::*;

/// What is recorded for the code, and the addresses when register n holds 0x1000 * (n + 1) at the start.
fn values(code: &[u8]) -> (Vec<Value>, Vec<Operand>, Vec<u16>) {
    values_of(code, true)
}

/// The same of all memory operands, or of those of atomic instructions.
fn values_of(code: &[u8], memory: bool) -> (Vec<Value>, Vec<Operand>, Vec<u16>) {
    let (mut values, mut factory) = (Values::new(memory), InstructionInfoFactory::new());
    for instruction in &mut Decoder::with_ip(64, code, 0x10_0000, DecoderOptions::NONE) {
        let sp = machine::x86_64::recorded(&instruction, &mut factory).sp;
        let info = factory.info(&instruction);
        if memory || machine::x86_64::is_atomic(&instruction) {
            values.reads(info.used_memory());
        }
        if values.follows {
            values.runs(&instruction, info.used_registers(), sp);
        }
        if sp == SpEffect::Recorded {
            values.record_stack_pointer();
        }
        values.ran();
    }
    (values.recorded, values.operands, values.after)
}

fn sums(code: &[u8], sps: &[u64], held: &[u64]) -> Vec<u64> {
    let of = |operand: &Operand| match operand {
        Operand::Sum(sum) => sum.evaluate(0x5000, sps, held),
        Operand::Other(other) => other.address([0x7000, 0x9000], 0x5000, sps, held),
    };
    values(code).1.iter().map(of).collect()
}

use Value::{Register as Held, StackPointer};

#[test]
fn a_register_is_recorded_once_while_constants_are_added() {
    // mov rax, [rdi+8]; add rdi, 16; lea rsi, [rdi-4]; mov rbx, [rdi]; inc rsi; mov rbx, [rsi]
    let code = [
        0x48, 0x8b, 0x47, 0x08, 0x48, 0x83, 0xc7, 0x10, 0x48, 0x8d, 0x77, 0xfc, 0x48, 0x8b, 0x1f, 0x48, 0xff, 0xc6,
        0x48, 0x8b, 0x1e,
    ];
    let (recorded, _, after) = values(&code);
    assert_eq!(recorded, [Held(7)]);
    assert_eq!(after, [1; 6]);
    assert_eq!(sums(&code, &[], &[0x8000]), [0x8008, 0x8010, 0x800d]);
}

#[test]
fn registers_are_followed_from_the_first_atomic_instruction_on() {
    // add rdi, rcx; mov rax, [rdi]; lock inc qword [rdi]; push rax; add rdi, 8; lock inc qword [rdi]; leave; lock
    // inc qword [rsp+8]
    let code = [
        0x48, 0x01, 0xcf, 0x48, 0x8b, 0x07, 0xf0, 0x48, 0xff, 0x07, 0x50, 0x48, 0x83, 0xc7, 0x08, 0xf0, 0x48, 0xff,
        0x07, 0xc9, 0xf0, 0x48, 0xff, 0x44, 0x24, 0x08,
    ];
    let (recorded, operands, after) = values_of(&code, false);
    assert_eq!((recorded, after), (vec![Held(7), StackPointer], vec![0, 0, 1, 1, 1, 1, 2, 2]));
    let address = |operand: &Operand| match operand {
        Operand::Sum(sum) => sum.evaluate(0x5000, &[0x6000], &[0x8000, 0x6000]),
        Operand::Other(_) => panic!("{operand:?}"),
    };
    assert_eq!(operands.iter().map(address).collect::<Vec<_>>(), [0x8000, 0x8008, 0x6008]);
    // lock inc qword [rsp]: the stack pointer was not followed to here.
    assert_eq!(values_of(&[0xf0, 0x48, 0xff, 0x04, 0x24], false).0, [Held(4)]);
}

#[test]
fn a_register_recorded_late_tells_of_those_it_came_from() {
    // lea rsi, [rdi+16]; mov rax, [rsi]; mov rax, [rdi]
    let code = [0x48, 0x8d, 0x77, 0x10, 0x48, 0x8b, 0x06, 0x48, 0x8b, 0x07];
    assert_eq!(values(&code).0, [Held(6)]);
    assert_eq!(sums(&code, &[], &[0x8010]), [0x8010, 0x8000]);
}

#[test]
fn a_loaded_register_is_another() {
    // mov rdi, [rdi]; mov rdi, [rdi]; mov dil, 1; mov rax, [rdi]
    let code = [0x48, 0x8b, 0x3f, 0x48, 0x8b, 0x3f, 0x40, 0xb7, 0x01, 0x48, 0x8b, 0x07];
    let (recorded, _, after) = values(&code);
    assert_eq!((recorded, after), (vec![Held(7); 3], vec![1, 2, 2, 3]));
}

#[test]
fn sums_of_registers_follow_too() {
    // mov rax, [rdi+rcx*8]; add rdi, rcx; shl rcx, 2; mov rax, [rdi+rcx]; sub rdi, rcx; neg rdi; mov rax, [rdi]
    let code = [
        0x48, 0x8b, 0x04, 0xcf, 0x48, 0x01, 0xcf, 0x48, 0xc1, 0xe1, 0x02, 0x48, 0x8b, 0x04, 0x0f, 0x48, 0x29, 0xcf,
        0x48, 0xf7, 0xdf, 0x48, 0x8b, 0x07,
    ];
    assert_eq!(values(&code).0, [Held(1), Held(7)]);
    let (rdi, rcx) = (0x8000u64, 5u64);
    let last = (rdi + rcx).wrapping_sub(rcx * 4).wrapping_neg();
    assert_eq!(sums(&code, &[], &[rcx, rdi]), [rdi + rcx * 8, rdi + rcx + rcx * 4, last]);
}

#[test]
fn a_place_in_a_table_is_recorded_as_the_table_and_the_number_of_the_place() {
    // lea rdi, [rsi+rdx*8]; mov rdx, [rdi]; lea rdi, [rsi+rdx*8+8]; mov rax, [rdi]
    let code = [0x48, 0x8d, 0x3c, 0xd6, 0x48, 0x8b, 0x17, 0x48, 0x8d, 0x7c, 0xd6, 0x08, 0x48, 0x8b, 0x07];
    assert_eq!(values(&code).0, [Held(6), Held(2), Held(2)]);
    assert_eq!(sums(&code, &[], &[0x8000, 3, 5]), [0x8018, 0x8030]);
    // lea rdi, [rsi+rdx*8]; xor edx, edx; mov rax, [rdi]: the number is gone.
    let gone = [0x48, 0x8d, 0x3c, 0xd6, 0x31, 0xd2, 0x48, 0x8b, 0x07];
    assert_eq!(values(&gone).0, [Held(7)]);
}

#[test]
fn pc_and_stack_pointer_need_no_value() {
    // mov eax, [rip+4]; push rax; mov rbp, rsp; mov eax, [rbp-8]; lea rbx, [rip]; mov al, [rbx]; xor ebx, ebx; mov
    // al, [rbx+1]
    let code = [
        0x8b, 0x05, 4, 0, 0, 0, 0x50, 0x48, 0x89, 0xe5, 0x8b, 0x45, 0xf8, 0x48, 0x8d, 0x1d, 0, 0, 0, 0, 0x8a, 0x03,
        0x31, 0xdb, 0x8a, 0x43, 0x01,
    ];
    assert_eq!(values(&code).0, []);
    assert_eq!(sums(&code, &[], &[]), [0x10_000a, 0x4ff8, 0x4ff0, 0x10_0014, 1]);
}

#[test]
fn a_new_stack_pointer_is_recorded_after_what_sets_it() {
    // leave; mov eax, [rsp+8]
    let code = [0xc9, 0x8b, 0x44, 0x24, 0x08];
    let (recorded, _, after) = values(&code);
    assert_eq!((recorded, after), (vec![Held(5), StackPointer], vec![2, 2]));
    assert_eq!(sums(&code, &[0x6000], &[0x5ff8, 0x6000]), [0x5ff8, 0x6008]);
}

#[test]
fn odd_operands_take_their_registers() {
    // mov rax, fs:[0x28]; xlatb; mov eax, [ecx+4]
    let code = [0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0xd7, 0x67, 0x8b, 0x41, 0x04];
    assert_eq!(values(&code).0, [Held(3), Held(0), Held(1)]);
    assert_eq!(sums(&code, &[], &[0x100, 0x1203, 0x1_0000_0010]), [0x7028, 0x103, 0x14]);
}

#[test]
fn exchanged_registers_stay_known() {
    // mov rax, [rdi]; xchg rdi, rsi; mov rax, [rsi]
    let code = [0x48, 0x8b, 0x07, 0x48, 0x87, 0xfe, 0x48, 0x8b, 0x06];
    assert_eq!(values(&code).0, [Held(7)]);
}
