; question:  Why does the machine reset at the first IRET to ring 3?
; answer:    The frame says CS = 0x0B: ring 3 (RPL 3) in a segment of ring 0 (DPL 0). A non-conforming code segment
;            needs DPL = RPL, so IRET raises #GP(0x0008). There is no IDT: delivering #GP raises #GP again, this makes
;            #DF, which cannot be delivered either, and the processor shuts down.
; bug:       the selector of the kernel's code segment with RPL 3, instead of the user's
; fix:       push USER_CODE (0x1B), a code segment with DPL 3
; run:       emu run guests/broken/iret_cs_dpl0.asm --trace checks
; mechanism: interrupt return
; bits:      32
; enter:     none
; leave:     iret
; exit:      shutdown
;
; Volume 2, IRET, RETURN-TO-OUTER-PRIVILEGE-LEVEL; Volume 3, "Interrupt and Exception Handling", Interrupt 8.

%include "lib/protected_mode.inc"

ring0
main:
        lidt    [no_idt]
        push    dword USER_DATA
        push    dword USER_STACK
        push    dword USER_FLAGS
        push    dword KERNEL_CODE | 3           ; here
        push    dword program
        iretd

no_idt: dw      0
        dd      0

ring3
program:
        exit_ok
