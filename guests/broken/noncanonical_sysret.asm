; question:  What happens if SYSRET is to return to an address that cannot exist?
; answer:    #GP(0x0000). On Intel processors SYSRET itself raises it, still in ring 0, so the stack does not change:
;            the frame goes wherever RSP of ring 3 points. On AMD processors it is raised after, in ring 3, on a good
;            stack.
; bug:       RCX is not checked, and RSP of ring 3 is loaded before SYSRET
; fix:       return by IRETQ if RCX is not canonical
; run:       emu run guests/broken/noncanonical_sysret.asm --trace checks
; mechanism: sysret
; bits:      64
; enter:     none
; leave:     sysret
; exit:      #GP(0x0000)
;
; Volume 2, SYSRET (Intel). CVE-2012-0217: several kernels let ring 3 choose where ring 0 writes.

%include "lib/long_mode.inc"

ring0
main:
        mov     ecx, IA32_EFER
        rdmsr
        or      eax, EFER_SCE
        wrmsr
        mov     ecx, IA32_STAR
        xor     eax, eax
        mov     edx, USER_CODE_32 << 16 | KERNEL_CODE
        wrmsr
        mov     rcx, 1 << 47                    ; here: bit 47 is set, bits 63..48 are not
        mov     r11d, USER_FLAGS
        mov     esp, USER_STACK
        o64 sysret

ring3
program:
        exit_ok
