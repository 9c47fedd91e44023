// Interrupt vectors, and the two tables the manual attaches to them.
#pragma once
#include "arch/integers.hpp"

namespace emu {

enum class Vector : u8 { DE, DB, NMI, BP, OF, BR, UD, NM, DF, CSO, TS, NP, SS, GP, PF, MF = 16, AC, MC, XM, VE, CP };

/// Intel SDM vol. 3, Interrupt 8 - Double Fault Exception: classes that decide whether a second fault is a #DF.
enum class ExceptionClass : u8 { benign, contributory, page_fault, double_fault };

constexpr ExceptionClass exception_class(Vector vector) {
    switch (vector) {
        case Vector::DE:
        case Vector::TS:
        case Vector::NP:
        case Vector::SS:
        case Vector::GP:
        case Vector::CP:
            return ExceptionClass::contributory;
        case Vector::PF:
        case Vector::VE:
            return ExceptionClass::page_fault;
        case Vector::DF:
            return ExceptionClass::double_fault;
        default:
            return ExceptionClass::benign;
    }
}

/// Intel SDM vol. 3, Protected-Mode Exceptions and Interrupts: the column "Error Code".
constexpr bool pushes_error_code(Vector vector) {
    switch (vector) {
        case Vector::DF:
        case Vector::TS:
        case Vector::NP:
        case Vector::SS:
        case Vector::GP:
        case Vector::PF:
        case Vector::AC:
        case Vector::CP:
            return true;
        default:
            return false;
    }
}

}  // namespace emu
