; question:  What does a far CALL through a call gate do in 64-bit mode?
; answer:    It takes the target from the gate, not from the caller, and pushes SS, RSP, CS and RIP, a quadword each, on
;            the stack of RSP0. No flags, no parameters. A far RET with REX.W takes it back.
; run:       emu run guests/call_gate_64.asm --trace checks
; mechanism: call gate
; bits:      64
; enter:     call far
; leave:     retf
; exit:      0
; published: seed-x86lol-call_gate
;
; Volume 2, CALL, and Volume 3, "Protection", IA-32e Mode Call Gates; Stack Switching in 64-bit Mode.

%include "lib/long_mode.inc"

ring0
main:
        set_call_gate witness
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1             ; the gate names KERNEL_CODE with RPL 0
        mov     eax, ss
        expect  eax, 0, 2                       ; 64-bit mode loads a null selector, with RPL = new CPL
        expect  rsp, KERNEL_STACK - 4 * 8, 3
        expect  qword [rsp + 0], program.first, 4
        expect  qword [rsp + 8], USER_CODE, 5
        expect  qword [rsp + 16], USER_STACK, 6
        expect  qword [rsp + 24], USER_DATA, 7
        pushfq
        pop     rax
        and     eax, FLAG_IF
        expect  eax, FLAG_IF, 8                 ; a call gate leaves all flags alone
        set_call_gate handler
        retfq

; All other trips: nothing but the transition.
handler:
        retfq

ring3
program:
        call    far dword [gate]                ; 64-bit mode has only this form: a pointer in memory
.first: mov     eax, cs
        expect  eax, USER_CODE, 9
        mov     eax, ss
        expect  eax, USER_DATA, 10
        expect  rsp, USER_STACK, 11

        mov     ebx, ROUNDS
.round: call    far dword [gate]
        dec     ebx
        jnz     .round
        exit_ok

gate:   dd      0xDEADBEEF                      ; the offset is ignored: callers cannot choose where they enter
        dw      CALL_GATE
