// A 16550 UART at 0x3F8 for polled output: the transmitter is always empty, nothing ever arrives from outside, and no
// interrupt is ever pending. Loopback works, since drivers use it to find out whether the port exists.
// Register layout: National Semiconductor PC16550D data sheet, section "Registers".
#pragma once
#include "devices/output.hpp"

namespace emu {

class SerialPort {
 public:
    static constexpr u16 base = 0x3F8, last = 0x3FF;

    explicit SerialPort(Output& output) : output_{output} {}
    u8 read(u16 offset);
    void write(u16 offset, u8 value);
    void reset() { registers_ = {}; }

 private:
    struct Registers {
        u8 interrupt_enable = 0, line_control = 0, modem_control = 0, scratch = 0;
        u8 divisor_low = 0, divisor_high = 0, received = 0;
        bool fifo = false, data_ready = false;
    };
    bool divisor_latch() const { return bit(registers_.line_control, 7); }
    bool loopback() const { return bit(registers_.modem_control, 4); }
    u8 modem_status() const;

    Output& output_;
    Registers registers_;
};

}  // namespace emu
