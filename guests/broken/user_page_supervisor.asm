; question:  The page of ring 3 has U/S = 1, so why does its first fetch raise #PF?
; answer:    U/S counts at every level, and the PML4 entry has U/S = 0. IRETQ succeeds; then the fetch raises
;            #PF(0x0005): present (bit 0), from ring 3 (bit 2), and CR2 = RIP.
; bug:       an upper table was made without U/S
; fix:       set U/S in all upper tables, and decide in the last
; run:       emu run guests/broken/user_page_supervisor.asm --trace checks
; mechanism: page fault
; bits:      64
; enter:     #PF
; leave:     none
; exit:      #PF(0x0005)
;
; Volume 3, "Paging", Access Rights; Page-Fault Exceptions. Bit 4 (fetch) stays 0 without CR4.SMEP and EFER.NXE.

%include "lib/long_mode.inc"

VECTOR_PF       equ 14

ring0
main:
        and     qword [PML4], ~PAGE_USER        ; here
        mov     rax, cr3
        mov     cr3, rax                        ; forget translations made before
        set_gate VECTOR_PF, page_fault, INTERRUPT_GATE
        enter_ring3 program

; Ends as any exception does, but only if it is the one this guest is about.
page_fault:
        expect  qword [rsp + 0], 5, 1           ; error code
        mov     rax, cr2
        expect  rax, program, 2
        mov     al, VECTOR_PF
        jmp     unexpected_exception

ring3
program:
        exit_ok
