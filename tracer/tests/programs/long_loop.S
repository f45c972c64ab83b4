# Says that it runs, goes round a loop 70,000 times (more than one chunk of a trace holds), and ends with status 33.
    .globl _start
    .text
_start:
    mov $1, %eax
    mov $1, %edi
    lea text(%rip), %rsi
    mov $6, %edx
    syscall
    mov $70000, %ecx
again:
    dec %ecx
    jnz again
    mov $60, %eax
    mov $33, %edi
    syscall
    .data
text: .ascii "ready\n"
