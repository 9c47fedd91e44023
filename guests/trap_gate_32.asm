; question:  What is the difference between a trap gate and an interrupt gate, in 32-bit mode?
; answer:    One bit of type in the gate, and one flag: through a trap gate IF stays set. Stack and frame are the same.
; run:       emu run guests/trap_gate_32.asm --trace checks
; mechanism: trap gate
; bits:      32
; enter:     int
; leave:     iret
; exit:      0
;
; Volume 3, "Interrupt and Exception Handling", Flag Usage By Exception- or Interrupt-Handler Procedure.

%include "lib/protected_mode.inc"

ring0
main:
        set_gate 0x80, witness, TRAP_GATE | FROM_RING3
        enter_ring3 program

; The first trip: look at what differs from guests/int_gate_32.asm, and that the rest does not.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1
        expect  esp, KERNEL_STACK - 5 * 4, 2
        expect  dword [esp + 0], program.first, 3
        expect  dword [esp + 4], USER_CODE, 4
        pushfd
        pop     eax
        and     eax, FLAG_IF
        expect  eax, FLAG_IF, 5                 ; still set: from here on, a device may interrupt the handler
        set_gate 0x80, handler, TRAP_GATE | FROM_RING3
        iretd

; All other trips: nothing but the transition.
handler:
        iretd

ring3
program:
        int     0x80
.first: mov     eax, cs
        expect  eax, USER_CODE, 6
        expect  esp, USER_STACK, 7

        mov     ebx, ROUNDS
.round: int     0x80
        dec     ebx
        jnz     .round
        exit_ok
