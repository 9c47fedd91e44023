; question:  The handler ends with IRET, so why is it a #GP(0)?
; answer:    In 64-bit mode IRET without REX.W pops doublewords, but the frame has quadwords. The upper half of RIP,
;            0, is taken for CS: a null selector, hence #GP(0x0000).
; bug:       IRET, which assemblers encode with 32-bit operands, returns from a 64-bit frame
; fix:       iretq
; run:       emu run guests/broken/iretd_for_iretq.asm --trace checks
; mechanism: interrupt return
; bits:      64
; enter:     int
; leave:     iret
; exit:      #GP(0x0000)
;
; Volume 2, IRET, Description; Volume 3, "Interrupt and Exception Handling", 64-Bit Mode Stack Frame.

%include "lib/long_mode.inc"

ring0
main:
        set_gate 0x80, handler, INTERRUPT_GATE | FROM_RING3
        enter_ring3 program

handler:
        iret                                    ; here

ring3
program:
        int     0x80
        exit_ok
