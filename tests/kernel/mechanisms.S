# The four mechanisms: for each, an empty handler and the loop of ring 3 that goes there and back.
#
# A loop is the instruction, a decrement and a branch. The count is in RDI, which no mechanism touches.

        .intel_syntax noprefix
        .text
        .balign 64

# Volume 2, INT n; IRET.
        .globl  int_gate_handler, int_gate_rounds
int_gate_handler:
        iretq
int_gate_rounds:
        int     0x80
        dec     rdi
        jnz     int_gate_rounds
        ret

# Volume 2, CALL; RET.
        .balign 64
        .globl  call_gate_handler, call_gate_rounds
call_gate_handler:
        retfq
call_gate_rounds:
        call    fword ptr [call_gate_pointer]
        dec     rdi
        jnz     call_gate_rounds
        ret

# Volume 2, SYSCALL; SYSRET. RIP and RFLAGS travel in RCX and R11. RSP stays that of ring 3, which is safe only
# because the handler does not use it and FMASK keeps interrupts out.
        .balign 64
        .globl  syscall_handler, syscall_rounds
syscall_handler:
        sysretq
syscall_rounds:
        syscall
        dec     rdi
        jnz     syscall_rounds
        ret

# Volume 2, SYSENTER; SYSEXIT. Ring 3 says where to return: RIP in RDX, RSP in RCX. Both survive the trip.
        .balign 64
        .globl  sysenter_handler, sysenter_rounds
sysenter_handler:
        sysexitq
sysenter_rounds:
        mov     rcx, rsp
        lea     rdx, [rip + 1f]
0:      sysenter
1:      dec     rdi
        jnz     0b
        ret

# Entries for vectors nobody expects. The processor does not tell a handler its vector, so each has its own.
        .balign 64
        .globl  unexpected_entries
unexpected_entries:
        .set    vector, 0
        .rept   256
        .balign 16
        mov     edi, vector
        jmp     unexpected_entry
        .set    vector, vector + 1
        .endr
unexpected_entry:
        and     rsp, -16                # nothing will return, so an error code does not matter
        call    unexpected
