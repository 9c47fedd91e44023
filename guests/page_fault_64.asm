; question:  What does a page fault tell the handler, and what does it cost?
; answer:    The address in CR2, the reason as an error code on the stack (4: ring 3, read, not present), and RIP at the
;            load. It costs a failed page walk, an entry through the gate and an IRETQ.
; run:       emu run guests/page_fault_64.asm --trace checks
; mechanism: page fault
; bits:      64
; enter:     #PF
; leave:     iret
; exit:      0
;
; Volume 3, "Paging", Page-Fault Exceptions, and "Interrupt and Exception Handling", Interrupt 14.

%include "lib/long_mode.inc"

VECTOR_PF       equ 14
ABSENT          equ USER + 0x200000             ; the next 2 MiB: no entry in the page directory

ring0
main:
        set_gate VECTOR_PF, witness, INTERRUPT_GATE
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1
        expect  rsp, KERNEL_STACK - 6 * 8, 2    ; the five quadwords of INT n, and the error code
        expect  qword [rsp + 0], 1 << 2, 3      ; U/S = 1 (from ring 3), W/R = 0 (a read), P = 0 (not present)
        expect  qword [rsp + 8], program.load, 4
        expect  qword [rsp + 16], USER_CODE, 5
        mov     rax, cr2
        expect  rax, ABSENT, 6
        set_gate VECTOR_PF, handler, INTERRUPT_GATE
        add     rsp, 8
        add     qword [rsp], program.after - program.load
        iretq

; All other trips: nothing but the transition and the step over the load. A kernel would map the page instead,
; and let the load run again.
handler:
        add     rsp, 8                          ; IRETQ does not know about the error code
        add     qword [rsp], program.after - program.load
        iretq

ring3
program:
        mov     esi, ABSENT
        mov     ebp, 0x600D
.load:  mov     ebp, [rsi]
.after: expect  ebp, 0x600D, 7                  ; a fault undoes its instruction: nothing was loaded
        mov     eax, cs
        expect  eax, USER_CODE, 8
        expect  rsp, USER_STACK, 9

        mov     esi, ABSENT
        mov     ebx, ROUNDS
.round: mov     ebp, [rsi]
        dec     ebx
        jnz     .round
        exit_ok
