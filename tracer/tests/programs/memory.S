# Memory operands at known places.
    .globl _start
    .text
_start:
    lea data(%rip), %rax
    mov $2, %ecx
    mov 4(%rax,%rcx,4), %edx
    push %rax
    pop %rbx
    mov %edx, data(%rip)
    mov $60, %eax
    xor %edi, %edi
    syscall
    .data
    .balign 64
data: .skip 64
