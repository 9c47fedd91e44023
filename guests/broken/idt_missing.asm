; question:  Why does INT 0x80 reset the machine, even before its handler exists?
; answer:    The limit of IDTR is 0, so entry 0x80 is beyond it: #GP(0x0402). Entry 13 is beyond it too, which makes
;            #DF, and entry 8 is beyond it: shutdown.
; bug:       ring 3 runs before LIDT
; fix:       load an IDT, at least with #DF and #GP, before anything can fault
; run:       emu run guests/broken/idt_missing.asm --trace checks
; mechanism: interrupt gate
; bits:      32
; enter:     int
; leave:     none
; exit:      shutdown
;
; Volume 2, INT n, PROTECTED-MODE; Volume 3, "Interrupt and Exception Handling", Interrupt 8.

%include "lib/protected_mode.inc"

ring0
main:
        lidt    [no_idt]                        ; here
        enter_ring3 program

no_idt: dw      0
        dd      0

ring3
program:
        int     0x80
        exit_ok
