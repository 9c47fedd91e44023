; question:  Why does LTR work once and raise #GP the second time?
; answer:    LTR sets the busy bit in the descriptor, in memory: type 9 (available) becomes 11 (busy). LTR accepts an
;            available TSS only, hence #GP(0x0038).
; bug:       the task register is loaded again, with a descriptor already in use
; fix:       load TR once per processor, one descriptor each; or write the descriptor anew before
; run:       emu run guests/broken/ltr_busy.asm --trace checks
; mechanism: system segment load
; bits:      64
; enter:     none
; leave:     none
; exit:      #GP(0x0038)
;
; Volume 2, LTR; Volume 3, "Task Management", TSS Descriptor.

%include "lib/long_mode.inc"

ring0
main:                                           ; lib/long_mode.inc has loaded TR
        mov     eax, TASK_STATE
        ltr     ax                              ; here
        exit_ok
