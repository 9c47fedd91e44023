; question:  What do SYSENTER and SYSEXIT leave to software, in 64-bit mode?
; answer:    Nearly everything: no memory is read or written. CS, SS, RSP and RIP of ring 0 come from MSRs, and ring 3
;            must remember where to return: RIP in RDX, RSP in RCX. IF is cleared and stays cleared.
; run:       emu run guests/sysenter_64.asm --trace checks
; mechanism: sysenter
; bits:      64
; enter:     sysenter
; leave:     sysexit
; exit:      0
; published: seed-x86lol-sysenter
;
; Volume 2, SYSENTER; SYSEXIT. On AMD processors both are #UD in long mode.

%include "lib/long_mode.inc"

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
        expect  rsp, KERNEL_STACK, 3            ; IA32_SYSENTER_ESP, and nothing was pushed
        pushfq
        pop     rax
        and     eax, FLAG_IF
        expect  eax, 0, 4
        mov     r8, rcx                         ; WRMSR needs the registers in which ring 3 left its RSP and RIP
        mov     r9, rdx
        write_msr IA32_SYSENTER_EIP, handler
        mov     rcx, r8
        mov     rdx, r9
        o64 sysexit

; All other trips: nothing but the transition.
handler:
        o64 sysexit                             ; REX.W: back to 64-bit mode; without it, to compatibility mode

ring3
program:
        mov     rcx, rsp                        ; what SYSEXIT will load; ring 0 would not know
        mov     edx, .first
        sysenter
.first: mov     eax, cs
        expect  eax, USER_CODE, 5               ; IA32_SYSENTER_CS + 32, RPL 3
        mov     eax, ss
        expect  eax, SYSEXIT_DATA, 6            ; IA32_SYSENTER_CS + 40, RPL 3: not the SS we came with
        expect  rsp, USER_STACK, 7
        pushfq
        pop     rax
        and     eax, FLAG_IF
        expect  eax, 0, 8                       ; SYSEXIT restores no flags: a real kernel puts STI before it

        mov     ebx, ROUNDS
        mov     rcx, rsp                        ; RCX and RDX survive the trip, so once is enough
        mov     edx, .back
.round: sysenter
.back:  dec     ebx
        jnz     .round
        exit_ok
