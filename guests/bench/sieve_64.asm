; question:  How fast is memory? The sieve of Eratosthenes over 8192 bytes, ROUNDS times, in ring 3.
; answer:    1028 primes below 8192; the guest exits with 1 if it counts another number.
; run:       emu bench
; mechanism: none
; bits:      64
; enter:     none
; leave:     none
; exit:      0

%include "lib/long_mode.inc"

SIEVE   equ USER + 0x20000
SIZE    equ 8192
PRIMES  equ 1028

ring0
main:
        enter_ring3 program

ring3
program:
        mov     ebp, ROUNDS
.round: mov     edi, SIEVE
        mov     ecx, SIZE
.clear: mov     byte [rdi], 0
        inc     rdi
        dec     ecx
        jnz     .clear
        xor     edx, edx                ; primes found
        mov     esi, 2
.next:  cmp     byte [rsi + SIEVE], 0
        jne     .composite
        inc     edx
        lea     edi, [rsi + rsi]
.mark:  cmp     edi, SIZE
        jae     .composite
        mov     byte [rdi + SIEVE], 1
        add     edi, esi
        jmp     .mark
.composite:
        inc     esi
        cmp     esi, SIZE
        jb      .next
        expect  edx, PRIMES, 1
        dec     ebp
        jnz     .round
        exit_ok
