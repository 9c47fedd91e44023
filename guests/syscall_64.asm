; question:  What is the least a system call can be?
; answer:    SYSCALL and SYSRET: RIP goes to RCX, RFLAGS to R11, CS and SS come from STAR. No memory is touched, and
;            RSP is still the stack of ring 3.
; run:       emu run guests/syscall_64.asm --trace checks
; mechanism: syscall
; bits:      64
; enter:     syscall
; leave:     sysret
; exit:      0
; published: seed-x86lol-syscall
;
; Volume 2, SYSCALL; SYSRET. Compare with guests/syscall_swapgs_64.asm, which gets a stack.

%include "lib/long_mode.inc"

; Bits 47..32: CS and SS for SYSCALL. Bits 63..48: base of those for SYSRET, RPL included.
STAR_HIGH       equ USER_CODE_32 << 16 | KERNEL_CODE

ring0
main:
        mov     ecx, IA32_EFER
        rdmsr
        or      eax, EFER_SCE                   ; without it SYSCALL is #UD
        wrmsr
        mov     ecx, IA32_STAR
        xor     eax, eax
        mov     edx, STAR_HIGH
        wrmsr
        write_msr IA32_LSTAR, witness
        write_msr IA32_FMASK, FLAG_IF           ; no interrupt may come while RSP belongs to ring 3
        enter_ring3 program

; The first trip: look at everything the processor did. No push, no call: there is no stack to trust.
witness:
        mov     eax, cs
        expect  eax, KERNEL_CODE, 1             ; STAR[47:32]
        mov     eax, ss
        expect  eax, KERNEL_DATA, 2             ; STAR[47:32] + 8
        expect  rsp, USER_STACK, 3              ; unchanged
        expect  rcx, program.first, 4           ; where SYSRET returns to
        mov     eax, r11d
        and     eax, FLAG_IF | FLAG_IOPL_3
        expect  eax, FLAG_IF | FLAG_IOPL_3, 5   ; the flags before the mask
        mov     r8, rcx                         ; WRMSR needs RCX
        write_msr IA32_LSTAR, checked_flags
        mov     rcx, r8
        o64 sysret

; The second trip proves the mask, on a stack that is known to exist.
checked_flags:
        mov     esp, KERNEL_STACK
        pushfq
        pop     rax
        and     eax, FLAG_IF
        expect  eax, 0, 6
        mov     r8, rcx
        write_msr IA32_LSTAR, handler
        mov     rcx, r8
        mov     esp, USER_STACK
        o64 sysret

; All other trips: nothing but the transition.
handler:
        o64 sysret                              ; REX.W: back to 64-bit mode; without it, to compatibility mode

ring3
program:
        syscall
.first: mov     eax, cs
        expect  eax, USER_CODE, 7               ; STAR[63:48] + 16
        mov     eax, ss
        expect  eax, USER_DATA, 8               ; STAR[63:48] + 8
        expect  rsp, USER_STACK, 9
        syscall
        pushfq
        pop     rax
        and     eax, FLAG_IF
        expect  eax, FLAG_IF, 10                ; SYSRET takes RFLAGS back from R11

        mov     ebx, ROUNDS                     ; not ECX: it is lost in every trip
.round: syscall
        dec     ebx
        jnz     .round
        exit_ok
