; question:  Ring 3 runs, so why does its first system call reset the machine?
; answer:    The entry to ring 0 takes RSP from RSP0 of the TSS. That is 0, so the first push goes to
;            0xFFFFFFFFFFFFFFF8, which is not mapped: #PF. Delivering #PF needs the same stack, which makes #DF, which
;            needs it too: shutdown.
; bug:       the TSS is loaded, but nobody wrote RSP0
; fix:       set RSP0 to the kernel stack of the thread, before each return to ring 3
; run:       emu run guests/broken/tss_rsp0_unset.asm --trace checks
; mechanism: interrupt gate
; bits:      64
; enter:     int
; leave:     none
; exit:      shutdown
;
; Volume 3, "Interrupt and Exception Handling", Stack Switching in IA-32e Mode; Interrupt 8.

%include "lib/long_mode.inc"

TSS_RSP0        equ 4                           ; offset in the TSS

ring0
main:
        mov     qword [tss + TSS_RSP0], 0       ; here
        set_gate 0x80, handler, INTERRUPT_GATE | FROM_RING3
        enter_ring3 program

handler:
        iretq

ring3
program:
        int     0x80
        exit_ok
