// The canary's kernels for aarch64: as in code_x86_64.S, which says what each does.
//
// uint64 kernel(uint64 a, uint64 b, uint64 count, uint64 value)     AAPCS64: x0, x1, x2, x3; the answer in x0

    .section integer_chain, "ax"
    mov x0, x3
    movz x8, #0x7F2D
    movk x8, #0x4C95, lsl #16
    movk x8, #0xF42D, lsl #32
    movk x8, #0x5851, lsl #48
    movz x9, #0x814F
    movk x9, #0xF767, lsl #16
    movk x9, #0x7B7E, lsl #32
    movk x9, #0x1405, lsl #48
    .p2align 6
1:  .rept 8
    mul x0, x0, x8
    add x0, x0, x9
    .endr
    subs x2, x2, #8
    b.ne 1b
    ret

    .section double_chain, "ax"
    fmov d0, x3
    movz x8, #0x3333
    movk x8, #0x3333, lsl #16
    movk x8, #0x3333, lsl #32
    movk x8, #0x400F, lsl #48
    fmov d1, x8
    fmov d2, #1.0
    .p2align 6
1:  .rept 8
    fsub d3, d2, d0
    fmul d0, d0, d1
    fmul d0, d0, d3
    .endr
    subs x2, x2, #8
    b.ne 1b
    fmov x0, d0
    ret

    .section multiply_add_neon, "ax"
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    ldr q\i, [x0, #16 * \i]
    .endr
    .irp i, 16, 17, 18, 19
    ldr q\i, [x0, #16 * (\i - 8)]
    .endr
    ldr q20, [x1]
    ldr q21, [x1, #16]
    .p2align 6
1:  .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19
    fmla v\i\().2d, v20.2d, v21.2d
    .endr
    subs x2, x2, #1
    b.ne 1b
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    str q\i, [x0, #16 * \i]
    .endr
    .irp i, 16, 17, 18, 19
    str q\i, [x0, #16 * (\i - 8)]
    .endr
    ret

    .section read, "ax"
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    movi v\i\().2d, #0
    .endr
    add x9, x0, x1
2:  mov x8, x0
    .p2align 6
1:  ldp q16, q17, [x8]
    ldp q18, q19, [x8, #32]
    ldp q20, q21, [x8, #64]
    ldp q22, q23, [x8, #96]
    add v0.2d, v0.2d, v16.2d
    add v1.2d, v1.2d, v17.2d
    add v2.2d, v2.2d, v18.2d
    add v3.2d, v3.2d, v19.2d
    add v4.2d, v4.2d, v20.2d
    add v5.2d, v5.2d, v21.2d
    add v6.2d, v6.2d, v22.2d
    add v7.2d, v7.2d, v23.2d
    add x8, x8, #128
    cmp x8, x9
    b.lo 1b
    subs x2, x2, #1
    b.ne 2b
    .irp i, 1, 2, 3, 4, 5, 6, 7
    add v0.2d, v0.2d, v\i\().2d
    .endr
    addp d0, v0.2d
    fmov x0, d0
    ret

    .section fill, "ax"
    dup v0.2d, x3
    add x2, x2, x0
    .p2align 6
1:  stp q0, q0, [x0]
    stp q0, q0, [x0, #32]
    stp q0, q0, [x0, #64]
    stp q0, q0, [x0, #96]
    add x0, x0, #128
    cmp x0, x2
    b.lo 1b
    mov x0, x3
    ret

    .section copy, "ax"
    add x2, x2, x0
    .p2align 6
1:  ldp q0, q1, [x1]
    ldp q2, q3, [x1, #32]
    ldp q4, q5, [x1, #64]
    ldp q6, q7, [x1, #96]
    stp q0, q1, [x0]
    stp q2, q3, [x0, #32]
    stp q4, q5, [x0, #64]
    stp q6, q7, [x0, #96]
    add x1, x1, #128
    add x0, x0, #128
    cmp x0, x2
    b.lo 1b
    mov x0, x3
    ret

    .section chase, "ax"
    .p2align 6
1:  .rept 8
    ldr x0, [x0]
    .endr
    subs x2, x2, #8
    b.ne 1b
    ret

    .section system_call, "ax"
    .p2align 6
1:  mov x8, #173
    svc #0
    subs x2, x2, #1
    b.ne 1b
    ret
