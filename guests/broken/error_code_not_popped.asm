; question:  Why does IRETQ complain about a selector that nobody ever made?
; answer:    The error code lies below the frame. IRETQ takes it for RIP, RIP for CS, CS for RFLAGS, and so on. The
;            selector is the low half of RIP, 0x1238: beyond the limit of the GDT, hence #GP(0x1238).
; bug:       the handler of an exception with error code returns without removing it
; fix:       add rsp, 8 before IRETQ
; run:       emu run guests/broken/error_code_not_popped.asm --trace checks
; mechanism: interrupt return
; bits:      64
; enter:     #PF
; leave:     iret
; exit:      #GP(0x1238)
;
; Volume 3, "Interrupt and Exception Handling", Error Code: it must be removed by the handler.

%include "lib/long_mode.inc"

VECTOR_PF       equ 14
ABSENT          equ USER + 0x200000             ; no entry in the page directory

ring0
main:
        set_gate VECTOR_PF, page_fault, INTERRUPT_GATE
        enter_ring3 program

page_fault:
        iretq                                   ; here

ring3
        times   0x1238 - ($ - $$) nop           ; a RIP to recognise
program:
        mov     eax, [ABSENT]
        exit_ok
