# The canary's kernels for x86-64. code.json holds their bytes, made from this file by machine_code.py, and only those are
# run. A kernel's bytes never change once measured: a better one gets another name.
#
# uint64 kernel(uint64 a, uint64 b, uint64 count, uint64 value)     System V: rdi, rsi, rdx, rcx; the answer in rax
#
# Each kernel is a section of its own and is loaded at a page's first byte, so that its alignment is fixed as well.

    .intel_syntax noprefix

# Up to the next multiple of 64 from label 0, in one-byte nops, so that every assembler makes the same bytes.
    .macro align_loop
    .fill (-(. - 0b)) & 63, 1, 0x90
    .endm

# value = value * A + C, `count` times (a multiple of 8): 3 cycles for the multiply, 1 for the add on today's processors.
    .section integer_chain, "ax"
0:
    mov rax, rcx
    mov r8, 0x5851F42D4C957F2D
    mov r9, 0x14057B7EF767814F
    align_loop
1:  .rept 8
    imul rax, r8
    add rax, r9
    .endr
    sub rdx, 8
    jnz 1b
    ret

# x = (x * 3.9) * (1 - x), `count` times (a multiple of 8); value and answer are the bits of a double.
    .section double_chain, "ax"
0:
    movq xmm0, rcx
    mov rax, 0x400F333333333333
    movq xmm1, rax
    mov rax, 0x3FF0000000000000
    movq xmm2, rax
    align_loop
1:  .rept 8
    movapd xmm3, xmm2
    subsd xmm3, xmm0
    mulsd xmm0, xmm1
    mulsd xmm0, xmm3
    .endr
    sub rdx, 8
    jnz 1b
    movq rax, xmm0
    ret

# a: 12 accumulators of 2 doubles; b: x, y, each 2 doubles. Each accumulator += x * y, `count` times.
    .section multiply_add_sse2, "ax"
0:
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    movupd xmm\i, [rdi + 16 * \i]
    .endr
    movupd xmm12, [rsi]
    movupd xmm13, [rsi + 16]
    align_loop
1:  .irp i, 0, 2, 4, 6, 8, 10
    movapd xmm14, xmm12
    mulpd xmm14, xmm13
    addpd xmm\i, xmm14
    .endr
    .irp i, 1, 3, 5, 7, 9, 11
    movapd xmm15, xmm12
    mulpd xmm15, xmm13
    addpd xmm\i, xmm15
    .endr
    dec rdx
    jnz 1b
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    movupd [rdi + 16 * \i], xmm\i
    .endr
    ret

# The same with accumulators of 4 doubles and fused multiply-adds.
    .section multiply_add_avx2, "ax"
0:
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    vmovupd ymm\i, [rdi + 32 * \i]
    .endr
    vmovupd ymm12, [rsi]
    vmovupd ymm13, [rsi + 32]
    align_loop
1:  .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    vfmadd231pd ymm\i, ymm12, ymm13
    .endr
    dec rdx
    jnz 1b
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
    vmovupd [rdi + 32 * \i], ymm\i
    .endr
    vzeroupper
    ret

# The sum of the 64-bit words of a[0..b), b in bytes (a multiple of 128), `count` times over; a is aligned to 16.
    .section read, "ax"
0:
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    pxor xmm\i, xmm\i
    .endr
    lea r9, [rdi + rsi]
2:  mov r8, rdi
    align_loop
1:  .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    paddq xmm\i, [r8 + 16 * \i]
    .endr
    add r8, 128
    cmp r8, r9
    jb 1b
    dec rdx
    jnz 2b
    .irp i, 1, 2, 3, 4, 5, 6, 7
    paddq xmm0, xmm\i
    .endr
    movapd xmm1, xmm0
    psrldq xmm1, 8
    paddq xmm0, xmm1
    movq rax, xmm0
    ret

# The 64-bit words of a[0..count) become `value`; count in bytes (a multiple of 128), a aligned to 16.
    .section fill, "ax"
0:
    movq xmm0, rcx
    punpcklqdq xmm0, xmm0
    add rdx, rdi
    align_loop
1:  .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    movdqa [rdi + 16 * \i], xmm0
    .endr
    add rdi, 128
    cmp rdi, rdx
    jb 1b
    mov rax, rcx
    ret

# a[0..count) becomes b[0..count); count in bytes (a multiple of 128), both aligned to 16.
    .section copy, "ax"
0:
    add rdx, rdi
    align_loop
1:  .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    movdqa xmm\i, [rsi + 16 * \i]
    .endr
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    movdqa [rdi + 16 * \i], xmm\i
    .endr
    add rsi, 128
    add rdi, 128
    cmp rdi, rdx
    jb 1b
    mov rax, rcx
    ret

# a = the address that lies at a, `count` times (a multiple of 8).
    .section chase, "ax"
0:
    align_loop
1:  .rept 8
    mov rdi, [rdi]
    .endr
    sub rdx, 8
    jnz 1b
    mov rax, rdi
    ret

# The system call getppid, `count` times.
    .section system_call, "ax"
0:
    align_loop
1:  mov eax, 110
    syscall
    dec rdx
    jnz 1b
    ret
