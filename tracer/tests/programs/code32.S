/* Jumps into 32-bit code and back; with an argument, makes a 32-bit system call. Ends with status 42. */
    .globl _start
    .text
_start:
    mov (%rsp), %rax
    cmp $1, %rax
    jne old_call
    lea stack_end(%rip), %rsp
    push $0x23
    push $narrow
    lretq
    .code32
narrow:
    mov $40, %ebx
    inc %ebx
    inc %ebx
    ljmp $0x33, $wide
    .code64
wide:
    mov %ebx, %edi
    mov $231, %eax
    syscall
old_call:
    mov $42, %ebx
    mov $1, %eax
    int $0x80
    .bss
    .skip 4096
stack_end:
