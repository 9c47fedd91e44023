; question:  LGDT succeeds, so why does the far jump after it raise #GP?
; answer:    LGDT checks nothing. The limit is in bytes and names the last one; here it is 3. The descriptor of
;            selector 0x08 ends at byte 15, beyond the limit: #GP(0x0008). All segment registers still work from their
;            hidden parts. No handler can run, since its CS is beyond the limit too: #DF, then shutdown.
; bug:       the limit counts entries instead of bytes
; fix:       limit = size of the table in bytes - 1
; run:       emu run guests/broken/gdt_reload_bad_limit.asm --trace checks
; mechanism: far jump
; bits:      32
; enter:     none
; leave:     none
; exit:      shutdown
;
; Volume 2, LGDT; JMP, PROTECTED-MODE; Volume 3, "Protection", Limit Checking.

%include "lib/protected_mode.inc"

ring0
main:
        lgdt    [bad_gdt_register]
        jmp     KERNEL_CODE:.reload
.reload:
        exit_ok

bad_gdt_register:
        dw      3                               ; here: four entries, counted from 0
        dd      gdt
