# 203 instructions in a row: more than fits one block.
    .globl _start
    .text
_start:
    .fill 200, 1, 0x90
    mov $60, %eax
    xor %edi, %edi
    syscall
