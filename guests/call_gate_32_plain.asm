; question:  What does a far CALL through a call gate cost without parameters?
; answer:    Four pushes instead of the five of INT n: SS, ESP, CS and EIP, but no EFLAGS.
; run:       emu run guests/call_gate_32_plain.asm --trace checks
; mechanism: call gate
; bits:      32
; enter:     call far
; leave:     retf
; exit:      0
;
; Volume 3, "Protection", Accessing a Code Segment Through a Call Gate. Compare with guests/call_gate_32.asm.

%include "lib/protected_mode.inc"

ring0
main:
        set_call_gate witness, 0
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1
        mov     eax, ss
        expect  eax, KERNEL_DATA, 2
        expect  esp, KERNEL_STACK - 4 * 4, 3
        expect  dword [esp + 0], program.first, 4
        expect  dword [esp + 4], USER_CODE, 5
        expect  dword [esp + 8], USER_STACK, 6
        expect  dword [esp + 12], USER_DATA, 7
        pushfd
        pop     eax
        and     eax, FLAG_IF
        expect  eax, FLAG_IF, 8                 ; a call gate leaves all flags alone
        set_call_gate handler, 0
        retf

; All other trips: nothing but the transition.
handler:
        retf

ring3
program:
        call    CALL_GATE:0xDEADBEEF            ; the offset is ignored: callers cannot choose where they enter
.first: mov     eax, cs
        expect  eax, USER_CODE, 9
        mov     eax, ss
        expect  eax, USER_DATA, 10
        expect  esp, USER_STACK, 11

        mov     ebx, ROUNDS
.round: call    CALL_GATE:0
        dec     ebx
        jnz     .round
        exit_ok
