# 83 instructions: 1 + 20 (a loop) + 4 (a copy) + 1 + 5 * 5 (stores in a loop) + 2 (no bytes at all) + 3 + 1 + 20 (more than
# fits a block) + 3 (out of a loop by its count) + 3 (the end).
    .globl _start
    .text
_start:
    mov $10, %ecx
loop:
    dec %ecx
    jnz loop

    lea source(%rip), %rsi
    lea target(%rip), %rdi
    mov $100, %ecx
    rep movsb

    mov $5, %ebx
again:
    lea target(%rip), %rdi
    mov $3, %ecx
    rep stosb
    dec %ebx
    jnz again

    xor %ecx, %ecx
    rep stosb

    push %rsp
    pop %rax
    call inner
    nop
    .fill 19, 1, 0x90
    mov $2, %ecx
here:
    loop here

    mov $60, %eax
    mov $42, %edi
    syscall
inner:
    ret

    .bss
source: .skip 100
target: .skip 100
