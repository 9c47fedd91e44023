; question:  CS of the frame is right, so why does IRETQ still raise #GP?
; answer:    SS must fit: its RPL has to equal the RPL of CS. The frame has SS = 0x20, RPL 0, hence #GP(0x0020),
;            raised in ring 0, at IRETQ.
; bug:       the index of the user's data segment is right, but RPL 3 is forgotten
; fix:       push USER_DATA (0x20 | 3)
; run:       emu run guests/broken/iret_ss_rpl0.asm --trace checks
; mechanism: interrupt return
; bits:      64
; enter:     none
; leave:     iret
; exit:      #GP(0x0020)
;
; Volume 2, IRET, IA-32e-MODE and RETURN-TO-OUTER-PRIVILEGE-LEVEL.

%include "lib/long_mode.inc"

ring0
main:
        push    USER_DATA & ~3                  ; here
        push    USER_STACK
        push    USER_FLAGS
        push    USER_CODE
        push    program
        iretq

ring3
program:
        exit_ok
