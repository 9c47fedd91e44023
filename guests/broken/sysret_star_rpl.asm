; question:  Why does the first interrupt after a system call raise #GP at its IRETQ?
; answer:    SYSRET loads SS from STAR[63:48] + 8 and looks at no descriptor. If RPL 3 is missing there, an AMD
;            processor runs ring 3 with SS = 0x20. No fault until an interrupt saves this SS, and IRETQ refuses it:
;            #GP(0x0020). An Intel processor puts RPL 3 in by itself, and the bug stays asleep.
; bug:       STAR[63:48] holds the selector without its RPL
; fix:       STAR[63:48] = 0x18 | 3
; run:       emu run guests/broken/sysret_star_rpl.asm --trace checks
; mechanism: sysret
; bits:      64
; enter:     int
; leave:     iret
; exit:      0
; exit-amd:  #GP(0x0020)
;
; Volume 2, SYSRET (Intel): SS.Selector is OR'ed with 3. AMD64 Architecture Programmer's Manual, volume 3, SYSRET.

%include "lib/long_mode.inc"

ring0
main:
        mov     ecx, IA32_EFER
        rdmsr
        or      eax, EFER_SCE
        wrmsr
        mov     ecx, IA32_STAR
        xor     eax, eax
        mov     edx, (USER_CODE_32 & ~3) << 16 | KERNEL_CODE    ; here
        wrmsr
        set_gate 0x80, handler, INTERRUPT_GATE | FROM_RING3
        mov     ecx, program
        mov     r11d, USER_FLAGS
        mov     esp, USER_STACK
        o64 sysret

handler:
        iretq

ring3
program:
        int     0x80
        exit_ok
