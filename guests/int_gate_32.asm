; question:  What does INT n through an interrupt gate leave on which stack, in 32-bit mode?
; answer:    SS, ESP, EFLAGS, CS and EIP, a doubleword each, on the stack that SS0:ESP0 of the TSS names. IF is cleared.
;            IRET takes all of it back.
; run:       emu run guests/int_gate_32.asm --trace checks
; mechanism: interrupt gate
; bits:      32
; enter:     int
; leave:     iret
; exit:      0
;
; Volume 2, INT n, and Volume 3, "Interrupt and Exception Handling", Exception- or Interrupt-Handler Procedures.

%include "lib/protected_mode.inc"

ring0
main:
        set_gate 0x80, witness, INTERRUPT_GATE | FROM_RING3
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1             ; ring 0, because the gate names a DPL-0 code segment
        mov     eax, ss
        expect  eax, KERNEL_DATA, 2             ; SS0 of the TSS
        expect  esp, KERNEL_STACK - 5 * 4, 3    ; ESP0 of the TSS
        expect  dword [esp + 0], program.first, 4       ; EIP: after INT, not at it
        expect  dword [esp + 4], USER_CODE, 5           ; CS with its RPL 3: the only memory of where we came from
        expect  dword [esp + 12], USER_STACK, 6
        expect  dword [esp + 16], USER_DATA, 7
        mov     eax, [esp + 8]
        and     eax, FLAG_IF
        expect  eax, FLAG_IF, 8                 ; EFLAGS are saved before IF is cleared
        pushfd
        pop     eax
        and     eax, FLAG_IF
        expect  eax, 0, 9                       ; an interrupt gate clears IF
        set_gate 0x80, handler, INTERRUPT_GATE | FROM_RING3
        iretd

; All other trips: nothing but the transition.
handler:
        iretd

ring3
program:
        int     0x80
.first: mov     eax, cs
        expect  eax, USER_CODE, 10
        mov     eax, ss
        expect  eax, USER_DATA, 11
        expect  esp, USER_STACK, 12

        mov     ebx, ROUNDS
.round: int     0x80
        dec     ebx
        jnz     .round
        exit_ok
