; question:  What does INT n through an interrupt gate leave on which stack, in 64-bit mode?
; answer:    SS, RSP, RFLAGS, CS and RIP, a quadword each, on the stack that RSP0 of the TSS names. SS becomes null,
;            IF is cleared. IRETQ takes all of it back.
; run:       emu run guests/int_gate_64.asm --trace checks
; mechanism: interrupt gate
; bits:      64
; enter:     int
; leave:     iret
; exit:      0
; published: seed-x86lol-int_gate
;
; Volume 2, INT n, and Volume 3, "Interrupt and Exception Handling", 64-Bit Mode Stack Frame.

%include "lib/long_mode.inc"

ring0
main:
        set_gate 0x80, witness, INTERRUPT_GATE | FROM_RING3
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1             ; ring 0, because the gate names a DPL-0 code segment
        mov     eax, ss
        expect  eax, 0, 2                       ; 64-bit mode loads a null selector, with RPL = new CPL
        expect  rsp, KERNEL_STACK - 5 * 8, 3    ; the stack comes from RSP0, not from ring 3
        expect  qword [rsp + 0], program.first, 4       ; RIP: after INT, not at it
        expect  qword [rsp + 8], USER_CODE, 5           ; CS with its RPL 3: the only memory of where we came from
        expect  qword [rsp + 24], USER_STACK, 6
        expect  qword [rsp + 32], USER_DATA, 7
        mov     rax, [rsp + 16]
        and     eax, FLAG_IF
        expect  eax, FLAG_IF, 8                 ; RFLAGS are saved before IF is cleared
        pushfq
        pop     rax
        and     eax, FLAG_IF
        expect  eax, 0, 9                       ; an interrupt gate clears IF
        set_gate 0x80, handler, INTERRUPT_GATE | FROM_RING3
        iretq

; All other trips: nothing but the transition.
handler:
        iretq

ring3
program:
        int     0x80
.first: mov     eax, cs
        expect  eax, USER_CODE, 10
        mov     eax, ss
        expect  eax, USER_DATA, 11
        expect  rsp, USER_STACK, 12

        mov     ebx, ROUNDS
.round: int     0x80
        dec     ebx
        jnz     .round
        exit_ok
