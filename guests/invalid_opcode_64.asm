; question:  Can a system call be made without any instruction for it, in 64-bit mode?
; answer:    Yes: any fault will do. LOCK NOP (F0 90) raises #UD; the handler steps over its two bytes and returns.
; run:       emu run guests/invalid_opcode_64.asm --trace checks
; mechanism: invalid opcode
; bits:      64
; enter:     #UD
; leave:     iret
; exit:      0
;
; Volume 3, "Interrupt and Exception Handling", Interrupt 6. #UD serves best: it pushes no error code,
; and provoking it needs no memory access.

%include "lib/long_mode.inc"

VECTOR_UD       equ 6

%macro lock_nop 0
        db      0xF0, 0x90                      ; LOCK needs an instruction that writes memory
%endmacro

ring0
main:
        set_gate VECTOR_UD, witness, INTERRUPT_GATE     ; DPL 0 suffices: it counts for INT n, not for exceptions
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1
        expect  rsp, KERNEL_STACK - 5 * 8, 2    ; #UD pushes no error code
        expect  qword [rsp + 0], program, 3     ; RIP: at the instruction, since #UD is a fault
        expect  qword [rsp + 8], USER_CODE, 4
        expect  qword [rsp + 24], USER_STACK, 5
        set_gate VECTOR_UD, handler, INTERRUPT_GATE
        add     qword [rsp], 2
        iretq

; All other trips: nothing but the transition and the step over LOCK NOP.
handler:
        add     qword [rsp], 2
        iretq

ring3
program:
        lock_nop
        mov     eax, cs
        expect  eax, USER_CODE, 6
        expect  rsp, USER_STACK, 7

        mov     ebx, ROUNDS
.round: lock_nop
        dec     ebx
        jnz     .round
        exit_ok
