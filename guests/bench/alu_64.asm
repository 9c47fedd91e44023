; question:  How fast is plain arithmetic? Eleven register instructions and two branches a turn, in ring 3.
; answer:    The benchmark divides 13 * ROUNDS instructions by the time.
; run:       emu bench
; mechanism: none
; bits:      64
; enter:     none
; leave:     none
; exit:      0

%include "lib/long_mode.inc"

ring0
main:
        enter_ring3 program

ring3
program:
        mov     ecx, ROUNDS
        mov     eax, 1
        mov     edx, 7
.turn:  mov     esi, eax
        add     rax, rdx
        xor     rdx, rsi
        shl     rsi, 3
        lea     rdi, [rax + rsi]
        cmp     rdi, rdx
        jb      .below
        add     rdx, 1
.below: sub     rsi, rdi
        and     rsi, rax
        or      rdx, 1
        dec     ecx
        jnz     .turn
        exit_ok
