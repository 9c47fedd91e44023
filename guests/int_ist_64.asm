; question:  How can a handler have a stack of its own, whatever RSP and RSP0 are?
; answer:    The gate names one of seven entries of the interrupt stack table in the TSS. It is taken even without a
;            change of ring. The frame is that of every interrupt in 64-bit mode.
; run:       emu run guests/int_ist_64.asm --trace checks
; mechanism: interrupt gate, IST
; bits:      64
; enter:     int
; leave:     iret
; exit:      0
;
; Volume 3, "Interrupt and Exception Handling", Interrupt Stack Table.

%include "lib/long_mode.inc"

ring0
main:
        set_gate 0x80, witness, INTERRUPT_GATE | FROM_RING3 | USE_IST1
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1
        expect  rsp, IST_STACK - 5 * 8, 2       ; IST1, although ring 3 came here and RSP0 is valid
        expect  qword [rsp + 0], program.first, 3
        expect  qword [rsp + 8], USER_CODE, 4
        expect  qword [rsp + 24], USER_STACK, 5
        set_gate 0x80, nested, INTERRUPT_GATE | FROM_RING3 | USE_IST1
        mov     rbp, rsp
        mov     esp, BOOT_STACK
        int     0x80                            ; from ring 0: IST1 again, so it overwrites the frame above
.inner: expect  rsp, BOOT_STACK, 6              ; IRETQ pops RSP always, even within a ring
        set_gate 0x80, handler, INTERRUPT_GATE | FROM_RING3 | USE_IST1
        push    USER_DATA                       ; which is why this frame must be made again
        push    USER_STACK
        push    USER_FLAGS
        push    USER_CODE
        push    program.first
        iretq

nested:
        expect  rsp, rbp, 7                     ; the same place: an IST stack is for handlers that cannot nest
        expect  qword [rsp + 0], witness.inner, 8
        expect  qword [rsp + 8], KERNEL_CODE, 9
        iretq

; All other trips: nothing but the transition.
handler:
        iretq

ring3
program:
        int     0x80
.first: mov     eax, cs
        expect  eax, USER_CODE, 10
        expect  rsp, USER_STACK, 11

        mov     ebx, ROUNDS
.round: int     0x80
        dec     ebx
        jnz     .round
        exit_ok
