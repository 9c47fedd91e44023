; question:  Why is a system call a #GP, although handler and gate are fine?
; answer:    INT n needs CPL <= DPL of the gate, and 3 <= 0 does not hold: #GP(0x0402). The error code is no segment:
;            bit 1 says IDT, and the rest, 0x80 * 8, is the vector.
; bug:       the gate of the system call has DPL 0
; fix:       DPL 3, and only for this gate: ring 3 must not raise the vectors of exceptions and devices
; run:       emu run guests/broken/int_gate_dpl0.asm --trace checks
; mechanism: interrupt gate
; bits:      32
; enter:     int
; leave:     none
; exit:      #GP(0x0402)
;
; Volume 2, INT n, PROTECTED-MODE; Volume 3, "Interrupt and Exception Handling", Error Code.

%include "lib/protected_mode.inc"

VECTOR_GP       equ 13

ring0
main:
        set_gate 0x80, handler, INTERRUPT_GATE          ; here: | FROM_RING3 is missing
        set_gate VECTOR_GP, general_protection, INTERRUPT_GATE
        enter_ring3 program

handler:
        iretd

; Ends as any exception does, but only if it is the one this guest is about.
general_protection:
        expect  dword [esp + 0], 0x80 * 8 + 2, 1        ; error code
        expect  dword [esp + 4], program, 2             ; EIP: at INT
        mov     al, VECTOR_GP
        jmp     unexpected_exception

ring3
program:
        int     0x80
        exit_ok
