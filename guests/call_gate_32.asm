; question:  How do parameters on the stack reach ring 0, if ring 0 has a stack of its own?
; answer:    The processor copies as many doublewords as the call gate says, between SS:ESP and CS:EIP of the caller.
;            RET 8 drops them from both stacks.
; run:       emu run guests/call_gate_32.asm --trace checks
; mechanism: call gate, 2 parameters
; bits:      32
; enter:     call far
; leave:     retf
; exit:      0
;
; Volume 3, "Protection", Call Gates; Stack Switching. 64-bit mode has no parameter copying.

%include "lib/protected_mode.inc"

PARAMETERS      equ 2

ring0
main:
        set_call_gate witness, PARAMETERS
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1
        mov     eax, ss
        expect  eax, KERNEL_DATA, 2
        expect  esp, KERNEL_STACK - (4 + PARAMETERS) * 4, 3
        expect  dword [esp + 0], program.first, 4
        expect  dword [esp + 4], USER_CODE, 5
        expect  dword [esp + 8], 0x22222222, 6          ; the parameters, in the order of the caller's stack
        expect  dword [esp + 12], 0x11111111, 7
        expect  dword [esp + 16], USER_STACK - PARAMETERS * 4, 8
        expect  dword [esp + 20], USER_DATA, 9
        set_call_gate handler, PARAMETERS
        retf    PARAMETERS * 4

; All other trips: nothing but the transition.
handler:
        retf    PARAMETERS * 4

ring3
program:
        push    dword 0x11111111
        push    dword 0x22222222
        call    CALL_GATE:0xDEADBEEF            ; the offset is ignored: callers cannot choose where they enter
.first: mov     eax, cs
        expect  eax, USER_CODE, 10
        mov     eax, ss
        expect  eax, USER_DATA, 11
        expect  esp, USER_STACK, 12             ; the parameters are gone here too

        mov     ebx, ROUNDS
.round: push    eax
        push    eax
        call    CALL_GATE:0
        dec     ebx
        jnz     .round
        exit_ok
