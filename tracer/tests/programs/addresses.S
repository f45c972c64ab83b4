# Memory operands of every odd kind, in a loop that fills the record buffer several times over.
    .globl _start
    .text
_start:
    lea data(%rip), %r8
    mov $158, %eax          # arch_prctl(ARCH_SET_FS, data)
    mov $0x1002, %edi
    mov %r8, %rsi
    syscall
    lea data(%rip), %r8
    mov $6000, %r15d
again:
    mov (%r8), %r11         # the next address depends on what is loaded
    mov (%r11), %r10
    mov $3, %r10d
    mov 8(%r11,%r10,2), %eax
    mov (%r11), %r10
    mov (%r10), %r11
    add 8(%r11), %rax
    mov 16(%r8), %rbx
    mov $0x1203, %eax
    lea data(%rip), %rbx
    xlat
    and $7, %eax
    mov %fs:8, %rcx
    lea 16(%r8), %rdx
    mov %fs:8(,%rax,8), %rcx
    mov (%edx), %ecx
    addr32 mov 4(%r8d), %ecx
    lea data(%rip), %rsi
    lea 128(%rsi), %rdi
    mov $5, %ecx
    rep movsb
    movsq
    lodsb
    push 8(%r8)
    pop 24(%r8)
    push %rbp
    mov %rsp, %rbp
    mov %r15, %rax
    and $15, %eax
    sub %rax, %rsp
    mov -8(%rsp,%rax,4), %ecx
    leave
    mov 32(%r8), %rdi
    mov %rdi, %rax
    cmpxchg %rdi, 40(%r8)
    xadd %rax, 48(%r8)
    xchg %rdi, %rsi
    mov (%rsi), %cl
    vpxor %xmm1, %xmm1, %xmm1
    vpcmpeqd %xmm2, %xmm2, %xmm2
    and $31, %eax
    bt %rax, 56(%r8)
    btq $3, (%r8)
    enter $16, $0
    mov %r11, -8(%rbp)
    leave
    call *72(%r8)
    dec %r15d
    jnz again
    mov $60, %eax
    xor %edi, %edi
    syscall
inner:
    ret

    .data
    .balign 64
data:
    .quad data, data, data, data, data, 0, 0, 0, 0, inner
    .skip 128
