#include "devices/serial_port.hpp"

namespace emu {

namespace {
enum Register : u16 { data, interrupt_enable, identification, line_control, modem_control, line_status, modem_status_ };
constexpr u8 transmitter_empty = 0x60;  // line status: holding register empty, shift register empty
constexpr u8 no_interrupt = 0x01, fifos_enabled = 0xC0;
constexpr u8 peer_ready = 0xB0;  // modem status: DCD, DSR and CTS
}  // namespace

u8 SerialPort::read(u16 offset) {
    switch (offset) {
        case data:
            if (divisor_latch()) return registers_.divisor_low;
            registers_.data_ready = false;
            return registers_.received;
        case interrupt_enable:
            return divisor_latch() ? registers_.divisor_high : registers_.interrupt_enable;
        case identification:
            return no_interrupt | (registers_.fifo ? fifos_enabled : u8{0});
        case line_control:
            return registers_.line_control;
        case modem_control:
            return registers_.modem_control;
        case line_status:
            return transmitter_empty | static_cast<u8>(registers_.data_ready);
        case modem_status_:
            return modem_status();
        default:
            return registers_.scratch;
    }
}

void SerialPort::write(u16 offset, u8 value) {
    switch (offset) {
        case data:
            if (divisor_latch()) {
                registers_.divisor_low = value;
            } else if (loopback()) {
                registers_.received = value;
                registers_.data_ready = true;
            } else {
                output_.append(value);
            }
            return;
        case interrupt_enable:
            if (divisor_latch())
                registers_.divisor_high = value;
            else
                registers_.interrupt_enable = value & 0x0F;
            return;
        case identification:
            registers_.fifo = bit(value, 0);
            return;  // written, it is the FIFO control register
        case line_control:
            registers_.line_control = value;
            return;
        case modem_control:
            registers_.modem_control = value & 0x1F;
            return;
        case line_status:
        case modem_status_:
            return;
        default:
            registers_.scratch = value;
            return;
    }
}

/// In loopback the four outputs of the modem control register are wired to the four inputs: RTS to CTS, DTR to DSR,
/// OUT1 to RI, OUT2 to DCD.
u8 SerialPort::modem_status() const {
    if (!loopback()) return peer_ready;
    const u8 control = registers_.modem_control;
    return static_cast<u8>((bit(control, 1) << 4) | (bit(control, 0) << 5) | (bit(control, 2) << 6) |
                           (bit(control, 3) << 7));
}

}  // namespace emu
