; question:  What do SYSENTER and SYSEXIT leave to software, in 32-bit mode?
; answer:    Nearly everything: no memory is read or written. CS, SS, ESP and EIP of ring 0 come from MSRs, and ring 3
;            must remember where to return: EIP in EDX, ESP in ECX. IF is cleared and stays cleared.
; run:       emu run guests/sysenter_32.asm --trace checks
; mechanism: sysenter
; bits:      32
; enter:     sysenter
; leave:     sysexit
; exit:      0
;
; Volume 2, SYSENTER; SYSEXIT.

%include "lib/protected_mode.inc"

ring0
main:
        write_msr IA32_SYSENTER_CS, KERNEL_CODE
        write_msr IA32_SYSENTER_ESP, KERNEL_STACK
        write_msr IA32_SYSENTER_EIP, witness
        enter_ring3 program

; The first trip: look at everything the processor did.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1             ; IA32_SYSENTER_CS
        mov     eax, ss
        expect  eax, KERNEL_DATA, 2             ; IA32_SYSENTER_CS + 8: computed, not looked up
        expect  esp, KERNEL_STACK, 3            ; IA32_SYSENTER_ESP, and nothing was pushed
        pushfd
        pop     eax
        and     eax, FLAG_IF
        expect  eax, 0, 4
        mov     esi, ecx                        ; WRMSR needs the registers in which ring 3 left its ESP and EIP
        mov     edi, edx
        write_msr IA32_SYSENTER_EIP, handler
        mov     ecx, esi
        mov     edx, edi
        sysexit

; All other trips: nothing but the transition.
handler:
        sysexit

ring3
program:
        mov     ecx, esp                        ; what SYSEXIT will load; ring 0 would not know
        mov     edx, .first
        sysenter
.first: mov     eax, cs
        expect  eax, USER_CODE, 5               ; IA32_SYSENTER_CS + 16, RPL 3
        mov     eax, ss
        expect  eax, USER_DATA, 6               ; IA32_SYSENTER_CS + 24, RPL 3
        expect  esp, USER_STACK, 7
        pushfd
        pop     eax
        and     eax, FLAG_IF
        expect  eax, 0, 8                       ; SYSEXIT restores no flags: a real kernel puts STI before it

        mov     ebx, ROUNDS
        mov     ecx, esp                        ; ECX and EDX survive the trip, so once is enough
        mov     edx, .back
.round: sysenter
.back:  dec     ebx
        jnz     .round
        exit_ok
