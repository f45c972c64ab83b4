//! Registers and flags, and how instructions use them.

/// A register as a whole, whatever part of it an instruction names; each flag is one, too. Numbers are below 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(pub u8);

/// Registers as bits, by their numbers.
pub type Registers = u128;

impl Register {
    /// The first of the vector registers, behind the general ones, which are numbered as in code.
    pub const VECTORS: Register = Register(16);
    /// The first of the flags: carry, parity, adjust, zero, sign, overflow, direction, and one for all others.
    pub const FLAGS: Register = Register(48);
    /// The first of the registers of masks.
    pub const MASKS: Register = Register(56);
    /// The first of x87, counted from the top of their stack.
    pub const X87: Register = Register(64);
    /// The first of MMX.
    pub const MMX: Register = Register(72);
    /// The instruction pointer, and the segments behind it.
    pub const POINTERS: Register = Register(80);
    /// Any other.
    pub const OTHER: Register = Register(87);

    /// `rax`
    pub const AX: Register = Register(0);
    /// Of which shifts take their distance.
    pub const CX: Register = Register(1);
    /// The stack pointer.
    pub const SP: Register = Register(4);
    /// The frame pointer, in code that has one.
    pub const BP: Register = Register(5);
    /// The carry flag.
    pub const CARRY: Register = Register(48);
    /// The zero flag.
    pub const ZERO: Register = Register(51);

    /// All flags.
    pub const ALL_FLAGS: Registers = 0xff << 48;

    /// Its bit among others.
    #[inline]
    #[must_use]
    pub const fn bit(self) -> Registers {
        1 << self.0
    }

    /// Its number, as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether it is one of those for whole numbers and addresses.
    #[must_use]
    pub fn is_general(self) -> bool {
        self < Register::VECTORS
    }
}

/// A register, or the part of it that an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterPart {
    /// The whole.
    pub register: Register,
    /// How many bytes.
    pub size: u8,
    /// Whether it is the second byte; all others are the lowest ones.
    pub is_high: bool,
}

impl RegisterPart {
    /// Whether it is this register, all 8 bytes of it.
    #[must_use]
    pub fn is_whole(self, register: Register) -> bool {
        self.register == register && self.size == 8
    }
}

/// Whether something is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// It is read, or may be.
    pub reads: bool,
    /// It is written, or may be.
    pub writes: bool,
    /// What is written may leave what was there.
    pub may_keep: bool,
}

/// A register that an instruction uses, named or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Use {
    /// Which part of which register.
    pub part: RegisterPart,
    /// How.
    pub access: Access,
}
